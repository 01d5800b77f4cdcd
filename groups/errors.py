"""The one exception for everything that the maths refuses, and the tables of its sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from .tables import read_table


@dataclass(eq=False, repr=False)
class LayoutError(ValueError):
    """An invalid layout, kind or rank: what is wrong, why, and what would work.

    ``str(error)`` is one English sentence. The parts are kept as data, so that a page can put the
    sentence into another language and offer each alternative as a button.

    Attributes:
        code: name of the rule that was broken, e.g. ``"does-not-divide"``; stable, for programs.
        what: the fact, e.g. ``"tp 3 x pp 1 x cp 1 = 3 does not divide 16 GPUs"``.
        why: the rule behind it, e.g. ``"dp is what remains: 16 / 3 is not a whole number"``.
        control: name of the input it is about (``"tp"``, ``"nodes"``, ``"order"``), or None.
        alternatives: nearest inputs that work, nearest first within each control, e.g.
            ``({"tp": 2}, {"tp": 4})``; merging one over the given sizes succeeds.
        facts: the values that the sentence is made of, by name.
        quote: what Megatron itself says in this case, to search for; empty where it says nothing.

    >>> error = LayoutError("does-not-divide", "tp 3 does not divide 16 GPUs", control="tp",
    ...                     alternatives=[{"tp": 2}, {"tp": 4}])
    >>> str(error)
    'tp 3 does not divide 16 GPUs; try tp 2 or tp 4'
    """

    code: str
    what: str
    _: KW_ONLY
    why: str = ""
    control: str | None = None
    alternatives: Sequence[Mapping[str, object]] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    quote: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.code, self.what)
        self.alternatives = tuple(map(dict, self.alternatives))
        self.facts = dict(self.facts)

    def __str__(self) -> str:
        return self.sentence

    def replace(self, **changes: object) -> LayoutError:
        """The same refusal with some of its parts changed.

        >>> refusal = LayoutError("does-not-divide", "tp 3 does not fit")
        >>> str(refusal.replace(alternatives=[{"tp": 2}]))
        'tp 3 does not fit; try tp 2'
        """
        return LayoutError(**{**vars(self), **changes})

    @property
    def speaker(self) -> str:
        """The software whose message is quoted: Megatron, unless the facts name another."""
        return str(self.facts.get("says", "Megatron"))

    def renamed(self, names: Mapping[str, str]) -> LayoutError:
        """The same refusal with other names for its inputs.

        >>> error = LayoutError("does-not-divide", "m is odd", control="m", alternatives=[{"m": 4}])
        >>> str(error.renamed({"m": "micro_batches"}))
        'micro_batches is odd; try micro_batches 4'
        """
        old, facts, what = self.control or "", dict(self.facts), self.what
        new = names.get(old, old)
        if new != old:
            what = re.sub(rf"(^|a choice of ){re.escape(old)}\b", rf"\g<1>{new}", what)
        if "control" in facts:
            facts["control"] = names.get(str(facts["control"]), facts["control"])
        return self.replace(
            what=what,
            control=new or None,
            alternatives=[
                {names.get(name, name): value for name, value in alternative.items()}
                for alternative in self.alternatives
            ],
            facts=facts,
        )

    @property
    def sentence(self) -> str:
        """What is wrong, and the alternatives if there are any."""
        *others, last = map(alternative_text, self.alternatives) if self.alternatives else [""]
        either = f"{', '.join(others)} or {last}" if others else last
        return self.what + (f"; try {either}" if last else "")


@dataclass(frozen=True)
class Refusal:
    """The template of a refusal, to be filled in with facts: what is wrong, the rule behind it, and
    Megatron's own message in that case, word for word."""

    what: str = ""
    why: str = ""
    quote: str = ""


