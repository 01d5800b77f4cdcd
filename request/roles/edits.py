"""Edits of a plan's roles: one instruction at a time, as text.

    to rollout        put it on screen          add            another role, on the same GPUs
    gpu 12            choose a GPU              remove         the role on screen
    name policy       call the one on screen    earlier later  in the order of turns
    first 64          where it begins           keep weights   on its GPUs while others have them

The page sends it as the field ``role_edit`` (`roles.js`), and gets the state that follows:

>>> state = edited(State(nodes=4, tp=4, role_edit="add"))
>>> state.roles
'actor@0-31:tp=4,pp=2;*rollout@0'
>>> edited(state.changed({"role_edit": "first 32"})).roles
'actor@0-31:tp=4,pp=2;*rollout@32'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from groups import MAX_RANKS
from groups.errors import not_a_choice, require_length
from groups.frameworks import framework_or_first
from groups.gpus import Gpus
from groups.inputs import number_in
from groups.mesh import whole_number
from groups.plan import MAX_ROLES

from ..errors import refusal
from ..state import State
from .pages import Cast, RolePage, cast_of, listed
from .text import (
    ALL,
    LONGEST,
    MODEL,
    OWN_FIELDS,
    PARTS,
    ROLE_STARTS,
    kept_of,
    require_name,
    spans_of,
)

NAMES = ("rollout", "reference", "reward", "critic", "actor")
"""Names of new roles, in the order of their use."""


def edited(state: State) -> State:
    """The state after the instruction that it holds; unchanged without one.

    Errors: LayoutError about "role_edit", with instructions that can be followed.
    """
    instruction = state.role_edit.strip()
    if not instruction:
        return state
    require_length(instruction, LONGEST, "role_edit")
    verb, _, rest = instruction.partition(" ")
    if verb not in EDITS:
        raise not_a_choice("role_edit", verb, EDITS, [{"role_edit": "add"}])
    cast = EDITS[verb](cast_of(state.changed({"role_edit": ""})), rest.strip())
    found = cast.state()
    if not state.roles and found.roles:
        found = found.changed({"view": "roles"})
    if len(found.roles) > LONGEST:
        raise refusal("text-too-long", "role_edit", count=len(found.roles), limit=LONGEST)
    return found


def _to(cast: Cast, name: str) -> Cast:
    return _as_text(cast).to(name)


def _as_text(cast: Cast) -> Cast:
    """Refuses a cast whose role on screen cannot be written as text.

    Errors: LayoutError for selected GPUs that are not as many as its machines have: another role on
    screen would take the one or the other for right.
    """
    now = cast.shown
    if now.gpus and len(now.gpus) != now.count:
        facts = {"role": now.name, "said": len(now.gpus), "count": now.count}
        fix = {"role_edit": f"first {now.first}"}
        raise refusal("gpus-are-not-machines", "role_edit", fix, **facts)
    return cast


def _gpu(cast: Cast, text: str) -> Cast:
    """Selects a GPU, in the role on screen or else in the first that uses it."""
    gpu = whole_number(number_in(text), "role_edit", minimum=0, maximum=MAX_RANKS - 1)
    for member in (cast.shown, *cast.members):
        rank = member.rank_on(gpu)
        if rank is not None:
            turned = (
                cast.to(member.name) if member is cast.shown else _as_text(cast).to(member.name)
            )
            page = turned.shown.page.changed({"rank": str(rank)})
            return turned.with_(turned.shown, replace(turned.shown, page=page))
    return cast


def _add(cast: Cast, name: str) -> Cast:
    """Adds a role on the GPUs of the one on screen, which uses them after it."""
    now = _as_text(cast).shown
    if len(cast.members) >= MAX_ROLES:
        raise refusal("number-of-roles", "role_edit", count=MAX_ROLES + 1, limit=MAX_ROLES)
    taken = {member.name for member in cast.members}
    free = [one for one in NAMES if one not in taken]
    name = require_name(name, "role_edit") if name else next(iter(free), f"role {len(taken) + 1}")
    if name in taken:
        raise refusal("role-named-twice", "role_edit", role=name)
    other = replace(now, name=name, page=now.page.changed(_fields_of(name, now)), kept=())
    members = (*cast.members[: cast.at + 1], other, *cast.members[cast.at + 1 :])
    return replace(cast, members=members).to(name)


def _fields_of(name: str, now: RolePage) -> dict[str, str]:
    """The fields of a new role: a rollout serves the same model, any other is a copy of this
    one."""
    page = now.page
    is_engine = not framework_or_first(page.framework).has_grids
    if (name == "rollout") == is_engine:
        return now.own()
    kept = {field: getattr(page, field) for field in ("nodes", "gpus_per_node", *MODEL)}
    fields = {**{field: ROLE_STARTS[field] for field in OWN_FIELDS}, **kept}
    tp = page.values["tp"]
    size = tp if isinstance(tp, int) and tp > 0 and now.count % tp == 0 else 1
    made = {"tp": str(size), "pp": "1", "preset": ""}
    return {**fields, **made, "framework": "vllm" if name == "rollout" else "megatron"}


def _remove(cast: Cast, _: str) -> Cast:
    """Removes the role on screen; the one beside it is shown next."""
    if len(cast.members) == 1:
        return cast
    near = cast.members[cast.at - 1 if cast.at else 1].name
    turned, gone = cast.to(near), cast.shown.name
    left = tuple(member for member in turned.members if member.name != gone)
    names = [member.name for member in left]
    alone = len(left) == 1
    machines = None if alone else turned.machines
    if alone:  # one job again, which needs no name
        left = (replace(left[0], first=0, gpus=Gpus(), kept=()),)
    return replace(turned, members=left, at=names.index(near), machines=machines)


def _name(cast: Cast, text: str) -> Cast:
    name = require_name(text, "role_edit")
    other = cast.named(name)
    if other is not None and other is not cast.shown:
        raise refusal("role-named-twice", "role_edit", role=name)
    return cast.with_(cast.shown, replace(cast.shown, name=name))


def _first(cast: Cast, text: str) -> Cast:
    """Moves the role on screen to another first GPU, or to a list of GPUs."""
    (first, last), *more = spans = spans_of(text, "role_edit")
    gpus = Gpus() if last is None else listed(spans, "role_edit")
    if not more and len(gpus) in (0, cast.shown.count):
        gpus = Gpus()
    return cast.with_(cast.shown, replace(cast.shown, first=first, gpus=gpus))


def _moved(step: int) -> Callable[[Cast, str], Cast]:
    def moved(cast: Cast, _: str) -> Cast:
        at = min(max(cast.at + step, 0), len(cast.members) - 1)
        members = [member for member in cast.members if member is not cast.shown]
        members.insert(at, cast.shown)
        return replace(cast, members=tuple(members), at=at)

    return moved


def _keep(cast: Cast, text: str) -> Cast:
    """Sets the parts that stay on its GPUs meanwhile, joined by plus signs; empty: nothing."""
    words = [word.strip() for word in text.split("+") if word.strip()]
    for word in words:
        if word not in (*PARTS, ALL):
            fixes = [{"role_edit": f"keep {one}"} for one in (*PARTS, ALL)]
            raise not_a_choice("role_edit", word, (*PARTS, ALL), fixes)
    return cast.with_(cast.shown, replace(cast.shown, kept=kept_of(words)))


EDITS: dict[str, Callable[[Cast, str], Cast]] = {
    "to": _to,
    "gpu": _gpu,
    "add": _add,
    "remove": _remove,
    "name": _name,
    "first": _first,
    "earlier": _moved(-1),
    "later": _moved(1),
    "keep": _keep,
}
"""The edits by the first word of their instruction."""
