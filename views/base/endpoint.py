"""How a function becomes an endpoint: shared parameters are added, refusals are told in words.

A function that works on a layout takes that as its first argument. `serving` puts the parameters
of a layout in its place, so that each endpoint's schema names all that it takes.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from groups import LayoutError
from groups.budget import spend, within
from groups.conventions import CONVENTIONS, OWN
from groups.errors import not_a_choice, quoted
from groups.job import Job
from groups.layout import Layout
from groups.mesh import whole_number

from .state import OF_MATHS

Found = TypeVar("Found")

MOST_SERVED = 131_072
"""GPUs that one answer may be about: its text is some 20 MB then."""


@dataclass(frozen=True)
class Shared:
    """Parameters that several endpoints take: type, default and meaning of each, by name.

    mark: the line of a docstring that their descriptions take the place of.
    """

    mark: str
    parameters: dict[str, tuple[type, Any, str]]


LAYOUT = Shared(
    "(the layout)",
    {
        "nodes": (int, 2, "machines in the job."),
        "gpus_per_node": (int, 8, "GPUs of one machine."),
        "tp": (int, 1, "tensor parallel size."),
        "pp": (int, 1, "pipeline parallel size."),
        "cp": (int, 1, "context parallel size."),
        "ep": (int, 1, "expert parallel size."),
        "etp": (int, 0, "expert tensor parallel size; 0: as tp."),
        "framework": (str, "megatron", 'whose order to use, such as "megatron" or "llama3".'),
        "order": (str, "", 'axes from fastest to slowest, such as "tp-cp-ep-dp-pp"; empty: own.'),
        "instances": (int, 1, "instances of the distributed optimizer."),
    },
)


def serving(
    read: Callable[..., Any] | None = None, *shared: Shared
) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """A decorator: the function takes the shared parameters in place of what ``read`` makes of
    them, its first argument; without ``read`` it takes its own alone.

    >>> @serving(layout_of, LAYOUT)
    ... def gpus(layout: Layout, unit: str = "GPUs") -> str:
    ...     return f"{layout.world_size} {unit}"
    >>> gpus(nodes=4), list(inspect.signature(gpus).parameters)[:3]
    ('32 GPUs', ['unit', 'nodes', 'gpus_per_node'])
    """
    parameters = {name: row for one in shared for name, row in one.parameters.items()}

    def served(ask: Callable[..., str]) -> Callable[..., str]:
        own = list(inspect.signature(ask).parameters.values())[bool(read) :]
        more = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for name, (_, default, _) in parameters.items()
        ]
        signature = inspect.Signature([*own, *more], return_annotation=str)

        @wraps(ask)
        def answer(*values: Any, **named: Any) -> str:
            bound = signature.bind(*values, **named)
            bound.apply_defaults()
            given = dict(bound.arguments)
            asked = {name: given.pop(name) for name in parameters}
            with within():
                return ask(read(**asked), **given) if read else ask(**given)

        # Gradio tells the type of what it can evaluate only: a class, not the name of one.
        hints = inspect.get_annotations(ask, eval_str=True)
        answer.__annotations__ = {
            **{one.name: hints[one.name] for one in own},
            **{name: kind for name, (kind, _, _) in parameters.items()},
            "return": str,
        }
        answer.__doc__ = _described(ask.__doc__ or "", shared)
        answer.__signature__ = signature  # type: ignore[attr-defined]
        del answer.__wrapped__  # type: ignore[attr-defined]
        return answer

    return served


def layout_of(order: str, etp: Any, framework: Any, **sizes: Any) -> Layout:
    """The job that the parameters of `LAYOUT` ask for.

    Errors: LayoutError about the one that cannot be.
    """
    # A page's boxes send text; a program that does has a mistake, and is told so.
    for name, value in sizes.items():
        whole_number(value, name)
    etp = whole_number(etp, "etp", minimum=0)
    require_choice("framework", framework, CONVENTIONS)
    whose = {"framework": OWN, "order": order} if order else {"framework": framework}
    try:
        layout = Job(**sizes, etp=etp or None, **whose).layout()
    except LayoutError as error:
        raise error.renamed(OF_MATHS) from None
    require_served(layout.world_size)
    spend(layout.world_size, "ranks")
    return layout


def require_served(world: int) -> None:
    """Refuse a world of which no answer lists the ranks."""
    if world > MOST_SERVED:
        raise LayoutError(
            "too-many-ranks",
            f"{world:,} GPUs are more than the {MOST_SERVED:,} that are served",
            control="nodes",
            facts={"ranks": world, "limit": MOST_SERVED},
        )


def require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse what is none of the names that there are."""
    known = list(choices)
    if value not in known:
        raise not_a_choice(name, value, known)


def require_text(name: str, value: Any) -> str:
    """The value, if it is a text."""
    if isinstance(value, str):
        return value
    raise LayoutError(
        "not-a-text",
        f"{name} must be a text: {quoted(value)} is not a text",
        control=name,
        facts={"value": quoted(value)},
    )


def read_json(text: str, kind: type[Found], code: str, said: str, control: str) -> Found:
    """The value of a JSON text, if it is of this kind; said: what the text should have been."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, kind):
        return found
    facts = {"value": quoted(text)}
    raise LayoutError(code, f"{quoted(text)} is not {said}", control=control, facts=facts)


def names_of(names: Any) -> list[str] | None:
    """Names of groups as a list; None for all."""
    if not isinstance(names, str):
        raise LayoutError(
            "not-names",
            f"{quoted(names)} is not a list of group names",
            control="names",
            facts={"value": quoted(names)},
        )
    return names.split() or None


def stated(value: Any) -> Any:
    """A number where 0 stands for "not stated", as the page has that: empty.

    >>> stated(0), stated(2.5), stated(False)
    ('', 2.5, False)
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number and value == 0 else value


def too_large(count: int, what: str, limit: int, control: str) -> LayoutError:
    """The refusal of an answer that nobody could read."""
    return LayoutError(
        "answer-too-large",
        f"{count:,} {what.replace('-', ' ')} are more than the {limit:,} of one answer",
        control=control,
        facts={"count": count, "what": what, "limit": limit},
    )


def words_of(error: LayoutError) -> str:
    """A refusal as a program is told it: the sentence, and what Megatron says."""
    return f"{error}. Megatron says: {error.quote}" if error.quote else str(error)


def _described(text: str, shared: Iterable[Shared]) -> str:
    """The docstring with the shared parameters in place of their marks."""
    for one in shared:
        rows = one.parameters.items()
        lines = "".join(f"\n        {name}: {meaning}" for name, (_, _, meaning) in rows)
        text = text.replace(f"\n        {one.mark}", lines)
    return text


endpoint = serving(layout_of, LAYOUT)
"""A function of a layout, as one of the parameters of a layout."""
