"""The page: controls of a layout on the left, its views on the right.

    python app.py

Importing this module builds and launches nothing.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from formats.values import Document

# Before gradio is imported: it resolves outside hosts otherwise. The page works behind a firewall.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
# Gradio sums up its last 10,000 events with pandas after every single one. Nobody reads that here,
# and it would cost more than the event: keep one record, and never sum up.
os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(10**12)
# Gradio asks matplotlib for its backend around every event. Unless it is named, the first visitor
# waits for pyplot to be imported to find it out.
os.environ["MPLBACKEND"] = "agg"

from views.server.importing import without_collecting, without_stubs

with without_collecting():
    with without_stubs():
        import gradio as gr
    from starlette.middleware import Middleware

    from groups.program import PAGE
    from request.state import State
    from views import page
    from views.all import ENDPOINTS
    from views.client import widgets
    from views.client.components import (
        ChosenGpu,
        Dropdown,
        Picture,
        Script,
        Sections,
        Settings,
        ShownRegion,
        SizeSlider,
        StateField,
        ToldBeside,
    )
    from views.client.wiring import drawing
    from views.column import SIZES, SIZES_OF_SERVERS, size_region
    from views.evidence import evidence
    from views.groups.film import film
    from views.groups.lens import lens
    from views.moves.reel import moves_reel
    from views.preview import head_html, preview
    from views.server.connections import watch
    from views.server.guard import Guard
    from views.server.lanes import Lanes, answering, heading, serving, telling
    from views.server.packing import Packing
    from views.server.unread import bound
    from views.server.worker import give_back_large_pieces

FONTS = ["system-ui", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Consolas", "DejaVu Sans Mono", "monospace"]


def create_app() -> gr.Blocks:
    """Builds the page; nothing is served until it is launched."""
    # Gradio imports it in the first event: better at the start than while a visitor waits.
    import matplotlib  # noqa: F401

    give_back_large_pieces()
    lanes = Lanes()
    with gr.Blocks(
        title="Parallel group playground",
        fill_width=True,
        # Downloads are made in memory; what Gradio itself keeps goes after an hour.
        delete_cache=(600, 3600),
        analytics_enabled=False,
    ) as demo:
        add_page(lanes)
        for name, endpoint in ENDPOINTS.items():
            gr.api(serving(endpoint, lanes), api_name=name)
    # Every event goes through a bounded queue: off Spaces, POST /run would pass it by otherwise.
    # Two workers, for more only wait for each other (the GIL); 64 waiting, then "busy".
    demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
    bound(demo._queue)
    # Not one of the functions that a page may call: the guard asks it (views/server/guard.py).
    demo.link_head = heading(head_html, lanes)
    return demo


def add_page(lanes: Lanes) -> None:
    """The components of the page, what is beside what, and what is wired to what."""
    start, told = State(), page.first_answer()
    first = told["regions"]

    def region(
        name: str, element: str = "div", kind: type[ShownRegion] = ShownRegion
    ) -> ShownRegion:
        return kind(name, first.get(name, ""), element=element)

    def field(kind: type[StateField], name: str, of: str = "", **more: Any) -> StateField:
        return kind(name, getattr(start, name), first[of or name], region=of or name, **more)

    def slider(name: str) -> StateField:
        return field(SizeSlider, name, size_region(name), stops=told["stops"][name])

    with gr.Column(elem_id="playground"), gr.Column(elem_classes=["app", "waiting"]):
        with gr.Row(elem_id="head"):
            title = region("title")
            section = field(Sections, "view", "nav", element="nav")
            toolbar = region("toolbar")
            language = field(Dropdown, "lang", "language")
            tools = region("tools")
        with gr.Row(elem_id="role-bar"):
            roles, line = region("roles"), region("line")
        with gr.Row(elem_id="page"):
            foot = region("foot")
            with gr.Column(elem_id="controls"):
                with gr.Column(elem_id="sizes"):
                    preset = field(Dropdown, "preset")
                    sizes = [slider(name) for name in SIZES]
                    of_servers = [region(size_region(name)) for name in SIZES_OF_SERVERS]
                # What comes and goes stands below: no input moves under the hand.
                with gr.Column(elem_classes="place"):
                    status, derived = region("status"), region("derived")
                with gr.Column(elem_id="others"):
                    group_type = field(Dropdown, "group_type")
                    settings = Settings("settings", {}, first["folds"], region="folds")
                source = region("source")
            with gr.Column(elem_id="main"):
                notice, tour, job = region("notice"), region("tour"), region("job")
                with gr.Row(elem_classes="bar"):
                    views = region("subs", "nav")
                    region("numbers")  # asked for by the script, once a picture stands
                gpu = field(ChosenGpu, "rank")
                picture = region("picture", "div tabindex=-1", Picture)
                details = region("details")
            region("whole", "p")
        region("hint", "p role=status")
        region("tip", "div role=tooltip hidden")
        answer = ToldBeside("answer", {}, element="div hidden")
        Script(
            "script",
            element="div hidden",
            elem_id="page-script",
            script=widgets.page_script(),
            known=page.script_data(),
            server_functions=asked_by_script(lanes),
        )

    controls = [group_type, preset, *sizes, gpu, section, language, settings]
    pictures = [job, picture, details, status, derived, source, notice, tour, foot, roles, line]
    words = [title, toolbar, tools, views, *of_servers]
    shown = [*pictures, *words, *controls]
    gr.on(
        [control.input for control in controls],
        drawing(lanes, controls, shown),
        controls,
        [*shown, answer],
        show_progress="hidden",
        show_progress_on=answer,
        trigger_mode="always_last",
        preprocess=False,  # as the script says it, one thread fewer for each
        postprocess=False,  # `drawing` does it
        queue=False,  # its queue is that of the lanes
        api_visibility="private",
    ).then(None, answer, None, js=ANSWERED, api_visibility="private")


ANSWERED = "(answer) => document.dispatchEvent(new CustomEvent('answered', { detail: answer }))"
"""For the page's script, once all parts have what they show (views/client/state.js)."""


