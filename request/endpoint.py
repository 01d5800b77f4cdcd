"""Turns a function of a layout into an endpoint: adds the shared parameters
and returns refusals as sentences.

A function that works on a layout takes that as its first argument. `serving` puts the parameters
of a layout in its place, so that each endpoint's schema names all that it takes.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from operator import itemgetter
from types import UnionType
from typing import NamedTuple, TypeVar

from groups import LayoutError
from groups.alternatives import with_working
from groups.budget import spend, within
from groups.errors import in_any_case, quoted
from groups.frameworks import FRAMEWORKS, OWN
from groups.inputs import inputs_of
from groups.layout import Job, Layout, world_of
from groups.megatron import ORDER
from groups.mesh import whole_number
from training.clusters import CLUSTERS

from .errors import refusal
from .inputs import FIELDS, OF_MATHS
from .state import State, require_choice

Json = TypeVar("Json")

MOST_SERVED = 131_072
"""The largest number of GPUs of one answer: some 20 MB of text."""


MOST_LISTED = 16
"""The largest number of choices that a description lists; of more it names two."""


class Parameter(NamedTuple):
    """A parameter of endpoints.

    start: its default; 0 or -1 means "not stated". field: the field of the state that it sets;
    empty: none. least: the least whole number.
    """

    kind: type | UnionType
    start: object
    means: str
    field: str = ""
    least: int = 0


def parameter(
    field: str, *, start: object = ..., means: str = "", is_open: bool = False
) -> Parameter:
    """The parameter that sets a field of the page's state.

    start: its default, if not the field's; 0 or an empty text for a field that follows from others.
    means: its description, if not the field's. is_open: whether it is unset by default, even if the
    field has a default.

    >>> parameter("zero").start, parameter("zero", is_open=True).start, parameter("etp").means
    (1, -1, 'expert tensor parallel size; 0: as tp')
    """
    row = FIELDS[field].row
    kinds: dict[str, type[int | float | str]] = {"count": int, "amount": float, "switch": bool}
    kind = kinds.get(row.kind, str)
    if is_open and row.kind == "switch" and not row.input.ticked:
        kind = str
    if start is ...:
        follows = is_open or row.default is None or row.input.otherwise or row.kind == "names"
        start = kind() if follows else row.default
        start = -1 if start == 0 and kind is int and row.input.least == 0 else start
    text = means or row.input.means
    if kind is str and row.choices and not means:
        is_long = len(row.choices) > MOST_LISTED
        *others, last = (f'"{name}"' for name in row.choices[: 2 if is_long else None])
        text += f"{', such as' if is_long else ':'} {', '.join(others)} or {last}"
    otherwise = "not said" if is_open else row.input.otherwise
    if otherwise and kind is not bool and not means and start in ("", None, 0, -1):
        text += f"; {'empty' if start == '' else start}: {otherwise}"
    if start is None:
        return Parameter(int | None, start, text, field, row.input.least)
    return Parameter(kind, start, text, field, row.input.least if start else 0)


@dataclass(frozen=True)
class Parameters:
    """Parameters that endpoints share, by name.

    mark: the line of a docstring that their descriptions replace. late: parameters that were added
    later; callers pass them by position, so they follow the parameters of all tables.
    """

    mark: str
    rows: Mapping[str, Parameter]
    late: Collection[str] = ()

    def fields(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The fields of the state that the arguments set. Errors: LayoutError for an argument of
        the wrong type."""
        rows = self.rows.items()
        return {
            row.field: _state_value(name, arguments[name], row) for name, row in rows if row.field
        }

    @contextmanager
    def named(self) -> Iterator[None]:
        """A context in which refusals of fields, or of the maths, name the parameters instead."""
        names = {row.field: name for name, row in self.rows.items() if row.field}
        try:
            yield
        except LayoutError as error:
            refused = error.renamed(OF_MATHS).renamed(names)
            fixes = [
                {
                    name: usual(self.rows[name]) if value is None else value
                    for name, value in fix.items()
                }
                for fix in refused.alternatives
            ]
            raise refused.replace(alternatives=fixes) from None