def refusals(*files: Path) -> Callable[..., LayoutError]:
    """A function that makes a package's refusals from a code, the control, fixes, and facts by
    name.

    The sentences are in refusals.toml of this folder and in these files; they are filled in with
    the facts. A sentence, rule or quote may be passed instead.

    >>> error = refusal("repeated-axis", "order", axis="tp", value="'tp-tp'")
    >>> str(error), error.facts
    ("the axis tp is named twice in 'tp-tp'", {'axis': 'tp', 'value': "'tp-tp'"})
    """

    @cache
    def texts() -> dict[str, Refusal]:
        every = map(_sentences, (_SENTENCES, *files))
        return {code: parts for file in every for code, parts in file.items()}

    def refusal(
        code: str,
        control: str | None = None,
        /,
        *fixes: Mapping[str, object],
        sentence: str = "",
        why: str = "",
        quote: str = "",
        **facts: object,
    ) -> LayoutError:
        """Makes a refusal from this package's texts."""
        text = Refusal() if sentence and code not in texts() else texts()[code]
        if "{control}" in f"{text.what}{text.why}{text.quote}":
            facts = {"control": control, **facts}
        return LayoutError(
            code,
            sentence or text.what.format(**facts),
            why=why or text.why.format(**facts),
            quote=quote or text.quote.format(**facts),
            control=control,
            alternatives=fixes,
            facts=facts,
        )

    return refusal


@cache
def _sentences(file: Path) -> dict[str, Refusal]:
    return read_table(file, dict[str, Refusal])


_SENTENCES = Path(__file__).with_name("refusals.toml")
refusal = refusals()
"""How this room refuses."""


def not_a_choice(
    control: str,
    value: object,
    choices: Iterable[str],
    alternatives: Sequence[Mapping[str, object]] = (),
) -> LayoutError:
    """The refusal of a value that is not one of the choices.

    >>> not_a_choice("target", "jax", ["megatron", "nemo"]).what
    "'jax' is not a choice of target: choose megatron, nemo"
    """
    listed = ", ".join(choices)
    return refusal("not-a-choice", control, *alternatives, value=quoted(value), choices=listed)


def in_any_case(value: object, choices: Iterable[str]) -> object:
    """The choice that a text names, ignoring case; any other value unchanged.

    >>> in_any_case("DP", ["tp", "dp"]), in_any_case("ep", ["tp", "dp"]), in_any_case(5, ["5"])
    ('dp', 'ep', 5)
    """
    if not isinstance(value, str):
        return value
    named = (choice for choice in choices if choice.lower() == value.lower())
    return next(named, value)


def nearest_names(name: str, choices: Iterable[str]) -> list[str]:
    """Up to three choices similar to an unknown name, nearest first: choices that begin with it,
    then those of similar spelling.

    >>> nearest_names("llama3", ["llama3-8b", "llama2", "gpt"])
    ['llama3-8b', 'llama2']
    >>> nearest_names("Deepseek V3", ["deepseek-v2", "deepseek-v3"])
    ['deepseek-v3', 'deepseek-v2']
    """
    lower = "-".join(name.lower().split())
    known = {choice.lower(): choice for choice in choices if choice}
    longer = [choice for choice in known if lower and choice.startswith(lower)]
    alike = get_close_matches(lower, [*known], n=3, cutoff=0.6)
    return [known[choice] for choice in dict.fromkeys([*longer, *alike])][:3]


def alternative_text(alternative: Mapping[str, object]) -> str:
    """An alternative as a sentence writes it.

    >>> alternative_text({"tp": 2, "pp": 4})
    'tp 2 with pp 4'
    """
    return " with ".join(f"{name} {value}" for name, value in alternative.items())


def require_length(text: str, limit: int, control: str) -> None:
    """Errors: LayoutError about the control if a text has more characters than the limit."""
    if len(text) > limit:
        raise refusal("text-too-long", control, count=len(text), limit=limit)


LONGEST_QUOTE = 40
"""The longest quotation of an input, in characters."""


def quoted(value: object) -> str:
    """An input as the user wrote it, cut to a length that fits in a sentence.

    >>> quoted("abc"), quoted(2.5), len(quoted("x" * 99))
    ("'abc'", '2.5', 40)
    """
    if isinstance(value, int) and value.bit_length() > 100:
        return f"an integer of {value.bit_length()} bits"  # repr() refuses the longest ones
    # Not repr() of the whole: an input may be megabytes long.
    text = repr(
        value[: LONGEST_QUOTE + 1] if isinstance(value, (str, bytes, list, tuple)) else value
    )
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
