"""docs/notebook.ipynb, run without a server; python tests/docs_notebook.py writes it anew."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docs" / "notebook.ipynb"


def shown(cells: list[dict]) -> list[object]:
    """The last value of each code cell, as a notebook would show it; None where it has none.

    In a checkout the rooms are packages by themselves.
    """
    names: dict[str, object] = {}
    values = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]).replace("from parallel_groups.", "from "))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, FILE.name, "exec"), names)
        value = ast.Expression(last.value) if last else None
        values.append(eval(compile(value, FILE.name, "eval"), names) if value else None)
    return values


def outputs_of(value: object) -> list[dict]:
    """What the file keeps: text, and the picture that needs no theme."""
    if value is None:
        return []
    show = getattr(value, "_repr_mimebundle_", lambda: {"text/plain": repr(value)})
    data = {form: text.splitlines(keepends=True) for form, text in show().items()}
    data.pop("text/html", None)
    return [
        {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
    ]


def main() -> None:
    notebook = json.loads(FILE.read_text("utf-8"))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, value in zip(codes, shown(notebook["cells"])):
        cell["outputs"] = outputs_of(value)
    FILE.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
