"""The plan of a state: the role on screen is in the page's own fields, the others are in a text.

>>> state = State(nodes=4, tp=4, pp=2, roles="rollout@0-31:vllm,tp=2")
>>> cast = cast_of(state)
>>> str(cast.plan()), cast.shown.name
('4 x 8 GPUs: actor 0-31, rollout 0-31', 'actor')
>>> turned = cast.to("rollout").state()
>>> turned.framework, turned.tp, turned.roles
('vllm', '2', 'actor@0-31:tp=4,pp=2;*rollout@0')
>>> cast_of(turned).to("actor").state().roles
'*actor@0;rollout@0-31:vllm,tp=2'

A state without a text is a plan of one role, today's job: nothing of it is anywhere in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd

from formats.roles.presets import PLANS
from groups import MAX_RANKS, LayoutError
from groups.alternatives import with_working
from groups.budget import spend
from groups.gpus import Gpus
from groups.kept import kept
from groups.layout import Layout
from groups.mesh import whole_number
from groups.plan import Plan, Role
from groups.presets import PUBLISHED

from ..errors import refusal
from ..inputs import fields_of
from ..resolve import resolve
from ..state import State
from ..trained import published
from ..words import sentence
from .text import (
    MODEL,
    OWN_FIELDS,
    ROLE_STARTS,
    SHOWN_NAMES,
    RolesText,
    RoleText,
    Span,
    read_roles,
    settings_of,
)

LAYOUT = 300
"""Units of work of a role's layout."""


@dataclass(frozen=True)
class RolePage:
    """A role of a state: the state with this role on screen, and its GPUs.

    first: of its run of GPUs; gpus: of each rank, where they are chosen. kept:
    parts that stay on them while others have them.
    """

    name: str
    page: State
    first: int = 0
    gpus: Gpus = field(default_factory=Gpus)
    kept: tuple[str, ...] = ()

    @cached_property
    def count(self) -> int:
        """The number of its GPUs. Errors: LayoutError for invalid machines."""
        nodes, each = (
            whole_number(self.page.values[name], name, maximum=MAX_RANKS)
            for name in ("nodes", "gpus_per_node")
        )
        return nodes * each

    @property
    def last(self) -> int:
        return self.gpus.last if self.gpus else self.first + self.count - 1

    @property
    def spans(self) -> tuple[Span, ...]:
        """Its GPUs as the text has them."""
        return self.gpus.spans or ((self.first, self.last),)

    def rank_on(self, gpu: int) -> int | None:
        """Its rank on a GPU of the cluster; None if it has none there."""
        if self.gpus:
            return self.gpus.place(gpu)
        return gpu - self.first if self.first <= gpu <= self.last else None

    def own(self) -> dict[str, str]:
        """The fields that it sets for itself; the name of a whole plan is the page's."""
        own = {name: getattr(self.page, name) for name in OWN_FIELDS}
        return own | {"preset": "" if own["preset"] in PLANS else own["preset"]}

    def changed(self, changes: Mapping[str, object]) -> RolePage:
        """The role with some of its fields changed."""
        return replace(self, page=self.page.changed(changes))

    def role(self, layout: Layout) -> Role:
        """The role of a plan. Errors: LayoutError if selected GPUs are not one for each rank."""
        return Role(self.name, layout, self.first, gpus=self.gpus)


