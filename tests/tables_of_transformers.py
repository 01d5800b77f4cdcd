"""The tables training/configs/defaults.toml and neutral.toml, from transformers' own classes.

    python -m tests.tables_of_transformers [--write] [model_type ...]

defaults   of each field that the reader reads, the value that the class of the architecture has for
           it, under the name with which configurations are saved
neutral    fields that it does not read, and that change no parameters: each is changed in turn

Says which unread fields do change parameters: these the reader has to learn. Needs torch and
transformers, which no test of the project does.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import tomllib

from groups.errors import LayoutError
from tests.configs_of_transformers import built
from training.configs import reading
from training.configs.architecture import defaults_of
from training.configs.fields import Fields

FOLDER = Path(reading.__file__).parent
UNSAID = {"num_nextn_predict_layers"}  # which a checkpoint has only where its configuration says so
PARTS = {"architectures", "model_type", "text_config", "vision_config", "quantization_config"}
HEADS = {
    "defaults": """\
# What a field that is read is where a configuration does not say it, by architecture: the
# defaults of the configurations of huggingface/transformers {version}. Written by
# tests/tables_of_transformers.py.
""",
    "neutral": """\
# Fields of configurations that change no parameters: in any architecture, and in one of them.
# Found by changing each field of huggingface/transformers {version}
# (tests/tables_of_transformers.py).
""",
}


def default_of(made: type, name: str) -> object:
    """What a class has for a field of its saved form, by that name or the one that it stands for;
    None where it has nothing.
    """
    names = [name, *(own for own, saved in made.attribute_map.items() if saved == name)]  # type: ignore[attr-defined]
    found = (vars(one).get(own) for own in names for one in made.__mro__)
    return next((value for value in found if isinstance(value, (bool, int, str))), None)


def read_of(config: Mapping[str, object]) -> tuple[set[str], set[str]]:
    """The fields of a configuration that the reader reads, and those that it does not."""
    read: set[str] = set()
    unread: set[str] = set()

    def note(fields: Fields, kind: str) -> None:
        read.update(fields.read)
        unread.update(fields.unread())

    with mock.patch.object(reading, "_require_read", note):
        reading.read_config(config)
    return read, unread


def parameters(made: Any, config: Mapping[str, object]) -> int:
    given = {name: value for name, value in config.items() if name != "model_type"}
    return sum(one.numel() for one in built(made(**copy.deepcopy(given))).parameters())


def other(value: object) -> object:
    """Another value of a field; None where it is none that can be changed."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value or 2
    return 8 if value is None else None


def changes(made: Any, config: Mapping[str, object], names: Iterable[str]) -> set[str]:
    """The fields of which another value makes another number of parameters, or none."""
    found: set[str] = set()
    try:
        start = parameters(made, config)
    except Exception:  # the language part of a model with pictures; a class without defaults
        return {*names}
    for name in names:
        value = other(config.get(name, ""))
        if value is None:
            continue
        try:
            if parameters(made, {**config, name: value}) != start:
                found.add(name)
        except Exception:  # which a class refuses, and so do we
            found.add(name)
    return found


def listed(name: str, values: Iterable[str]) -> str:
    lines, line = [], "   "
    for value in sorted(values):
        item = f' "{value}",'
        if len(line) + len(item) > 98:
            lines.append(line)
            line = "   "
        line += item
    return f"{name} = [\n" + "\n".join([*lines, line]) + "\n]\n"


def tables(kinds: Iterable[str], tries: bool) -> dict[str, str]:
    """The texts of both tables; without ``tries`` the neutral fields stay as they are."""
    import transformers
    from transformers import CONFIG_MAPPING

    defaults: dict[str, dict[str, object]] = {}
    neutral = tomllib.loads((FOLDER / "neutral.toml").read_text())
    every, own = {*neutral.pop("every")}, {kind: {*names} for kind, names in neutral.items()}
    unread: dict[str, set[str]] = {}
    for kind in kinds:
        if kind not in CONFIG_MAPPING:
            continue
        made = CONFIG_MAPPING[kind]
        config = {**json.loads(json.dumps(made().to_dict(), default=str)), "model_type": kind}
        try:
            read, unread[kind] = read_of({k: v for k, v in config.items() if v is not None})
        except LayoutError as error:
            print(f"{kind}: its own configuration is refused: {error}", file=sys.stderr)
            defaults[kind] = dict(defaults_of(kind))
            continue
        read &= config.keys()
        found = {name: default_of(made, name) for name in sorted(read - PARTS - UNSAID)}
        defaults[kind] = {name: value for name, value in found.items() if value is not None}
        if tries:
            names = unread[kind] - every - own.get(kind, set()) - PARTS
            changing = changes(made, config, names)
            own.setdefault(kind, set()).update(names - changing)
            for name in sorted(changing):
                print(f"{kind}: {name} is not read, and changes parameters")
    version = transformers.__version__
    return {
        "defaults": HEADS["defaults"].format(version=version)
        + "".join(
            f"\n[{kind}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in rows.items())
            for kind, rows in defaults.items()
            if rows
        ),
        "neutral": HEADS["neutral"].format(version=version)
        + listed("every", every)
        + "".join(listed(kind, names) for kind, names in own.items() if names),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--try", action="store_true", dest="tries", help="change each field")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    kinds = options.kinds or [*tomllib.loads((FOLDER / "architectures.toml").read_text())]
    for name, text in tables(kinds, options.tries).items():
        if options.write and not options.kinds:
            (FOLDER / f"{name}.toml").write_text(text)
        else:
            print(text)


if __name__ == "__main__":
    main()
