"""``python app.py``: what is printed, and what is told of a port that cannot be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import app

ROOT = Path(app.__file__).parent


def test_the_address_is_there_at_once_where_the_output_is_a_file(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    changed = {"GRADIO_SERVER_PORT": port}
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    file = tmp_path / "nohup.out"
    with file.open("w") as output:
        command = [sys.executable, "app.py"]
        running = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, env=environment | changed
        )
    try:
        while f"http://127.0.0.1:{port}" not in file.read_text():
            assert running.poll() is None, file.read_text()
            time.sleep(0.1)
    finally:
        running.kill()
        running.wait()


def test_a_port_that_is_taken_is_told_in_one_line(server, monkeypatch):
    port = str(urlsplit(server).port)
    monkeypatch.setenv("GRADIO_SERVER_PORT", port)
    with pytest.raises(SystemExit, match=f"Port {port} is taken: choose another one"):
        app.main()


@pytest.mark.parametrize("port", ["abc", "0", "-1", "65536", "8080.5", "9" * 5000, "\u00b2"])
def test_a_port_that_is_none_is_told_in_one_line(monkeypatch, port):
    monkeypatch.setenv("GRADIO_SERVER_PORT", port)
    with pytest.raises(SystemExit) as told:
        app.main()
    assert "is no port, 1 to 65535: choose another one" in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert len(str(told.value)) < 200
