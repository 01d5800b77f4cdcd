"""A server in a process of its own: python -m benchmarks.serve page|cold|empty|queued.

page   the real page, launched as app.py launches it
cold   the same, but it forgets everything before each drawing: every layout is new
empty  one slider, one place for text, one event that does nothing else, with the same settings
queued the same with the event in Gradio's queue, as Gradio does it by default

It writes one JSON line about its event to stdout and serves until its stdin is closed, so that it
never outlives the process that asked for it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from app import create_app, launch  # first: it readies the environment for gradio

# ruff: isort: split
import gradio as gr

from views import page

from .caches import drawn_anew
from .page_client import free_port

MOVED = """
const slider = element.querySelector('input');
slider.addEventListener('input', () => { props.value = Number(slider.value); trigger('input'); });
"""


def main(kind: str) -> None:
    if kind == "cold":
        vars(page)["draw"] = drawn_anew
    is_empty = kind in ("empty", "queued")
    demo = _empty(kind == "queued") if is_empty else create_app()
    address = ("127.0.0.1", free_port())
    launch(demo, server_name=address[0], server_port=address[1], quiet=True)
    print(json.dumps({"address": address, "pid": os.getpid(), **_event(demo)}), flush=True)
    sys.stdin.read()
    demo.close(verbose=False)


def _empty(queued: bool) -> gr.Blocks:
    with gr.Blocks(analytics_enabled=False) as demo:
        slider = gr.HTML(
            1,
            html_template='<input type="range" min="0" max="64" value="1">',
            js_on_load=MOVED,
            apply_default_css=False,
            elem_id="tp",
        )
        text = gr.HTML(_echo(1), apply_default_css=False, elem_id="picture")
        like: dict[str, Any] = {"trigger_mode": "always_last", "show_progress": "hidden"}
        slider.input(_echo, slider, text, queue=queued, **like)
    demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
    return demo


def _echo(value: Any) -> str:
    """The same elements as the page's, so that a browser is asked the same question."""
    return f'<div class="card"><p class="layout"><code>tp{value}-</code></p></div>'


def _event(demo: gr.Blocks) -> dict[str, Any]:
    """The event that is asked for a step."""
    names = ("_echo", "draw")
    event = next(function for function in demo.fns.values() if function.name in names)
    return {"index": event._id, "queued": event.queue, "inputs": len(event.inputs)}


if __name__ == "__main__":
    main(sys.argv[1])
