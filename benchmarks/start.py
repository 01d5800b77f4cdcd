"""Part "start": from the command ``python app.py`` to a page that is served.

The whole is a fresh process and GET / until it answers 200. The parts come from another fresh
process that imports and launches step by step.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from .page_client import PATIENCE, ROOT, Servers, free_port
from .timing import ResultTable, Timings, shown

PARTS = """
import json, os, time
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
clock = [time.perf_counter()]
def lap(): clock.append(time.perf_counter())
import numpy; lap()
import gradio; lap()
import app; lap()
demo = app.create_app(); lap()
demo.launch(**app.launch_options(), prevent_thread_lock=True, quiet=True); lap()
demo.close(verbose=False)
names = ["import numpy", "import gradio", "import app", "create_app()", "launch()"]
print(json.dumps({n: 1e3 * (b - a) for n, a, b in zip(names, clock, clock[1:])}))
"""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    repeats = 1 if quick else 5
    whole, parts = [], []
    for _ in range(repeats):
        whole.append(_until_served())
        parts.append(_parts())
    rows = [(name, shown(Timings(tuple(part[name] for part in parts)).median)) for name in parts[0]]
    served = Timings(tuple(whole))
    yield ResultTable(
        "Cold start",
        ("step", "median ms"),
        [*rows, ("python app.py to a served page", shown(served.median))],
        f"Median of {repeats}.",
    )


def _until_served() -> float:
    port = free_port()
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port)}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        while not _answers(port):
            if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                raise RuntimeError(f"app.py did not serve a page (exit {process.poll()})")
            time.sleep(0.01)
        return 1e3 * (time.perf_counter() - begun)
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _parts() -> dict[str, float]:
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(free_port())}
    done = subprocess.run(
        [sys.executable, "-c", PARTS],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
