"""What a person takes along from the page: slides of 16:9, the picture of the job, a trace."""

from __future__ import annotations

import base64
import io
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from cases import every
from painted import KEY
from PIL import Image

from descriptions import LANGUAGES, PAGE, RUN, SAVED, TRAFFIC
from formats.documents.trace import chrome_trace
from formats.launch import emit
from groups import LayoutError
from render.files import paint
from render.files.forms import to_bytes
from render.files.slide import MARGIN, TEXT, WIDOW
from render.files.tables import LONGEST, MOST_LINES, CodeChart
from render.marks import Blocks, Words, advance, is_wide
from render.palette import GROUP_INK, KIND_TINTS, PALETTE, PLAIN_CELL, SHADES, rgb
from render.scenes.job import JobPicture
from request.answers.compare.sides import comparison_of
from request.answers.sentence import question, sentence_of
from request.answers.slow.files import example
from request.context import Context
from request.link import from_query, published, state_texts, to_query
from request.named.kept import kept_context
from request.resolve import from_preset, resolve
from request.state import State
from training.pipeline import plan_of, simulate
from views.all import ENDPOINTS, VIEWS
from views.compare.view import compare_slide
from views.export import download, picture_file, short_address, slide_of
from views.nodes.machines import hosts_pictures, hosts_summary
from views.nodes.map import Sent
from views.nodes.view import nodes_pictures
from views.page import save
from views.parts.examples import EVIDENCE
from views.parts.job import job_pictures
from views.search.view import search_pictures

ADDRESS = "https://example.org/?v=2&rank=5"
LONG = {
    **{"micro_batch": "2", "global_batch": "4096", "cluster": "h100-ib", "recompute": "full"},
    **{"zero": "1", "rank": "7", "of_rank": "7", "cp_algorithm": "ring", "sequence": "131072"},
}
SIZES = {
    "16": State(),
    "256": State(nodes=32, tp=8, pp=4, cp=2),
    "2,048": from_preset("deepseek-v3"),
    "16,384": from_preset("llama3-405b-2"),
}


def pixels_of(controls, view="groups", theme="light", **asked):
    now = replace(controls, view=view, **asked)
    data = picture_file(Context.of(now), "png", theme, ADDRESS)
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_slide_is_16_to_9_and_nothing_touches_its_edge(size, theme):
    picture = pixels_of(SIZES[size], theme=theme, rank="5")
    height, width, _ = picture.shape
    assert (width, height) == (1920, 1080)
    edge = np.ones((height, width), dtype=bool)
    edge[40:-40, 40:-40] = False
    assert (picture[edge] == picture[0, 0]).all()


@pytest.mark.parametrize("view", [*(name for name, view in VIEWS.items() if view.title), "ranks"])
def test_every_view_has_a_slide_of_what_it_shows(view):
    asked = {"kept": "?v=2&tp=4", "measures": "0,1\n1,2", "traces_digest": example()}
    if view == "hang":
        asked["evidence"] = EVIDENCE
    controls = State(tp=4) if view == "hang" else State(framework="llama3")
    picture = pixels_of(controls, view, **asked)
    assert (picture != picture[0, 0]).any(axis=-1).mean() > 0.01


def words_of(drawing):
    """(text, size) of every line on a page."""
    return [
        (one.text, one.size * scale)
        for _, _, scale, marks in drawing.placed
        for one in marks
        if isinstance(one, Words) and one.text
    ]


SHOWN = {
    "kept": "?v=2&tp=4",
    "measures": "0,1\n1,2",
    "evidence": EVIDENCE,
    "traces_digest": example(),
    "rank": "5",
    "against": "gpipe",
}


@every("view, size, language", itertools.product(VIEWS, SIZES, LANGUAGES))
def test_every_letter_on_a_slide_has_10_points_and_stands_on_it(view, size, language):
    state = replace(SIZES[size], view=view, lang=language, **SHOWN)
    if view == "hang" and size == "16":
        state = replace(state, tp=4)
    require_letters(slide_of(Context.of(state), address=ADDRESS))