def asked_by_script(lanes: Lanes) -> list[Callable[..., Awaitable[str]]]:
    """What the page's script and the guard ask beside the event: files, film, costs, the wait."""
    quick = [answering(handler, lanes) for handler in (page.save, film, lens, moves_reel)]
    heavy = (answering(handler, lanes, heavy=True) for handler in (evidence, preview))
    return [*quick, *heavy, telling(lanes)]


def theme() -> gr.themes.Base:
    """A theme with fonts by name only, so that nothing is fetched, and subdued text dark enough to
    read."""
    base = gr.themes.Base(primary_hue="indigo", neutral_hue="slate", font=FONTS, font_mono=MONO)
    return base.set(body_text_color_subdued="*neutral_600", block_info_text_color="*neutral_600")


LAUNCH: Document = {
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
    # Each session keeps what its endpoints last answered, up to 20 MB; nothing here needs one.
    "state_session_capacity": 1,
}


def launch_options() -> Document:
    """The options of launch() for this page, in tests too."""
    # The endpoints are MCP tools too where Gradio's extra for it is installed, as on a Space.
    has_mcp = importlib.util.find_spec("mcp") is not None
    guard = Middleware(Guard, widgets.first_script())
    around = {"middleware": [Middleware(Packing), guard]}
    looks = {"theme": theme(), "css": widgets.style_sheets()}
    return {**LAUNCH, **looks, "mcp_server": has_mcp, "app_kwargs": around}


def launch(demo: gr.Blocks, **more: Any) -> None:
    """Serves the page from a thread of its own, with these options of Gradio's in addition."""
    demo.launch(prevent_thread_lock=True, **{**launch_options(), **more})
    watch(demo.server)


def main() -> None:
    """Serves the page; a port that is invalid or taken is reported in one line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # where it is a file too
    port = os.environ.pop("GRADIO_SERVER_PORT", "").strip()  # Gradio reads it as a number
    instead = f"choose another one, such as GRADIO_SERVER_PORT=8080 {PAGE}"
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        sys.exit(f"GRADIO_SERVER_PORT={port[:30]} is no port, 1 to 65535: {instead}")
    demo = create_app()
    try:
        launch(demo, server_port=int(port) if port else None)
    except OSError:
        taken = f"Port {port} is taken" if port else "Every port from 7860 to 7959 is taken"
        sys.exit(f"{taken}: {instead}")
    demo.block_thread()


if __name__ == "__main__":
    main()
