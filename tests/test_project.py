"""What the repository promises about itself: front matter, versions, rooms, one-way imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

from groups.frameworks import FRAMEWORKS
from groups.presets import PRESETS
from package.build import ROOMS
from training.clusters import CLUSTERS
from training.collectives.operations import COLLECTIVES, MAPPINGS
from training.models import MODELS

ROOT = Path(__file__).parent.parent
PRODUCT = [ROOT / "app.py", ROOT / "descriptions.py"]
PRODUCT += [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def front_matter() -> dict:
    return yaml.safe_load(README.split("---\n")[1])


def test_the_front_matter_is_that_of_a_gradio_space():
    front = front_matter()
    assert front["sdk"] == "gradio"
    assert front["app_file"] == "app.py"
    assert front["license"] == "mit"
    assert front["python_version"] == "3.12"
    assert len(front["short_description"]) <= 60
    assert "mcp-server" in front["tags"]
    assert (ROOT / front["thumbnail"]).exists()
    assert {"title", "emoji", "colorFrom", "colorTo", "pinned"} <= set(front)


def test_a_space_installs_the_gradio_that_the_requirements_name():
    requirements = (ROOT / "requirements.txt").read_text()
    assert f"\ngradio=={front_matter()['sdk_version']}\n" in requirements


def test_the_readme_has_the_two_commands():
    commands = re.findall(r"```bash\n(.*?)\n```", README)
    assert len(commands) == 2
    assert commands[0].endswith("pip install -r requirements.txt && .venv/bin/python app.py")
    assert commands[1].endswith("-m pytest")


def test_what_the_readme_links_to_is_there():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


COUNTED = {
    "frameworks": FRAMEWORKS,
    "published layouts": PRESETS,
    "collectives": COLLECTIVES,
    "mappings": MAPPINGS,
    "published models": MODELS,
    "kinds of clusters": CLUSTERS,
}


@pytest.mark.parametrize("what", COUNTED)
def test_what_the_readme_counts_are_so_many(what):
    (count,) = set(re.findall(rf"([0-9]+) {what}", " ".join(README.split())))
    assert int(count) == len(COUNTED[what])


PAGE_ONLY = {"request", "views", "app", "gradio", "descriptions", "texts"}
NO_HTML = {"views", "app", "cli", "gradio", "markupsafe", "matplotlib", "texts"}
FORBIDDEN = {
    "groups": {"training", "diagnosis", "formats", *PAGE_ONLY, "cli", "render", "matplotlib"},
    "training": {"diagnosis", "formats", *PAGE_ONLY, "cli", "render", "matplotlib"},
    "diagnosis": {"formats", *PAGE_ONLY, "cli", "render", "matplotlib"},
    "formats": {*PAGE_ONLY, "cli", "render", "matplotlib"},
    "render": {"cli", *PAGE_ONLY},
    "request": {*NO_HTML, "render"},
    "cli": {"views", "app", "gradio", "matplotlib"},
    "texts": {*ROOMS, "app", "gradio"} - {"groups", "texts"},
    "views": {"app", "cli", "texts"},
}


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports, by its whole name: in functions too, for types alone, and
    by a name in a string (`import_module`)."""
    found: set[str] = set()
    inside = path.relative_to(ROOT).with_suffix("").parts
    package = inside[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            whole = (*base, *(node.module or "").split("."))
            names = {alias.name for alias in node.names}
            others = {name for name in names if not is_module(*whole, name)}
            found |= {".".join(filter(None, (*whole, name))) for name in names}
            found |= {".".join(filter(None, whole))} if others else set()
        elif isinstance(node, ast.Call) and named(node.func) == "import_module":
            name = ast.unparse(node.args[0]).strip("f'\"")
            found.add(".".join((*package, name.lstrip("."))) if name.startswith(".") else name)
    return frozenset(found)


def is_module(*parts: str) -> bool:
    path = ROOT.joinpath(*parts)
    return path.is_dir() or path.with_suffix(".py").is_file()


def named(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def modules(*rooms: str) -> dict[str, Path]:
    """The modules of rooms by their names; that of a package is its ``__init__``."""
    files = [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]
    parts = {file: file.relative_to(ROOT).with_suffix("").parts for file in files}
    return {".".join(p[:-1] if p[-1] == "__init__" else p): file for file, p in parts.items()}


def test_imports_go_in_no_circle():
    """Neither in functions, nor for types alone, nor by a name in a string."""
    known = modules(*FORBIDDEN, "package") | {"app": ROOT / "app.py"}
    known |= {"descriptions": ROOT / "descriptions.py"}
    assert len(known) > 400
    graph = {name: imports(file) & known.keys() - {name} for name, file in known.items()}
    [*TopologicalSorter(graph).static_order()]  # Errors: CycleError names the files


ASKED = ("is_server", "is_served", "has_own_groups")
"""Names of the question whether something is a server."""

SIGNS = (*ASKED, ".does", ".copy")
"""A program without any of these asks nothing of the kind."""


def servers_asked_for(text: str) -> list[str]:
    """The places of a program that ask whether something is a server: by name, or by comparing what
    a framework does, or what its copy is called, with a word."""
    found = []
    for node in ast.walk(ast.parse(text)) if any(sign in text for sign in SIGNS) else ():
        names = {getattr(node, name, None) for name in ("attr", "id", "name", "arg")}
        compared = getattr(node.left, "attr", "") if isinstance(node, ast.Compare) else ""
        if names & {*ASKED} or compared in ("does", "copy"):
            found.append(ast.unparse(node))
    return found


def test_few_places_ask_whether_something_is_a_server():
    """What differs for servers is said by the framework, by a table of what frameworks do, or by
    `of_server`."""
    inside = ROOT / "groups" / "frameworks"
    found = [
        (str(file.relative_to(ROOT)), asked)
        for file in PRODUCT
        if inside not in file.parents
        for asked in servers_asked_for(file.read_text(encoding="utf-8"))
    ]
    assert 0 < len(found) <= 20, found


@pytest.mark.parametrize(
    "text",
    [
        "layout.is_server",
        "not side.layout.is_server",
        "def is_served(layout): ...",
        "table(rows, is_server=True)",
        "def table(rows, is_server=False): ...",
        "from request.served import is_served",
        "layout.made_by.does == 'serve'",
        "layout.made_by.copy != 'engine'",
    ],
)
def test_a_question_for_a_server_is_seen_however_it_is_asked(text):
    assert len(servers_asked_for(text)) == 1
    assert not servers_asked_for(f"TABLE[layout.made_by.does]  # {text}")


@pytest.mark.parametrize(
    "text",
    [
        "from render.notebook import timeline",
        "import render.notebook as drawn",
        "def f():\n    from render import notebook",
        "if TYPE_CHECKING:\n    from render.notebook import timeline",
        "import_module('render.notebook')",
        "importlib.import_module(f'render.notebook')",
        "from ..render import notebook",
        "from ..render.notebook import timeline",
    ],
)
def test_an_import_is_seen_wherever_it_stands(text, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "groups").mkdir()
    file = tmp_path / "groups" / "bundles.py"
    file.write_text(text, encoding="utf-8")
    assert "render.notebook" in imports(file)


SHARED = ("base", "parts")
"""The folders of views/ that all views share, the second above the first."""


def test_a_view_imports_no_other_view():
    views = {path.parent.name for path in (ROOT / "views").glob("*/view.py")} - {*SHARED}
    assert len(views) >= 16
    for path in (ROOT / "views").glob("*/*.py"):
        room = path.parent.name
        if room in (*views, *SHARED):
            others = (views | {"parts"} if room == "base" else views) - {room}
            taken = {name.split(".")[1] for name in imports(path) if name.startswith("views.")}
            assert not taken & others, path


def test_what_is_asked_knows_no_answer():
    files = [path for path in (ROOT / "request").rglob("*.py") if "answers" not in path.parts]
    assert files
    for path in files:
        assert not any(name.startswith("request.answers") for name in imports(path)), path


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_run_one_way(room):
    for path in (ROOT / room).rglob("*.py"):
        if path == ROOT / "groups" / "__main__.py":  # a door, not a part of the room
            continue
        names = imports(path)
        others = {name.split(".")[0] for name in names} - {room}
        assert not others & FORBIDDEN[room], path
        assert not any(name.startswith("matplotlib.pyplot") for name in names), path


def test_importing_the_app_launches_nothing_loads_no_matplotlib_and_parses_no_stubs():
    code = """import ast, sys
parse, parsed = ast.parse, []
def of(text, *more, **by):
    parsed.append("from gradio" in text)
    return parse(text, *more, **by)
ast.parse = of
import app, inspect
print({"matplotlib", "matplotlib.pyplot"} & {*sys.modules}, any(parsed))
print(inspect.getfile(app.gr.HTML))
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    loaded, parsed, file = out.stdout.split()
    assert (loaded, parsed) == ("set()", "False"), out.stdout + out.stderr
    assert file.endswith("html.py")


def test_the_core_needs_numpy_only():
    code = "import sys, groups; print({'gradio', 'matplotlib', 'render'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert out.stdout.strip() == "set()", out.stdout + out.stderr


@pytest.mark.parametrize("command", ["memory", "traffic", "estimate", "search", "compare ?v=2"])
def test_the_command_line_answers_without_gradio_and_matplotlib(command):
    code = f"""import io, sys
from cli.command import run
status = run([*"{command}".split(), "--tp", "2"], sys.stdin, io.StringIO(), sys.stderr)
print(status, *({{"gradio", "matplotlib", "starlette"}} & {{*sys.modules}}))"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert out.stdout.strip() == "0", out.stdout + out.stderr


def test_no_page_asset_refers_to_another_host():
    assets = [path for path in (ROOT / "views").rglob("*") if path.suffix in (".js", ".css")]
    assert assets
    for path in assets:
        assert not re.search(
            r"https?://(?!www\.w3\.org/2000/svg')|(?<!:)//[a-z]+\.[a-z]",
            path.read_text(encoding="utf-8"),
        ), path


def test_a_class_name_stands_for_one_thing():
    found = Counter(
        node.name
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and path.name != "template.py"  # a script by itself
    )
    assert [name for name, times in found.items() if times > 1] == []