@every("size, language, in_racks", itertools.product(SIZES, LANGUAGES, (True, False)))
def test_a_slide_of_machines_has_their_order_or_which_groups_leave_one(size, language, in_racks):
    """In four racks by turns; with the seconds of a model, for as many columns as there are."""
    state = replace(SIZES[size], view="hosts", lang=language, model="llama3-70b")
    hosts = [f"machine-{at}.example.org" for at in range(resolve(state).nodes)]
    names = "\n".join(hosts)
    racks = "\n".join(["host,rack", *(f"{host},r{at % 4}" for at, host in enumerate(hosts))])
    made = slide_of(Context.of(state.changed({"hosts": names, "racks": racks * in_racks})))
    require_letters(made)
    said = {text for text, _ in words_of(made)}
    assert (RUN["column_least"][language] in said) == in_racks
    assert (PAGE["audit_stay"][language] in said) != in_racks or size != "16"


def test_an_order_on_a_slide_has_the_racks_of_its_machines():
    names, racks = "a\nb\nc\nd", "host,rack\na,r0\nb,r1\nc,r0\nd,r1"
    asked = {"nodes": 4, "tp": 8, "pp": 1, "ep": 16, "etp": "1", "hosts": names, "racks": racks}
    context = Context.of(State(view="hosts", **asked))
    (_, machines), (_, groups) = hosts_pictures(context)
    red, blue = PALETTE[:2]
    assert [(words, cell.parts) for words, cell in machines.rows] == [
        ("As given", ((red, 0.25), (blue, 0.25), (red, 0.25), (blue, 0.25))),
        ("Better order", ((red, 0.5), (blue, 0.5))),
    ]
    assert [cell.text for _, cell in machines.rows] == ["a, b, c, d", "a, c, b, d"]
    assert machines.legend == ((red, "r0"), (blue, "r1"))
    assert [row[0] for row in groups.rows] == ["ep", "tp", "dp"]  # cp and pp are of one rank
    assert [cell.text for cell in groups.rows[0][1:]] == ["2 of 2", "2 of 2", "0 of 2", "0 of 2"]
    assert "ep 2 → 0" in hosts_summary(context)
    kept = Context.of(State(view="hosts", **{**asked, "hosts": "a\nc\nb\nd"}))
    assert [words for words, _ in hosts_pictures(kept)[0][1].rows] == ["As given"]


def require_letters(made):
    """Of 10 points at least, all on the slide, and titles whole."""
    assert min(size for _, size in words_of(made)) >= 40 / 3 - 1e-6
    for x, y, scale, drawn in made.placed:
        for one in drawn:
            if not isinstance(one, Words):
                continue
            wide = advance(one.text, one.bold, one.mono) * one.size * scale
            left = x + one.x * scale - {"start": 0, "middle": wide / 2, "end": wide}[one.anchor]
            assert left > 24, one.text
            assert not (one.bold and one.text.endswith("…")), one.text  # a title is whole
            assert left + wide < made.width - 24, one.text
            assert 24 < y + one.y * scale < made.height - 24, one.text


def test_the_slides_of_step_time_layouts_and_launch_answer_their_question():
    def said(view, **asked):
        made = slide_of(Context.of(replace(State(), view=view, **asked)), address=ADDRESS)
        return [text for text, _ in words_of(made)]

    step = said("estimate")
    assert any(
        re.match(r"About [\d.]+ s \([\d.]+–[\d.]+\) for a step of Llama", one) for one in step
    )
    assert {"Computation", "Idle in the pipeline", "you are here, with the interval"} <= {*step}
    best = said("search")
    assert [one for one in best if re.fullmatch(r"\d+", one)][:10] == [str(n) for n in range(1, 11)]
    assert "your layout" in best
    command = emit(resolve(State()).job, {"layers": 32}, "megatron")
    assert [one for one in said("launch") if one in command.split("\n")] != []
    assert {"--tensor-model-parallel-size 2", "GPU 0"} <= {
        one.strip(" \\") for one in said("launch")
    }
    cost = said("compare", kept="?v=2&tp=4&nodes=32")
    whole = " ".join(cost)
    assert "tp 4 pp 2 dp 32 is better: " in whole
    assert "tp 4 pp 2 dp 32: 256 GPUs, 32 × 8. tp 2 pp 2 dp 4: 16 GPUs, 2 × 8." in whole
    assert {"tp 4 pp 2 dp 32", "tp 2 pp 2 dp 4"} <= {*cost}
    assert "A step takes about" in cost
    assert "pp: 8 groups on 2 nodes, 4.29 GB a step" in said("nodes")