@dataclass(frozen=True)
class Cast:
    """All roles of a state, in the order in which they use the GPUs that they share.

    shown: the role on screen. machines: nodes, and GPUs of one, where a text says them.
    """

    members: tuple[RolePage, ...]
    at: int = 0
    machines: tuple[int, int] | None = None

    @property
    def shown(self) -> RolePage:
        return self.members[self.at]

    @property
    def each(self) -> int:
        """GPUs per node."""
        return self.machines[1] if self.machines else self.shown.page.number("gpus_per_node", 0)

    @property
    def needed(self) -> int:
        """The number of nodes that all roles need."""
        return max(member.last for member in self.members) // self.each + 1

    def named(self, name: str) -> RolePage | None:
        return next((member for member in self.members if member.name == name), None)

    # -- there ---------------------------------------------------------------------------------

    def plan(self, layout: Layout | None = None) -> Plan:
        """The plan; layout: that of the role on screen, if it is known.

        Errors: LayoutError about the field "roles" or one of the page, with fixes that work.
        """
        layouts = self._layouts(layout)
        nodes = self.machines[0] if self.machines else self.needed
        try:
            roles = [member.role(made) for member, made in zip(self.members, layouts)]
            return Plan(nodes, self.each, roles)
        except LayoutError as error:
            raise self._in_text(error) from None

    def _layouts(self, known: Layout | None) -> list[Layout]:
        """The layout of each role; known: that of the role on screen.

        Errors: the refusal of the role on screen, or of the first that has none.
        """
        spend(LAYOUT * len(self.members), "roles", control="roles")
        layouts, refused = list[Layout](), list[tuple[RolePage, LayoutError]]()
        for member in self.members:
            try:
                is_known = known is not None and member is self.shown
                layouts.append(known if known and is_known else layout_of(member.page))
            except LayoutError as error:
                if member is self.shown:
                    raise
                refused.append((member, error))
        if refused:
            raise self._in_roles(refused)
        return layouts

    def _in_roles(self, refused: Sequence[tuple[RolePage, LayoutError]]) -> LayoutError:
        """The refusal of the first of some roles, whose fixes are changes of the text.

        Each role has tried its own fixes; those of the first are tried once more in the whole plan,
        with the first fix of every other role beside them: so many roles, so many refusals.
        """
        (member, error), *others = refused
        mended = self
        for other, reason in others:
            if reason.alternatives:
                mended = mended.with_(other, other.changed(reason.alternatives[0]))
        fixes = ({"roles": mended.with_(member, member.changed(one)).text}
                 for one in error.alternatives)  # fmt: skip
        said = sentence(error, self.shown.page.language).rstrip(".。")
        named = refusal("in-role", "roles", *fixes, role=member.name, said=said)
        return with_working(named, self._attempt)

    def _attempt(self, changes: Mapping[str, object]) -> Plan:
        return cast_of(self.shown.page.changed(changes)).plan()

    def _in_text(self, error: LayoutError) -> LayoutError:
        """A refusal of the plan whose fixes are changes of the text."""
        member = self.named(str(error.facts.get("role"))) or self.shown
        texts = []
        for fix in error.alternatives:
            if "first_rank" in fix:
                first = whole_number(fix["first_rank"], "first_rank", minimum=0)
                texts.append(self.with_(member, replace(member, first=first, gpus=Gpus())).text)
            elif "gpus" in fix:
                texts.append(self.with_(member, replace(member, gpus=Gpus())).text)
            elif "nodes" in fix:
                nodes = whole_number(fix["nodes"], "nodes")
                texts.append(replace(self, machines=(nodes, self.each)).text)
        fixes = [{"roles": text} for text in dict.fromkeys(texts)]
        near = error.replace(control="roles", alternatives=fixes)
        return with_working(near, self._attempt)

    # -- and back ------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the field "roles"; empty for a job of one role."""
        if self.is_plain:
            return ""
        model = {name: getattr(self.shown.page, name) for name in MODEL}
        roles = [self._text_of(member, model) for member in self.members]
        nodes, own = self.needed, self.shown.page.gpus_per_node
        is_implied = self.machines in (None, (nodes, self.each)) and own == str(self.each)
        machines = None if is_implied else self.machines or (nodes, self.each)
        return str(RolesText(tuple(roles), machines))

    @property
    def is_plain(self) -> bool:
        """Whether it is a single job on its own machines."""
        only = self.shown
        is_there = (only.name, only.first, only.gpus, only.kept) == (SHOWN_NAMES[0], 0, Gpus(), ())
        return len(self.members) == 1 and is_there and self.machines is None

    def _text_of(self, member: RolePage, model: Mapping[str, str]) -> RoleText:
        if member is self.shown:
            spans = member.spans if member.gpus else ((member.first, None),)
            return RoleText(member.name, spans, {}, member.kept, is_shown=True)
        own = member.own()
        preset = own["preset"] if own["preset"] in PUBLISHED else ""
        starts = {**published(preset), "preset": ""} if preset else ROLE_STARTS
        settings = settings_of(own, starts, None if preset else model)
        if own["gpus_per_node"] != str(usual_each(member.count, self.each)):
            settings["gpus_per_node"] = own["gpus_per_node"]
        return RoleText(member.name, member.spans, settings, member.kept)

    def state(self) -> State:
        """The state of this cast."""
        return self.shown.page.changed({"roles": self.text, "role_edit": ""})

    def with_(self, member: RolePage, other: RolePage) -> Cast:
        """The cast with one role replaced."""
        members = tuple(other if one is member else one for one in self.members)
        return replace(self, members=members)

    def to(self, name: str) -> Cast:
        """The cast with another role on screen; the selected GPU stays if that role uses it too.

        Errors: LayoutError for an unknown role.
        """
        names = [member.name for member in self.members]
        if name not in names:
            fixes = [{"role_edit": f"to {one}"} for one in names]
            raise refusal("no-such-role", "role_edit", *fixes, role=name)
        chosen, now = self.members[names.index(name)], self.shown
        rank = now.page.values["rank"]
        text = ""
        if isinstance(rank, int) and 0 <= rank < now.count:
            gpu = now.gpus[rank] if now.gpus else now.first + rank
            place = chosen.rank_on(gpu)
            text = "" if place is None else str(place)
        own = chosen.own()
        if not own["preset"] and now.page.preset in PLANS:
            own["preset"] = now.page.preset
        page = now.page.changed({**own, "rank": text})
        machines = self.machines
        if machines is None and page.gpus_per_node != str(self.each):
            machines = (self.needed, self.each)
        turned = self.with_(chosen, replace(chosen, page=page))
        return replace(turned, at=names.index(name), machines=machines)