def _state_value(name: str, value: object, row: Parameter) -> object:
    """An argument as a value of the state, with its type checked: text is right from a page's
    boxes, but a mistake from a program."""
    if value is None and row.start is None:
        return ""
    if row.kind is bool:
        return require_choice(name, value, (False, True))
    if row.kind not in (str, float):
        unsaid = row.start if isinstance(row.start, int) and row.start else row.least
        value = whole_number(value, name, minimum=min(row.least, unsaid))
    is_list = isinstance(value, list) and bool(row.field) and FIELDS[row.field].row.kind == "names"
    if row.kind is str and not is_list and not isinstance(value, (str, int, float)):
        raise refusal("not-a-text", name, value=quoted(value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number and row.start in (0, -1) and value == row.start else value


LAYOUT = Parameters(
    "(the layout)",
    {name: parameter(name, start=2 if name == "nodes" else ...) for name in inputs_of(Job)},
    late=("hpz", "levels", "hybrid", "gtp", "egtp", "gathers"),
)


def serving(
    read: Callable[..., object] | None = None, *shared: Parameters
) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """A decorator that replaces the function's first argument by the shared parameters, from which
    ``read`` makes it; without ``read`` the function has only its own parameters. Those that it
    takes by name only were added later, and follow all others.

    >>> @serving(layout_of, LAYOUT)
    ... def gpus(layout: Layout, unit: str = "GPUs") -> str:
    ...     return f"{layout.world_size} {unit}"
    >>> gpus(nodes=4), list(inspect.signature(gpus).parameters)[:3]
    ('32 GPUs', ['unit', 'nodes', 'gpus_per_node'])
    """
    places = [(name in each.late, name, row) for each in shared for name, row in each.rows.items()]
    rows = {name: row for _, name, row in sorted(places, key=itemgetter(0))}

    def served(ask: Callable[..., str]) -> Callable[..., str]:
        parameters = list(inspect.signature(ask).parameters.values())[bool(read) :]
        more = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=row.start)
            for name, row in rows.items()
        ]
        later = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
        own = [one for one in parameters if one not in later]
        last = [one.replace(kind=one.POSITIONAL_OR_KEYWORD) for one in later]
        signature = inspect.Signature([*own, *more, *last], return_annotation=str)

        @wraps(ask)
        def answer(*values: object, **named: object) -> str:
            bound = signature.bind(*values, **named)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            inputs = {name: arguments.pop(name) for name in rows}
            with within():
                return ask(read(inputs), **arguments) if read else ask(**arguments)

        # Gradio needs the type itself: it does not evaluate the name of a class.
        hints = inspect.get_annotations(ask, eval_str=True)
        answer.__annotations__ = {
            **{parameter.name: hints[parameter.name] for parameter in own},
            **{name: row.kind for name, row in rows.items()},
            **{parameter.name: hints[parameter.name] for parameter in later},
            "return": str,
        }
        answer.__doc__ = _described(inspect.cleandoc(ask.__doc__ or ""), shared)
        answer.__signature__ = signature  # type: ignore[attr-defined]
        del answer.__wrapped__
        return answer

    return served


def layout_of(arguments: Mapping[str, object]) -> Layout:
    """The layout of the parameters of `LAYOUT`."""
    try:
        layout = _layout_of(arguments)
    except LayoutError as error:
        raise with_working(error, lambda changes: _layout_of({**arguments, **changes})) from None
    spend(layout.world_size, "ranks")
    return layout


def _layout_of(arguments: Mapping[str, object]) -> Layout:
    fields = LAYOUT.fields(arguments)
    require_choice("framework", in_any_case(fields["framework"], FRAMEWORKS), FRAMEWORKS)
    fields |= {"framework": OWN} if fields["order"] else {"order": ORDER}
    with LAYOUT.named():
        world_of(fields["nodes"], fields["gpus_per_node"], MOST_SERVED)
        return State(**fields).unchecked(Job).layout()


def require_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise refusal("not-a-text", name, value=quoted(value))


def read_json(text: str, kind: type[Json], code: str, control: str) -> Json:
    """The value of a JSON text, if it has this type; otherwise a refusal with this code."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, kind):
        return value
    raise refusal(code, control, value=quoted(text))


def names_of(names: object) -> list[str] | None:
    """The names of groups as a list; None for all."""
    if not isinstance(names, str):
        raise refusal("not-names", "names", value=quoted(names))
    return names.split() or None


def usual(row: Parameter) -> object:
    """What a parameter is where nothing is said of it, as a value that may be said."""
    default = FIELDS[row.field].row.default if row.field else None
    return row.start if row.start not in ("", -1) or default is None else default


def empty_if_zero(value: object) -> object:
    """A number as a value of the state; an empty text for 0, which means that it is not set."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number and value == 0 else value


def too_large(count: int, what: str, limit: int, control: str) -> LayoutError:
    """The refusal of an answer with more than ``limit`` items."""
    sentence = f"{count:,} {what.replace('-', ' ')} are more than the {limit:,} of one answer"
    return refusal(
        "answer-too-large", control, sentence=sentence, count=count, what=what, limit=limit
    )


def words_of(error: LayoutError) -> str:
    """A refusal as text for programs: the sentence, and Megatron's message."""
    return f"{error}. {error.speaker} says: {error.quote}" if error.quote else str(error)


def _described(text: str, shared: Iterable[Parameters]) -> str:
    """The docstring with descriptions of the shared parameters in place of their marks."""
    for shared_row in shared:
        lines = "".join(f"\n    {name}: {row.means}." for name, row in shared_row.rows.items())
        text = text.replace(f"\n    {shared_row.mark}", lines)
    machines = ", ".join(f'"{name}"' for name in CLUSTERS) if MACHINES in text else ""
    return text.replace(MACHINES, machines)


MACHINES = "(the machines)"
"""What stands in a docstring for the names of all machines."""


endpoint = serving(layout_of, LAYOUT)
"""Turns a function of a layout into one of the parameters of a layout."""