def test_a_slide_of_layouts_says_all_of_each():
    """Of three parts and more too, and nothing ends in dots."""
    large = {"model": "llama3-405b", "nodes": 64, "tp": 8, "pp": 16, "recompute": "selective"}
    of_experts = {"model": "deepseek-v3", "nodes": 16, "pp": 4, "ep": 8}
    parts = {TRAFFIC[name]["en"] for name in TRAFFIC if name.startswith("with_")}
    larger = {"nodes": 16384, "tp": 8, "pp": 16, "cp": 4, "model": "llama3-405b"}
    jobs = [replace(State(), **asked) for asked in ({}, large, of_experts, larger)]
    for job in (*jobs, from_preset("deepseek-v3")):
        context = Context.of(replace(job, view="search"))
        ((_, table),) = search_pictures(context)
        lines = [line for row in table.rows for line in row[1].split("\n")]
        said = {text for text, _ in words_of(slide_of(context, address=ADDRESS))}
        assert any(" · " in line and line.split(" · ")[0] in parts for line in lines)
        assert [line for line in lines if line not in said] == []
        assert [line for line in said if line.endswith("…")] == []


def test_no_line_of_a_slide_s_sentence_is_a_word_left_over():
    made = Context.of(replace(from_preset("deepseek-v3"), lang="zh"))
    assert sentence_of(made.layout, 0, "zh").endswith("跨出节点。")
    sentence = [text for text, size in words_of(slide_of(made)) if size == TEXT]
    assert len(sentence) > 1
    assert all(advance(line) >= WIDOW for line in sentence)


def test_in_the_dark_gpus_of_which_nothing_is_known_are_as_quiet_as_plain_cells():
    made = slide_of(Context.of(State(evidence=EVIDENCE, view="hang")), "dark")
    cells = next(
        mark
        for *_, drawn in made.placed
        for mark in drawn
        if isinstance(mark, Blocks) and not isinstance(mark.fill, str)
    )
    shades = SHADES["dark"]
    assert set(cells.fill) == {PLAIN_CELL["dark"], shades["culprit"], shades["first"]}


def test_a_slide_of_nodes_names_every_kind_that_sends_and_files_name_all():
    for state in (State(), from_preset("deepseek-v3")):
        context = Context.of(replace(state, view="nodes"))
        said = " ".join(text for text, _ in words_of(slide_of(context))).replace(":", " ").split()
        every = {name for name, grouping in context.layout.every.items() if grouping.size > 1}
        assert {*Sent.of(context).groupings} <= {*said}
        map_picture, table = (picture for _, picture in nodes_pictures(context))
        assert len(map_picture.kinds) == len(Sent.of(context).groupings)
        assert every <= {name for kinds, *_ in table.rows for name in kinds.split()}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("more", [{}, LONG], ids=["short", "long"])
def test_the_address_stands_whole_on_a_slide_apart_from_the_sizes(size, more):
    """A long one in several lines: one that is cut opens another page."""
    state = replace(SIZES[size], **more)
    address = f"https://huggingface.co/spaces/somebody/playground?{to_query(state)}"
    made = slide_of(Context.of(state), address=address)
    on_page = (drawn for *place, drawn in made.placed if place == [0.0, 0.0, 1.0])
    words = [one for drawn in on_page for one in drawn if isinstance(one, Words)]
    lines = sorted((one for one in words if one.anchor == "end"), key=lambda one: one.y)
    assert all(one.x - advance(one.text) * one.size >= MARGIN for one in lines)
    text = "".join(one.text for one in lines)
    assert (len(lines) > 1) == bool(more)
    assert address.removeprefix("https://") == text.removeprefix("https://")
    (sizes,) = (one for one in words if one.text.startswith(f"{size} GPUs, "))
    end = sizes.x + advance(sizes.text) * sizes.size
    line = lines[0]
    assert line.y > sizes.y or line.x - advance(line.text) * line.size > end + 12