def usual_each(count: int, each: int) -> int:
    """GPUs per node of a role of so many GPUs on nodes of ``each`` GPUs.

    >>> usual_each(64, 8), usual_each(4, 8), usual_each(12, 8)
    (8, 4, 4)
    """
    return gcd(count, each)


# -- of a state ------------------------------------------------------------------------------------


def cast_of(state: State) -> Cast:
    """The roles of a state. Errors: LayoutError about the field "roles"."""
    if not state.roles:
        return Cast((RolePage(SHOWN_NAMES[0], state),))
    texts = read_roles(state.roles)
    at = next(place for place, role in enumerate(texts.roles) if role.is_shown)
    shown = _shown(texts.roles[at], state)
    each = texts.machines[1] if texts.machines else None
    members = tuple(
        shown if role.is_shown else _member(role, shown, each or _each_of(state))
        for role in texts.roles
    )
    cast = Cast(members, at, texts.machines)
    for role, member in zip(texts.roles, members):
        _require_count(role, member, cast)
    return cast


def _require_count(role: RoleText, member: RolePage, cast: Cast) -> None:
    """Errors: LayoutError if a role's GPUs are not as many as its machines have."""
    if role.is_shown or any(last is None for _, last in role.spans):
        return
    listed = sum((last or 0) - first + 1 for first, last in role.spans)
    if listed and listed != member.count:
        fix = {"roles": cast.with_(member, replace(member, gpus=Gpus())).text}
        facts = {"role": role.name, "said": listed, "count": member.count}
        raise refusal("gpus-are-not-machines", "roles", fix, **facts)


def _each_of(state: State) -> int:
    return whole_number(state.values["gpus_per_node"], "gpus_per_node", maximum=MAX_RANKS)


def _shown(role: RoleText, state: State) -> RolePage:
    (first, last), *_ = role.spans
    if last is None:
        return RolePage(role.name, state, first, Gpus(), role.kept)
    gpus = listed(role.spans)
    return RolePage(role.name, state, first, gpus, role.kept)


def listed(spans: Iterable[Span], control: str = "roles") -> Gpus:
    """The GPUs of spans. Errors: LayoutError for more than there can be."""
    gpus = Gpus.of_spans((a, a if b is None else b) for a, b in spans)
    if len(gpus) > MAX_RANKS:
        raise refusal("not-gpus-of-a-role", control, value=f"{len(gpus)} GPUs")
    return gpus


def _member(role: RoleText, shown: RolePage, each: int) -> RolePage:
    first, gpus, count = shown.first, shown.gpus, 0
    if role.spans:
        (first, last), *more = role.spans
        gpus = listed(role.spans) if more else Gpus()
        count = len(gpus) or (0 if last is None else last - first + 1)
    model = None
    if "preset" not in role.settings and not any(name in role.settings for name in MODEL):
        model = tuple((name, getattr(shown.page, name)) for name in MODEL)
    if not count and not {"nodes", "gpus_per_node", "preset"} & role.settings.keys():
        count = shown.count
    settings = tuple(role.settings.items())
    page = shown.page
    machine = ("cluster", "capacity", *fields_of("machine"))
    shared = tuple((name, getattr(page, name)) for name in (*machine, "lang"))
    state = _page(settings, model, shared, count, each)
    return RolePage(role.name, state, first, gpus, role.kept)


@kept
def _page(
    settings: tuple[tuple[str, str], ...],
    model: tuple[tuple[str, str], ...] | None,
    shared: tuple[tuple[str, str], ...],
    count: int,
    each: int,
) -> State:
    """The state with a role on screen."""
    texts = dict(settings)
    preset = texts.get("preset", "")
    starts = published(preset) if preset in PUBLISHED else ROLE_STARTS
    if count:
        per = int(texts["gpus_per_node"]) if texts.get("gpus_per_node", "").isdecimal() else 0
        per = per or usual_each(count, each)
        texts = {"nodes": str(max(1, count // per)), **texts, "gpus_per_node": str(per)}
    elif not preset and "gpus_per_node" not in texts:
        texts["gpus_per_node"] = str(each)
    return State(**{**starts, **dict(model or ()), **texts, **dict(shared)})


@kept
def layout_of(page: State) -> Layout:
    """The layout of a role, cached while its state is unchanged."""
    return resolve(page)
