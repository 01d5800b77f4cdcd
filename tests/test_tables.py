"""Every table in TOML is checked when it is read: a wrong row names file, table and field."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.guide import Guide
from formats.launch.flags import KeyGroup, OptionGroup, WordLists
from formats.launch.schemas import SchemaFile
from formats.launch.targets import Target
from formats.launch.training import TrainingFile
from formats.roles.presets import PlanPreset
from groups.errors import Refusal
from groups.frameworks import Framework
from groups.megatron.parallel_state import Family
from groups.presets import Publication
from groups.tables import TableError, checked, parsed, read_table
from texts.shapes import sections
from training.clusters import FILES, row_type
from training.configs.architecture import Architecture, Default
from training.models import PublishedModel, PublishedOptions

ROOT = Path(__file__).parent.parent

MODELS: dict[str, Any] = {
    "groups/frameworks/frameworks.toml": dict[str, Framework],
    "groups/megatron/families.toml": dict[str, Family],
    "cli/guide.toml": Guide,
    "groups/published.toml": dict[str, tuple[Publication, ...]],
    "groups/servers.toml": dict[str, tuple[Publication, ...]],
    "groups/refusals.toml": dict[str, Refusal],
    **{f"training/{name}": dict[str, row_type()] for name in FILES},
    "training/models.toml": dict[str, PublishedModel],
    "training/published.toml": dict[str, tuple[PublishedOptions, ...]],
    "training/refusals.toml": dict[str, Refusal],
    "training/configs/architectures.toml": dict[str, Architecture],
    "training/configs/defaults.toml": dict[str, dict[str, Default]],
    "training/configs/neutral.toml": dict[str, tuple[str, ...]],
    "diagnosis/refusals.toml": dict[str, Refusal],
    "formats/refusals.toml": dict[str, Refusal],
    "request/refusals.toml": dict[str, Refusal],
    "formats/roles/plans.toml": dict[str, PlanPreset],
    "formats/launch/tables/checkpoints.toml": dict[str, str],
    "formats/launch/tables/keys.toml": dict[str, tuple[KeyGroup, ...]],
    "formats/launch/tables/options.toml": dict[str, tuple[OptionGroup, ...]],
    "formats/launch/tables/schemas.toml": SchemaFile,
    "formats/launch/tables/targets.toml": dict[str, Target],
    "formats/launch/tables/training.toml": TrainingFile,
    "formats/launch/tables/words.toml": WordLists,
}
"""What a file must be; catalogues of texts are as `texts.shapes.SECTIONS` says."""

FILES = sorted(
    str(file.relative_to(ROOT))
    for room in (
        "groups",
        "training",
        "diagnosis",
        "formats",
        "cli",
        "render",
        "request",
        "views",
        "texts",
    )
    for file in (ROOT / room).rglob("*.toml")
)


def checked_file(name: str, values: Any) -> object:
    if name in MODELS:
        return checked(name, values, MODELS[name])
    assert name.startswith("texts/") or name.endswith("/words.toml")
    return sections(name, values)


Place = tuple[Any, ...]


def mutations(values: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Places in a file, each with what cannot stand there: a field that there is not, and a value
    of a type that no field has; of tables that have the same fields the first."""
    if isinstance(values, dict):
        yield (*place, "unexpected"), {"x": [[1.5]]}
    children = values.items() if isinstance(values, dict) else enumerate(values)
    seen = set()
    for key, value in children:
        if isinstance(value, dict | list) and value:
            form = (*value,) if isinstance(value, dict) else type(value[0])
            if form not in seen:
                seen.add(form)
                yield from mutations(value, (*place, key))
        elif isinstance(values, dict):
            yield (*place, key), {"x": [[1.5]]}


def changed(values: Any, place: Place, value: Any) -> Any:
    values = copy.deepcopy(values)
    at = values
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return values


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_row_names_file_table_field_and_what_was_expected(name):
    values = parsed(ROOT / name)
    assert checked_file(name, values)
    places = [*mutations(values)]
    assert places
    for place, value in places:
        with pytest.raises(TableError) as refused:
            checked_file(name, changed(values, place, value))
        first, *lines = str(refused.value).splitlines()
        table, *field = map(str, place)
        assert first.startswith(f"{name}: ")
        stands = re.escape(f"[{table}]" + (f" {'.'.join(field)}" if field else ""))
        expected = "(Unexpected field|Input should be|Field required)"
        assert any(re.match(rf"  {stands}[^:]*: {expected}", line) for line in lines), place


def test_a_file_that_is_no_toml_is_named(tmp_path):
    file = tmp_path / "words.toml"
    file.write_text("[a]\nb = 1\nb = 2\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"/words.toml: Cannot overwrite a value \(at line 3"):
        read_table(file, dict[str, dict[str, int]])


def framework(**fields: Any) -> Any:
    """A framework of tp and dp, with other fields."""
    row = {
        "name": "A framework",
        "axes": [{"name": "tp"}, {"name": "data", "axis": "dp"}],
        "basis": "read",
        "source": "a paper",
        "url": "https://example.org",
        **fields,
    }
    return {"own": {name: value for name, value in row.items() if value is not None}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": None}, "source: Field required"),
        ({"basis": "guessed"}, "basis: Input should be 'executed' or 'read', not 'guessed'"),
        (
            {"axes": [{"name": "t"}]},
            "axes.0: Value error, axis should be one of tp, cp, ep, dp, pp",
        ),
        (
            {"groups": [{"name": "all", "kind": "tp-dp"}]},
            "kind should join dense axes, not 'tp-dp'",
        ),
        ({"remains": "dp"}, "remains should be one of its axes, not 'dp'"),
        ({"of_node": "node"}, "of_node should be one of its axes, not 'node'"),
    ],
)
def test_a_framework_is_of_axes_that_it_has(fields, message):
    checked("frameworks.toml", framework(), dict[str, Framework])
    with pytest.raises(TableError) as refused:
        checked("frameworks.toml", framework(**fields), dict[str, Framework])
    assert message in str(refused.value)
    assert "\n  [own]" in str(refused.value)