def test_the_address_of_a_slide_says_the_other_layout_by_what_differs():
    """In one line, and it opens the very same comparison."""
    job = replace(from_preset("llama3-405b-2"), lang="zh", global_batch="2048", recompute="full")
    for change in ({"tp": 4}, {"zero": "3", "nodes": 4096}, {"pipe_layout": "", "vpp": "2"}):
        kept = f"https://a.example/?{to_query(replace(job, **change))}"
        state = replace(job, view="compare", kept=kept)
        address = f"https://huggingface.co/spaces/somebody/playground?{to_query(state)}"
        short = short_address(address, Context.of(state))
        assert len(short) < len(address) - len(kept)
        assert short.partition("&kept=")[2].count("=") <= 2
        again = from_query(short.partition("?")[2])
        sides = [kept_context(Context.of(one)) for one in (state, again)]
        assert sides[0].layout == sides[1].layout
        assert replace(sides[0].state, kept="") == replace(sides[1].state, kept="")
        memory = short_address(address, Context.of(replace(state, view="memory")))
        assert "kept" not in memory
        assert memory.startswith(address.partition("?")[0] + "?v=2&")
    assert short_address(ADDRESS, Context.of(State())) == ADDRESS


@pytest.mark.parametrize("name", ["llama3-405b-2", "deepseek-v3", "megatron2021-76.1b"])
def test_the_address_of_a_published_layout_is_its_name(name):
    state = State(**{**published(name), "preset": name}).changed({"view": "memory", "lang": "zh"})
    for changes in ({}, {"zero": "2", "micro_batch": ""}):
        state = state.changed(changes)
        address = f"https://huggingface.co/spaces/somebody/playground?{to_query(state)}"
        short = short_address(address, Context.of(state))
        assert len(short) < 130
        assert state_texts(from_query(short.partition("?")[2])) == state_texts(state)


def test_every_slide_has_the_question_of_its_view_and_the_answer():
    for name, view in VIEWS.items():
        context = Context.of(replace(State(tp=4 if name == "hang" else 2), view=name, **SHOWN))
        said = " ".join(text for text, _ in words_of(slide_of(context, address=ADDRESS)))
        if view.title:
            wanted = view.title["en"], view.summary(context) if view.summary else ""
        else:
            wanted = question(5, "en"), sentence_of(context.layout, 5, "en")
        assert " ".join(wanted).strip() in said, name


def test_a_command_that_is_too_long_says_how_much_is_left_out():
    chart = CodeChart("\n".join(f"line {n}" for n in range(40)) + "\n" + "x" * 200, "{count} more")
    assert len(chart.lines) == MOST_LINES
    assert chart.lines[-2:] == ["line 24", "16 more"]
    assert CodeChart("x" * 200, "").lines == ["x" * (LONGEST - 1) + "…"]


def test_a_slide_is_in_the_language_of_the_page():
    for view in VIEWS:
        state = replace(State(tp=4 if view == "hang" else 2), view=view, lang="zh", **SHOWN)
        made = slide_of(Context.of(state), address="")
        english = {text for text, _ in words_of(slide_of(Context.of(replace(state, lang="en"))))}
        same = [text for text, _ in words_of(made) if text in english and " " in text]
        plain = [one for one in same if not re.fullmatch(r"[-–\w\d.,()×·/% =…:\\]*", one)]
        assert plain == [], view
        assert any(is_wide(text) for text, _ in words_of(made)), view


def saved(form):
    """The file of a Chinese page, and what is said beside it."""
    file = download(Context.of(State(lang="zh")), form)
    return base64.b64decode(file["data"]), file.get("note")


def test_without_a_chinese_font_a_file_is_in_english_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr(paint, "chinese_font", lambda: "")
    english = download(Context.of(State()), "slide-png")["data"]
    data, note = saved("slide-png")
    assert data == base64.b64decode(english)
    assert note == SAVED["font"]["zh"]
    assert saved("pdf")[1] == SAVED["font"]["zh"]
    svg, note = saved("slide-svg")
    assert "GPU 0 和谁在一组？" in svg.decode()  # noqa: RUF001
    assert note is None


@pytest.mark.skipif(not paint.chinese_font(), reason="no font with Chinese letters")
def test_with_a_chinese_font_a_png_has_the_letters_and_no_boxes():
    data, note = saved("slide-png")
    assert note is None
    assert data != base64.b64decode(download(Context.of(State()), "slide-png")["data"])
    shapes = [paint.glyphs(letter, False)[0].vertices for letter in "和谁在一"]
    assert len({shape.tobytes() for shape in shapes}) == 4  # a missing letter is the same box


