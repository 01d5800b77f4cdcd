"""The wheel: all rooms under one package, with imports that say so. A build hook of hatchling.

Rooms have names that others' distributions have too, so that none may be installed as it is. Here
they are copied, and their absolute imports of each other written anew.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # where a test only looks at what would be written
    BuildHookInterface = object

NAME = "parallel_groups"
ROOMS = (
    *("groups", "training", "diagnosis", "formats", "cli", "render"),
    *("request", "views", "texts"),
)
MODULES = ("app.py", "descriptions.py")
FILES = ("__init__.py", "__main__.py", "py.typed")
OWN = Path(__file__).parent

_ROOM = "|".join((*ROOMS, "app", "descriptions"))
_IMPORT = re.compile(
    rf"^(\s*(?:>>> |\.\.\. )?from )(?:package|((?:{_ROOM})\b[\w.]*))(?= import )", re.MULTILINE
)


def installed(text: str) -> str:
    """A module's text as it stands in the package, examples in it too.

    >>> print(installed("from groups.mesh import Mesh\\nfrom package import __version__"))
    from parallel_groups.groups.mesh import Mesh
    from parallel_groups import __version__
    """
    return _IMPORT.sub(lambda at: f"{at[1]}{NAME}" + (f".{at[2]}" if at[2] else ""), text)


def write_package(root: Path, folder: Path) -> None:
    """Write the package into a folder; root: the checkout."""
    without = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(root / room, folder / room, ignore=without)
    for file in (*(root / name for name in MODULES), *(OWN / name for name in FILES)):
        shutil.copy(file, folder)
    for file in folder.rglob("*.py"):
        file.write_text(installed(file.read_text("utf-8")), "utf-8")


class OnePackage(BuildHookInterface):
    """What hatchling puts into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.folder = tempfile.mkdtemp()
        write_package(Path(self.root), Path(self.folder))
        build_data["force_include"][self.folder] = NAME

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self.folder)
