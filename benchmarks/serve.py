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

from app import create_app, launch_options  # first: it readies the environment for gradio

# ruff: isort: split
import gradio as gr

import views.page
from views.page import answer

from .caches import clear_caches
from .page_client import free_port

MOVED = """
const slider = element.querySelector('input');
slider.addEventListener('input', () => { props.value = Number(slider.value); trigger('input'); });
"""


def main(kind: str) -> None:
    if kind == "cold":
        views.page.answer = _forgetful
    is_empty = kind in ("empty", "queued")
    demo, drawing = _empty(kind == "queued") if is_empty else (create_app(), "_draw")
    address = ("127.0.0.1", free_port())
    demo.launch(
        **launch_options(),
        server_name=address[0],
        server_port=address[1],
        prevent_thread_lock=True,
        quiet=True,
    )
    print(json.dumps({"address": address, "pid": os.getpid(), **_event(demo, drawing)}), flush=True)
    sys.stdin.read()
    demo.close(verbose=False)


def _empty(queued: bool) -> tuple[gr.Blocks, str]:
    with gr.Blocks(analytics_enabled=False) as demo:
        slider = gr.HTML(
            1,
            html_template='<input type="range" min="0" max="64" value="1">',
            js_on_load=MOVED,
            apply_default_css=False,
            elem_id="tp",
        )
        text = gr.HTML(_echo(1), apply_default_css=False, elem_id="picture")
        like = {"trigger_mode": "always_last", "show_progress": "hidden", "queue": queued}
        slider.input(_echo, slider, text, **like)
    demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
    return demo, "_echo"


def _echo(value: Any) -> str:
    """The same elements as the page's, so that a browser is asked the same question."""
    return f'<div class="card"><p class="layout"><code>tp{value}-</code></p></div>'


def _forgetful(*arguments: Any, **named: Any) -> Any:
    clear_caches()
    return answer(*arguments, **named)


def _event(demo: gr.Blocks, name: str) -> dict[str, Any]:
    """The number of an event, the first values of its inputs, and whether that is the page's."""
    index, event = next(
        item for item in demo.fns.items() if getattr(item[1].fn, "__name__", "") == name
    )
    return {
        "fn_index": index,
        "queued": event.queue,
        "data": [getattr(block, "value", None) for block in event.inputs],
        "has_state": any(block.elem_id == "state" for block in event.inputs),
    }


if __name__ == "__main__":
    main(sys.argv[1])
