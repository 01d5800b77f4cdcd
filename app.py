"""The page: layout controls on the left, what they make on the right.

    python app.py

Importing this module builds and launches nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

# Before gradio is imported: it resolves outside hosts otherwise. The page works behind a firewall.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
# Gradio sums up its last 10,000 events with pandas after every single one. Nobody reads that here,
# and it would cost more than the event: keep one record, and never sum up.
os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**12)
# Gradio asks matplotlib for its backend around every event. Unless it is named, the first visitor
# waits for pyplot to be imported to find it out.
os.environ["MPLBACKEND"] = "agg"

import gradio as gr
from anyio import to_thread
from starlette.middleware import Middleware

from groups import LayoutError
from groups.audit import spans_of
from groups.mesh import whole_number
from views import page
from views.api import ENDPOINTS
from views.base.endpoint import require_served
from views.base.state import Controls, read
from views.gradio import widgets
from views.server.guard import Guard

FONTS = ["system-ui", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Consolas", "DejaVu Sans Mono", "monospace"]


def layout(
    group_type: str = "dp+tp+pp",
    nodes: int = 2,
    gpus_per_node: int = 8,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    order: str = "",
    dp_kind: str = "dp",
    ep: int = 1,
    etp: int | None = None,
    framework: str = "megatron",
    more: str = "",
) -> str:
    """The process groups of a layout, as JSON.

    Args:
        group_type: which kinds to list, such as "dp", "dp+tp+pp" or "moe".
        nodes: machines in the job.
        gpus_per_node: GPUs of one machine.
        tp: tensor parallel size.
        pp: pipeline parallel size.
        cp: context parallel size.
        order: axes from fastest to slowest, such as "tp-cp-ep-pp-dp"; empty: the framework's.
        dp_kind: in a type with cp, which group "data parallel" means: "dp" or "dp-cp".
        ep: expert parallel size.
        etp: expert tensor parallel size; None: as tp.
        framework: whose order to use, such as "megatron", "deepspeed" or "llama3".
        more: further groups by Megatron's names, separated by spaces, such as "embd tp-ep-pp".

    Returns:
        {"mesh", "expert_mesh", "world_size", "dp", "edp", "groups": {name: [[rank, ...], ...]},
        "nodes_spanned": {name: [nodes, ...]}}; expert_mesh and edp are null without experts' grid
    """
    given = {"nodes": nodes, "gpus_per_node": gpus_per_node, "tp": tp, "pp": pp, "cp": cp, "ep": ep}
    if etp is not None:
        given["etp"] = etp
    try:
        # A page's boxes send text; a program that does has a mistake, and is told so.
        for name, value in given.items():
            whole_number(value, name)
        names = more.split() if isinstance(more, str) else more
        choices = {"group_type": group_type, "dp_kind": dp_kind, "framework": framework}
        asked = Controls(**choices, **given, more=names)
        answer = read(asked.changed({"order": order}) if order else asked)
        require_served(answer.world_size)
    except LayoutError as error:
        raise gr.Error(str(error), print_exception=False) from None
    found: dict[str, Any] = {one.name: one.groups() for one in answer.shown}
    expert = answer.expert
    return json.dumps(
        {
            "mesh": str(answer.mesh),
            "expert_mesh": None if expert is None else str(expert),
            "world_size": answer.world_size,
            "dp": answer.mesh.size("dp"),
            "edp": None if expert is None else expert.size("edp"),
            "groups": {
                name: ranks if isinstance(ranks, list) else ranks.tolist()
                for name, ranks in found.items()
            },
            "nodes_spanned": {
                one.name: spans_of(one, answer.gpus_per_node).tolist() for one in answer.shown
            },
        }
    )


async def draw(sent: str) -> str:
    """What the page shows for its state; see views.page."""
    return await to_thread.run_sync(page.draw, sent)


async def save(sent: str) -> str:
    """A file of what the page shows; see views.page."""
    return await to_thread.run_sync(page.save, sent)


def create_app() -> gr.Blocks:
    """Build the page; nothing is served until it is launched."""
    # Gradio imports it in the first event: better at the start than while a visitor waits.
    import matplotlib  # noqa: F401

    with gr.Blocks(
        title="Parallel group playground",
        fill_width=True,
        # Downloads are made in memory; what Gradio itself keeps goes after an hour.
        delete_cache=(600, 3600),
        analytics_enabled=False,
    ) as demo:
        widgets.page(page.first_html(), page.script_data(), draw, save)
        gr.api(layout, api_name="layout")
        for name, serve in ENDPOINTS.items():
            gr.api(serve, api_name=name)
    # Every event goes through a bounded queue: off Spaces, POST /run would pass it by otherwise.
    # Two workers, for more only wait for each other (the GIL); 64 waiting, then "busy".
    demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
    return demo


def theme() -> gr.themes.Base:
    """Fonts by name only, so that nothing is fetched; subdued text dark enough to read."""
    base = gr.themes.Base(primary_hue="indigo", neutral_hue="slate", font=FONTS, font_mono=MONO)
    return base.set(
        body_text_color_subdued="*neutral_600",
        block_info_text_color="*neutral_600",
    )


LAUNCH: dict[str, Any] = {
    # On by default, it keeps every result in localStorage and slows every update down.
    "run_history": False,
    # A second server (node) that this page does not need.
    "ssr_mode": False,
    "pwa": False,
    "enable_monitoring": False,
    # Tracebacks are for the log; people are answered in words.
    "show_error": False,
    "footer_links": ["api"],
    # Drawings at a time, of all visitors: more would only wait for each other (the GIL).
    "max_threads": 8,
    # Each API call without a session keeps about 50 KB, up to 10,000 of them by default.
    "state_session_capacity": 200,
}


def launch_options() -> dict[str, Any]:
    """Everything that launch() needs for this page; tests launch it the same way."""
    # The endpoints are MCP tools too where Gradio's extra for it is installed, as on a Space.
    has_mcp = importlib.util.find_spec("mcp") is not None
    around = {"middleware": [Middleware(Guard)]}
    looks = {"theme": theme(), "css": widgets.style_sheets()}
    return {**LAUNCH, **looks, "mcp_server": has_mcp, "app_kwargs": around}


def main() -> None:
    """Serve the page; a port that is asked for and taken is told in one line."""
    port = os.environ.get("GRADIO_SERVER_PORT")
    try:
        create_app().launch(server_port=int(port) if port else None, **launch_options())
    except OSError:
        taken = f"Port {port} is taken" if port else "Every port from 7860 to 7959 is taken"
        sys.exit(f"{taken}: choose another one, such as GRADIO_SERVER_PORT=8080 python app.py")


if __name__ == "__main__":
    main()
