"""The roles of a plan as one compact text, written and read.

    rollout@0-63:vllm,tp=2;reward@64-71:preset=playground-16
    4x8;*actor@0;rollout@0:vllm,tp=2,weights

Roles stand in the order in which they have the GPUs that they share, with ``;`` between them. Each
is its name, ``@`` with its GPUs, ``:`` and what it is: the name of a framework, and fields by their
names in links. The one with a ``*`` is the role on screen, whose fields are the page's own; where
no role has one it stands first, and is "actor". ``@8-15`` are its first and last GPU, ``@8``
says where it begins, with as many as the role on screen, or as its own nodes say; without ``@`` it
has the same GPUs as the role on screen. ``@0-3,8-11`` are chosen GPUs. The machines may stand in
front, where they are more than the roles need.

>>> written = "4x8;*actor@0;rollout@0-31:vllm,tp=2,weights"
>>> texts = read_roles(written)
>>> texts.machines, [(text.name, text.spans, text.settings) for text in texts.roles]
((4, 8), [('actor', ((0, None),), {}), ('rollout', ((0, 31),), {'framework': 'vllm', 'tp': '2'})])
>>> str(texts) == written
True
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from groups import MAX_RANKS
from groups.errors import in_any_case, nearest_names, quoted, require_length
from groups.frameworks import FRAMEWORKS, OWN
from groups.kept import kept
from groups.plan import MAX_ROLES
from groups.presets import PUBLISHED
from training.roles import PARTS

from ..errors import refusal
from ..inputs import FIELDS, STARTS, fields_of

SHOWN_NAMES = ("actor", "rollout", "job")
"""Default names of the role on screen: the first that is free."""

LONGEST = 2_000
LONGEST_NAME = 40

MODEL = (*fields_of("model"), "layers", "experts")
"""Fields of a model: a role that sets none of them has the model of the role on screen."""

OWN_FIELDS = (
    *fields_of("job", "model"),
    *(name for name in fields_of("training") if name not in ("cluster", "capacity")),
    *(name for name in fields_of("memory") if name.startswith("served_")),
    *("cp_algorithm", "preset"),
)
"""Fields that each role sets for itself; the machines and the display options are shared."""

OF_LINKS = {FIELDS[name].link: name for name in OWN_FIELDS if FIELDS[name].link}
"""The field of each setting."""

ROLE_STARTS = {**STARTS, "tp": "1", "pp": "1"}
"""The default fields of a role."""

ALL = "stays"
"""The word for all parts."""

Span = tuple[int, int | None]
"""The first and last of consecutive GPUs; None: as many as there are ranks."""

_NAME = re.compile(r"[^\s;:@*=,][^;:@*=,]*")
_SPAN = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?", re.ASCII)
_MACHINES = re.compile(r"([0-9]{1,7})x([0-9]{1,7})", re.ASCII | re.IGNORECASE)
_PLAIN = "".join(map(chr, range(32, 127))).translate(str.maketrans("", "", ";:,=@%"))
"""Characters of a value that need no escape."""


@dataclass(frozen=True)
class RoleText:
    """One role of the text; settings: fields of the state by their own names."""

    name: str
    spans: tuple[Span, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    is_shown: bool = False

    def __str__(self) -> str:
        spans = ",".join(str(a) if b is None else f"{a}-{b}" for a, b in self.spans)
        first = sorted(self.settings.items(), key=lambda setting: setting[0] != "framework")
        settings = [*map(_setting_text, first)]
        settings += kept_words(self.kept)
        place = f"@{spans}" if spans else ""
        suffix = f":{','.join(settings)}" if settings else ""
        return f"{'*' * self.is_shown}{self.name}{place}{suffix}"


@dataclass(frozen=True)
class RolesText:
    """All roles of the text, one of which is on screen."""

    roles: tuple[RoleText, ...]
    machines: tuple[int, int] | None = None

    def __str__(self) -> str:
        machines = "{}x{}".format(*self.machines) if self.machines else ""
        return ";".join(filter(None, (machines, *map(str, self.roles))))


@kept
def read_roles(text: str) -> RolesText:
    """The roles of a text. Errors: LayoutError about the field "roles", with the nearest readable
    text if there is one."""
    require_length(text, LONGEST, "roles")
    first, *others = parts = [part.strip() for part in text.split(";")]
    machines = None
    if found := _MACHINES.fullmatch(first):
        machines, parts = (int(found[1]), int(found[2])), others
    roles = [_role(part, text) for part in parts if part]
    shown = [role.name for role in roles if role.is_shown]
    if not shown:
        taken = {role.name for role in roles}
        name = next((one for one in SHOWN_NAMES if one not in taken), SHOWN_NAMES[0])
        roles.insert(0, RoleText(name, ((0, None),), is_shown=True))
    if len(shown) > 1:
        one = {"roles": text.replace(f"*{shown[1]}", shown[1])}
        raise refusal("two-roles-shown", "roles", one, role=shown[0], other=shown[1])
    if len(roles) > MAX_ROLES:
        raise refusal("number-of-roles", "roles", count=len(roles), limit=MAX_ROLES)
    return RolesText(tuple(roles), machines)


def require_name(name: str, control: str) -> str:
    """A name that a role may have in a text. Errors: LayoutError about the control."""
    if len(name) <= LONGEST_NAME and _NAME.fullmatch(name.strip()):
        return name.strip()
    plain = re.sub(r"[\s;:@*=,]+", " ", name).strip()[:LONGEST_NAME]
    fixes = [{control: plain}] if plain else []
    raise refusal("role-without-name", control, *fixes, value=quoted(name))


def spans_of(text: str, control: str = "roles") -> tuple[Span, ...]:
    """The GPUs of a text. Errors: LayoutError about the control.

    >>> spans_of("8"), spans_of("0-3,8-11")
    (((8, None),), ((0, 3), (8, 11)))
    """
    found = [_SPAN.fullmatch(part.strip()) for part in text.split(",")]
    spans = tuple((int(one[1]), int(one[2]) if one[2] else None) for one in found if one)
    last = max((b or a for a, b in spans), default=0)
    is_good = all(found) and all(b is None or a <= b for a, b in spans) and last < MAX_RANKS
    if not is_good:
        raise refusal("not-gpus-of-a-role", control, value=quoted(text))
    if len(spans) > 1:  # chosen ones: a number alone is one of them
        return tuple((a, a if b is None else b) for a, b in spans)
    return spans


def _role(part: str, whole: str) -> RoleText:
    head, _, settings_text = part.partition(":")
    is_shown = head.startswith("*")
    name, has_place, place = head.removeprefix("*").partition("@")
    if not _NAME.fullmatch(name.strip()) or len(name) > LONGEST_NAME:
        raise refusal("not-a-role", "roles", value=quoted(part))
    spans = spans_of(place) if has_place else ()
    if is_shown and not spans:
        spans = ((0, None),)
    settings, kept = {}, set[str]()
    for setting in filter(None, (one.strip() for one in settings_text.split(","))):
        if setting.lower() in (*PARTS, ALL):
            kept |= {setting.lower()}
        else:
            known, value = _setting(setting, whole)
            settings[known] = value
    if is_shown and settings:
        bare = {"roles": whole.replace(part, part.partition(":")[0])}
        raise refusal("role-on-screen", "roles", bare, role=name.strip())
    return RoleText(name.strip(), spans, settings, kept_of(kept), is_shown)


def kept_of(words: Collection[str]) -> tuple[str, ...]:
    """The known parts among some words; other words are ignored.

    >>> kept_of({"optimizer", "weights"}), kept_words(kept_of({"stays"}))
    (('weights', 'optimizer'), ['stays'])
    """
    return PARTS if ALL in words else tuple(part for part in PARTS if part in words)


def kept_words(kept: Sequence[str]) -> list[str]:
    return [ALL] if tuple(kept) == PARTS else [*kept]


def _setting(text: str, whole: str) -> tuple[str, str]:
    """A field and its value: ``tp=2``, or the name of a framework or a published layout."""
    name, has_value, value = text.partition("=")
    if has_value and name in OF_LINKS:
        field_name = OF_LINKS[name]
        return field_name, FIELDS[field_name].row.text(unquote(value.strip()))
    for field_name, choices in (("framework", (*FRAMEWORKS, OWN)), ("preset", PUBLISHED)):
        if not has_value and (known := in_any_case(text, choices)) in choices:
            return field_name, str(known)
    names = OF_LINKS if has_value else (*FRAMEWORKS, *PARTS, ALL, *PUBLISHED)
    near = nearest_names(name, names)
    others = [f"{one}={value}" if has_value else one for one in near]
    fixes = [{"roles": whole.replace(text, other)} for other in others]
    bare = re.sub(rf"[:,]\s*{re.escape(text)}\s*(?=[,;]|$)", "", whole)
    raise refusal(
        "no-setting-of-a-role", "roles", *(fixes or [{"roles": bare}]), value=quoted(text)
    )


def _setting_text(setting: tuple[str, str]) -> str:
    name, value = setting
    if name == "framework" and value in FRAMEWORKS:
        return value
    return f"{FIELDS[name].link}={quote(value, safe=_PLAIN, errors='replace')}"


def settings_of(
    texts: Mapping[str, str], starts: Mapping[str, str], model: Mapping[str, str] | None
) -> dict[str, str]:
    """The fields of a role that its text has: those that differ from their defaults; none of its
    model if that equals ``model``, the one of the role on screen.

    >>> starts, model = ROLE_STARTS, {"model": "llama3-8b"}
    >>> settings_of({**starts, "tp": "4", **model}, starts, model)
    {'tp': '4'}
    >>> settings_of(starts, starts, model)
    {'model': ''}
    """
    names: Iterable[str] = [name for name in OWN_FIELDS if name not in ("nodes", "gpus_per_node")]
    if model is not None and all(texts[name] == model.get(name, STARTS[name]) for name in MODEL):
        names = [name for name in names if name not in MODEL]
        model = None
    written = {name: texts[name] for name in names if texts[name] != starts[name]}
    if model is not None and not any(name in MODEL for name in written):
        written["model"] = ""
    return written