def test_the_picture_of_the_job_fills_the_groups_of_the_chosen_gpu():
    from render.files import figure

    now = State(rank="5")
    ((_, scene),) = job_pictures(Context.of(now))
    assert isinstance(scene, JobPicture)
    drawn = to_bytes(figure.figure([("", scene)], words=KEY), "png")
    pixels = np.asarray(Image.open(io.BytesIO(drawn)).convert("RGB"))
    top = figure.MARGIN + figure.TITLE + 10

    def fill(rank):
        x = figure.MARGIN + scene.x[rank] + 4
        y = top + scene.y[rank] + scene.sides[1] / 2
        return tuple(int(part) for part in pixels[int(2 * y), int(2 * x)])

    tints = KIND_TINTS["light"]
    wanted = {5: GROUP_INK["light"], 4: tints["tp"], 13: tints["pp"], 1: tints["dp"]}
    assert {rank: fill(rank) for rank in wanted} == {
        rank: tuple(rgb(colour)) for rank, colour in wanted.items()
    }


def test_the_address_is_what_the_browser_says_without_control_characters():
    sent = {"state": {}, "form": "slide-svg", "address": "https://a.b/\n\x1b[31m?v=2"}
    file = json.loads(save(json.dumps(sent)))
    assert file["name"] == "auto-tp2-cp1-dp4-pp2.svg"
    assert base64.b64decode(file["data"]).startswith(b"<?xml")
    long = json.loads(save(json.dumps({**sent, "address": "https://a.b/?" + "x" * 90_000})))
    assert len(base64.b64decode(long["data"])) < 2_000_000


# -- the trace -------------------------------------------------------------------------------------


def events_of(trace):
    return [one for one in json.loads(trace)["traceEvents"] if one["ph"] == "X"]


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "dualpipe"])
def test_a_trace_has_every_op_once_where_the_schedule_runs_it(schedule):
    timeline = simulate(plan_of(schedule, p=4, m=8))
    events = events_of(chrome_trace({schedule: timeline.rows()}))
    found = [(one["tid"], one["args"]["op"], one["ts"], one["ts"] + one["dur"]) for one in events]
    wanted = [
        (rank, op, start * 1000, end * 1000)
        for rank, row in enumerate(timeline.rows())
        for op, start, end in row
    ]
    assert [one[:2] for one in found] == [one[:2] for one in wanted]
    assert np.allclose([one[2:] for one in found], [one[2:] for one in wanted])
    assert all(one["dur"] > 0 for one in events)


def test_the_page_saves_both_schedules_with_the_ranks_that_run_them():

    state = State(nodes=4, pp=4, view="pipeline", against="gpipe", pipe_group="3")
    file = download(Context.of(state), "trace")
    assert file["name"].endswith(".json")
    data = json.loads(base64.b64decode(file["data"]))
    names = [one["args"]["name"] for one in data["traceEvents"] if one["ph"] == "M"]
    assert names[0].startswith("1F1B")
    assert names[1:5] == [f"pp {place}, rank {3 + 8 * place}" for place in range(4)]
    assert names[5].startswith("GPipe")
    alone = replace(state, pp=1)
    with pytest.raises(LayoutError):
        download(Context.of(alone), "trace")


def test_the_endpoint_answers_with_the_same_trace():
    asked = {"schedule": "zb-h1", "p": 4, "m": 8}
    answered = ENDPOINTS["pipeline_schedule"](trace=True, **asked)
    rows = json.loads(ENDPOINTS["pipeline_schedule"](**asked))["ops"]
    assert [one["args"]["op"] for one in events_of(answered)] == [
        op for row in rows for op, _, _ in row
    ]


@every("size, kept", [("16", "~tp=4"), ("2,048", "~pp=8"), ("16,384", "~pp=8")])
def test_a_slide_of_two_layouts_shows_both_jobs_each_below_its_costs(size, kept):
    context = Context.of(replace(SIZES[size], view="compare", kept=kept))
    shown = compare_slide(context)
    assert [type(scene) for _, scene in shown.pictures] == [JobPicture, JobPicture]
    words = " ".join(text for text, _ in words_of(slide_of(context, address=ADDRESS)))
    found = context.once(comparison_of)
    for side in found.sides:
        assert f"{side.name}: about {side.cost()['cost_step'][1]} a step" in words


def test_a_slide_of_two_layouts_whose_numbers_would_be_small_is_a_table_of_all_costs():
    context = Context.of(replace(SIZES["256"], view="compare", kept="~pp=8"))
    assert "Bytes out of NVLink domains" in dict(words_of(slide_of(context, address=ADDRESS)))
