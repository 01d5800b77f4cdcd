"""The package that people install: one version, what it needs, and that it stands by itself."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit
import yaml

from cli.command import run
from groups import __version__
from package.build import MODULES, NAME, OWN, ROOMS, write_package

ROOT = OWN.parent
PROJECT = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8")).unwrap()["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_one_version_is_said_everywhere():
    out = io.StringIO()
    assert run(["--version"], io.StringIO(), out, out) == 0
    assert out.getvalue() == f"parallel-groups {__version__}\n"
    assert "version" in PROJECT["dynamic"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == __version__
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## ([0-9.]+)", changes, re.MULTILINE)[1] == __version__


def test_a_space_installs_what_the_package_with_its_page_needs():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    asked = {line for line in lines if not line.startswith("#")}
    assert asked == {*PROJECT["dependencies"], *EXTRAS["page"]}
    gradio = next(line for line in EXTRAS["page"] if line.startswith("gradio=="))
    assert EXTRAS["mcp"] == ["parallel-groups[page]", gradio.replace("gradio", "gradio[mcp]")]


def _imported(path: Path) -> set[str]:
    """Others' modules and rooms that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def _names(path: Path) -> set[str]:
    """The names that a module's own imports give it."""
    body = ast.parse(path.read_text("utf-8")).body
    return {one.name for node in body if isinstance(node, ast.ImportFrom) for one in node.names}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / NAME).mkdir()
    write_package(ROOT, folder / NAME)
    return folder


def test_a_type_checker_sees_the_packages_types_and_the_public_names(package):
    assert (package / NAME / "py.typed").is_file()
    of_groups = _names(ROOT / "groups" / "__init__.py") - {"device_mesh", "running"}
    assert {"fit", "Mesh", "LayoutError"} <= of_groups <= _names(package / NAME / "__init__.py")


def test_no_import_in_the_package_is_of_a_room_by_itself(package):
    rooms = {*ROOMS, *(name.removesuffix(".py") for name in MODULES), OWN.name}
    files = [*package.rglob("*.py")]
    assert len(files) > 200
    assert not {file: names for file in files if (names := _imported(file) & rooms)}


def python(package: Path, folder: Path, code: str) -> list[str]:
    """The lines that a program prints which knows the package, and is in another folder."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_command_line_needs_none_of_what_the_page_needs(package, tmp_path):
    """Every command is answered where only the core's dependencies can be imported."""
    extra = [re.split("[=<>]", line)[0].replace("pillow", "PIL") for line in EXTRAS["page"]]
    lines = python(
        package,
        tmp_path,
        f"""
import io, sys
for name in {extra}:
    sys.modules[name] = None
from parallel_groups.cli.command import COMMANDS, run
for command in COMMANDS:
    words = {{"rank": "rank 5", "share": "share -", "slow": "slow -", "serve": "serve -",
             "running": "running -", "compare": "compare llama3-405b-1", "check": "check -",
             "model": "model llama3-8b",
             "trace": "trace {ROOT / "tests/data/traces/gloo"}",
             "moves": "moves --from bloom-176b --to bloom-176b",
             "roles": "roles --preset dapo-qwen2-5-32b"}}
    words = words.get(command, command)
    text = {{"share": "[rank3] Watchdog caught collective operation timeout", "slow": "0,1",
            "running": "DeviceMesh((tp=8), 'cpu', stride=(1,))",
            "serve": "vllm serve m -tp 8"}}.get(command, "")
    out = io.StringIO()
    status = run(words.split(), io.StringIO(text), out, out)
    print(status, command, out.getvalue().split("\\n")[0])
""",
    )
    refused = {"order": "say which machines there are", "check": "not JSON"}
    refused["picture"] = "without the libraries that draw"
    for line in lines:
        status, command, first = line.split(" ", 2)
        assert (status == "2", refused.get(command, "") in first) == (command in refused, True)


def test_the_page_stands_by_itself_and_its_worker_follows_it(package, tmp_path):
    lines = python(
        package,
        tmp_path,
        """
import sys
from parallel_groups import __version__, app
from parallel_groups.groups.mesh import parse_mesh
from parallel_groups.views.server.worker import Worker
worker = Worker()
print(__version__, worker.ask(parse_mesh, ("tp2-dp4",), {}))
worker.close()
rooms = {"groups", "training", "diagnosis", "formats", "cli", "render"}
rooms |= {"request", "views", "texts"}
print(rooms & {*sys.modules})
""",
    )
    assert lines == [f"{__version__} tp2-dp4", "set()"]


def test_without_the_page_its_script_says_what_to_install(package, tmp_path):
    code = """
import sys
sys.modules["gradio"] = None
import importlib.util
importlib.util.find_spec = lambda name: None
from parallel_groups.__main__ import page
try:
    page()
except SystemExit as said:
    print(said)
"""
    (line,) = python(package, tmp_path, code)
    assert line.endswith("pip install 'parallel-groups[page]'")


@pytest.mark.parametrize("module", [NAME, f"{NAME}.groups"])
def test_a_message_says_the_name_that_was_called(package, tmp_path, module):
    words = [sys.executable, "-m", module, "--tp", "3"]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"python -m {module}: tp 3 x pp 1 x cp 1 = 3 does not divide 8")


def test_a_container_installs_and_starts_what_a_space_does():
    text = (ROOT / "Dockerfile").read_text()
    assert "-r requirements.txt" in text
    assert "< packages.txt" in text
    assert "PYTHONUNBUFFERED=1" in text
    assert "GRADIO_SERVER_NAME=0.0.0.0" in text
