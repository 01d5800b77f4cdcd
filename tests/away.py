"""Tests as they are for the installed package: python tests/away.py FOLDER copies them there."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(folder: Path) -> None:
    """Write the tests into a folder, with imports of rooms as the package has them."""
    sys.path.insert(0, str(ROOT))
    from package.build import NAME, installed

    shutil.copytree(ROOT / "tests", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.rglob("*.py"):
        text = installed(file.read_text("utf-8"))
        text = re.sub(
            r"^(\s*)import (app|descriptions|groups)$",
            rf"\1from {NAME} import \2",
            text,
            flags=re.M,
        )
        text = re.sub(r'(?<=setattr\(")(?=(views|cli|training)\.)', f"{NAME}.", text)
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
