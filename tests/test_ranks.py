"""The Ranks view: all about one rank, and which groups some ranks share.

Every number that it shows is worked out here a second time, from the lists of groups alone.
"""

from __future__ import annotations

import html
import random
import re
from dataclasses import replace

import pytest
from cases import every
from markup import only, select, table, text_of, written
from pages import LAYOUTS, MOE, groups_of, shown

from descriptions import CARD as CARD_WORDS
from descriptions import PAGE, REFUSALS, counted
from request.resolve import resolve
from request.state import State
from views.page import answer

# -- The card of one rank ------------------------------------------------------------------------


def card(controls: State, rank, language: str = "en") -> dict[str, str]:
    """What the card says, by the name of each line in PAGE."""
    picture = shown(controls, "ranks", language, rank=rank)
    lines = zip(select(picture, "dt"), select(picture, "dt + dd"), strict=True)
    names = {PAGE[name][language]: name for name in CARD}
    return {names[written(term)]: text_of(said) for term, said in lines}


CARD = (
    *("rank_place", "dense_grid", "expert_grid", "rank_stage", "rank_chunks", "rank_experts"),
    *("rank_samples", "rank_neighbours"),
)


def said(name: str, **facts) -> str:
    return PAGE[name]["en"].format(**facts)


@every("rank", [0, 5, 12, 31])
def test_the_card_tells_the_place_the_coordinates_and_the_pipeline_neighbours(rank):
    # tp 2 (1 rank apart), cp 2 (2), dp 4 (4), pp 2 (16); etp 1, ep 8 (1), edp 2 (8), pp 2 (16)
    found = card(MOE, rank)
    assert found["rank_place"] == CARD_WORDS["place"]["en"].format(node=rank // 8, local=rank % 8)
    assert found["dense_grid"] == (
        f"tp {rank % 2}, cp {rank // 2 % 2}, dp {rank // 4 % 4}, pp {rank // 16}"
    )
    assert found["expert_grid"] == f"etp 0, ep {rank % 8}, edp {rank // 8 % 2}, pp {rank // 16}"
    other = (rank + 16) % 32
    assert found["rank_neighbours"] == said("rank_ring", before=other, after=other)
    chunks = {0: "0 + 3", 1: "1 + 2"}[rank // 2 % 2]
    assert found["rank_chunks"] == said("rank_chunks_of", chunks=chunks, total=4)


def test_without_a_pipeline_or_context_parallelism_the_card_says_so_or_leaves_it_out():
    found = card(State(pp=1), 3)
    assert found["rank_neighbours"] == PAGE["rank_no_pipeline"]["en"]
    assert "rank_chunks" not in found
    assert "expert_grid" not in card(State(framework="llama3"), 3)


def test_the_zig_zag_of_sequence_chunks_gives_every_rank_an_early_and_a_late_one():
    controls = State(nodes=1, tp=1, pp=1, cp=8)
    held = []
    for rank in range(8):
        numbers = [int(n) for n in re.findall(r"\d+", card(controls, rank)["rank_chunks"])]
        assert numbers[2] == 16
        assert numbers[0] + numbers[1] == 15
        held += numbers[:2]
    assert sorted(held) == list(range(16))


LAYERS = {
    "an even cut": ({"layers": "24"}, {0: "0–11", 1: "12–23"}),
    "virtual stages go round": (
        {"layers": "16", "vpp": "2"},
        {0: "0–3; 8–11", 1: "4–7; 12–15"},
    ),
    "embedding and loss count": (
        {"layers": "70", "pp": 12, "tp": 4, "nodes": 48, "account": True},
        {0: "0–4", 1: "5–10", 10: "59–64", 11: "65–69"},
    ),
    "a pipeline layout": (
        {"layers": "Et*3|(tt|)*29,m|L", "vpp": "2", "pp": 16, "tp": 1, "nodes": 256, "ep": 64},
        {0: "0–2; 33–34", 1: "3–4; 35–36", 13: "27–28; 59–60", 15: "31–32; none"},
    ),
}


@every("name", LAYERS)
def test_the_card_tells_the_layers_of_the_stage(name):
    changes, wanted = LAYERS[name]
    controls = State(**changes)
    layout = resolve(controls)
    pp = layout.mesh.size("pp")
    for stage, layers in wanted.items():
        rank = stage * layout.world_size // pp
        told = card(controls, rank)["rank_stage"]
        assert told.startswith(said("rank_stage_of", stage=stage, stages=pp))
        words = "rank_chunks_layers" if ";" in layers else "rank_layers_of"
        assert said(words, layers=layers) in told
        assert (PAGE["rank_embedding"]["en"] in told) == (stage == 0)
        assert (PAGE["rank_output"]["en"] in told) == (stage == pp - 1)


def test_the_card_is_of_the_model_that_counts_and_leads_to_what_is_missing():
    found = card(MOE, 0)
    assert said("rank_layers_of", layers="0–23") in found["rank_stage"]  # of Qwen3 30B-A3B
    assert said("rank_samples_of", samples="", count="").split(":")[0] in found["rank_samples"]
    assert said("rank_experts_of", experts="0–15", total=128) in found["rank_experts"]
    own = replace(MOE, model="own")
    assert PAGE["rank_give_layers"]["en"] in card(own, 0)["rank_stage"]
    assert PAGE["rank_give_experts"]["en"] in card(own, 0)["rank_experts"]
    assert 'data-leads="field-experts"' in shown(own, "ranks", rank=0)


def test_the_experts_of_an_ep_group_are_all_experts_once():
    controls = State(nodes=4, tp=2, pp=2, ep=4, experts="32")
    layout = resolve(controls)
    for ranks in layout.every["ep"].groups():
        held = []
        for rank in ranks:
            told = card(controls, int(rank))["rank_experts"]
            first, last, total = (int(n) for n in re.findall(r"\d+", told)[:3])
            assert total == 32
            held += range(first, last + 1)
        assert held == list(range(32))
    # etp is tp, 2: each rank has a slice of each of its experts.
    slices = [
        said("rank_expert_slice", slice=rank % 2, etp=2) in card(controls, rank)["rank_experts"]
        for rank in range(4)
    ]
    assert all(slices)


def test_the_samples_of_the_data_parallel_ranks_are_the_batch_once():
    controls = State(micro_batch="2", global_batch="24")  # dp 4: three steps of 8 samples
    dp = resolve(controls).every["dp"].groups()[0].tolist()
    read_by = {}
    for place, rank in enumerate(dp):
        told = card(controls, rank)["rank_samples"]
        assert told.startswith(said("rank_reads", place=place, dp=4))
        assert counted(3, "microbatch", "en") in told
        read_by[rank] = [
            range(int(first), int(last) + 1) for first, last in re.findall(r"(\d+)–(\d+)", told)
        ]
    steps = [[runs[step] for runs in read_by.values()] for step in range(3)]
    assert [s for step in steps for run in step for s in run] == list(range(24))


@every("name", LAYOUTS)
def test_the_card_lists_every_group_of_the_rank_with_its_members(name):
    controls = LAYOUTS[name]
    layout = resolve(controls)
    groups = groups_of(layout)
    for rank in (0, layout.world_size // 2 - 1, layout.world_size - 1):
        rows = table(shown(controls, "ranks", rank=rank), "peers")
        assert sorted(kind for kinds, *_ in rows for kind in kinds.split()) == sorted(groups)
        for kinds, *cells in rows:
            for kind in kinds.split():
                mine = [ranks for ranks in groups[kind] if rank in ranks]
                if not mine:
                    assert cells == [CARD_WORDS["none"]["en"].format(kind=kind)]
                    continue
                index, size, members, nodes = cells
                if kind == kinds.split()[0]:
                    assert groups[kind][int(index)] == mine[0]
                assert size == f"{len(mine[0]):,}"
                assert int(nodes) == len({one // layout.gpus_per_node for one in mine[0]})
                told = [int(number) for number in re.findall(r"\d+", members)]
                cut = len(mine[0]) > 24
                assert told == (mine[0][:12] + mine[0][-12:] if cut else mine[0])
                assert ("…" in members) == cut


def test_a_gpu_of_a_middle_stage_is_in_no_embedding_group():
    rows = table(shown(State(pp=4), "ranks", rank="5"), "peers")
    assert ["embd", CARD_WORDS["none"]["en"].format(kind="embd")] in rows


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("rank_stage", {"layers": "25"}),
        ("rank_stage", {"layers": "0"}),
        ("rank_stage", {"layers": "<img src=x onerror=alert(1)>"}),
        ("rank_stage", {"layers": "Et|x|L"}),
        ("rank_stage", {"layers": "t" * 9000}),
        ("rank_stage", {"layers": ["24"]}),
        pytest.param("rank_stage", {"layers": 10**5000}, id="huge layers"),
        ("rank_stage", {"layers": "24", "vpp": "5"}),
        ("rank_stage", {"layers": "24", "vpp": {"a": 1}}),
        ("rank_stage", {"layers": "24", "vpp": "<script>"}),
        ("rank_stage", {"layers": "24", "vpp": "2", "pp": 1}),
        ("rank_experts", {"experts": "7", "ep": 2}),
        ("rank_experts", {"experts": "-4"}),
        ("rank_experts", {"experts": [8]}),
        ("rank_experts", {"experts": "<img src=x onerror=alert(1)>"}),
        ("rank_samples", {"micro_batch": "3", "global_batch": "8"}),
        ("rank_samples", {"micro_batch": "many", "global_batch": "8"}),
        ("rank_samples", {"micro_batch": "1", "global_batch": {"a": 1}}),
        pytest.param("rank_samples", {"micro_batch": "1", "global_batch": 10**5000}, id="huge"),
    ],
)
def test_a_number_of_the_model_that_does_not_fit_is_refused_in_its_place(line, changes, language):
    controls = State(**changes)
    picture = shown(controls, "ranks", language, rank="3")
    assert picture.count('class="refusal"') == 1
    assert "<img" not in picture
    assert "<script" not in picture
    lines = card(controls, "3", language)
    start = State(experts="16") if line == "rank_experts" else State()
    assert set(lines) == set(card(start, "3", language))
    words = text_of(only(picture, ".refusal[role=alert]"))
    assert lines[line] == words
    assert 10 < len(words) < 400
    # Everything else of the card stays, and so does the layout.
    assert table(picture, "peers")
    assert not answer(replace(controls, lang=language)).status


NO_RANK = {
    "too high": "16",
    "negative": "-1",
    "half": "2.5",
    "a word": "many",
    "HTML": "<img src=x onerror=alert(1)>",
    "a list": [3],
    "an object": {"a": 1},
    "huge": 10**5000,
}


@every("language", ["en", "zh"])
@every("rank", NO_RANK.values(), ids=NO_RANK)
def test_a_rank_that_does_not_exist_is_said_in_words(rank, language):
    picture = shown(State(), "ranks", language, rank=rank)
    assert "<img" not in picture
    assert picture.count('class="refusal"') == 1
    assert 'class="rank"' not in picture
    if rank == "16":
        words = "there is no rank 16: ranks go from 0 to 15"
        if language == "zh":
            words = REFUSALS["no-such-rank"]["zh"].format(rank=16, first=0, last=15)
        assert words.lower() in html.unescape(picture).lower()


# -- Ranks to groups -----------------------------------------------------------------------------


@every("name", LAYOUTS)
def test_the_groups_that_some_ranks_share_are_those_that_hold_them_all(name):
    controls = LAYOUTS[name]
    layout = resolve(controls)
    groups = groups_of(layout)
    chance = random.Random(7)
    asked = [{0}, set(range(layout.world_size))] if layout.world_size <= 48 else [{0}]
    for _ in range(6):
        ranks = chance.choice(groups[chance.choice(list(groups))])
        asked.append(set(chance.sample(ranks, min(len(ranks), chance.choice((2, 3, 8))))))
        asked.append(set(chance.sample(range(layout.world_size), 3)))
    for ranks in asked:
        picture = shown(controls, "ranks", ranks=", ".join(map(str, ranks)))
        holding = {
            kind: next((g for g in found if ranks <= set(g)), None)
            for kind, found in groups.items()
        }
        together = {kind: group for kind, group in holding.items() if group}
        rows = table(picture, "shared")
        assert sorted(kind for kinds, *_ in rows for kind in kinds.split()) == sorted(together)
        sizes = []
        for kinds, index, size, _, nodes in rows:
            group = together[kinds.split()[0]]
            sizes.append(len(group))
            assert all(together[kind] == group for kind in kinds.split())
            assert groups[kinds.split()[0]][int(index.split(", ")[0])] == group
            assert size == f"{len(group):,}"
            assert int(nodes) == len({rank // layout.gpus_per_node for rank in group})
        assert sizes == sorted(sizes)
        apart = "".join(text for text in map(text_of, select(picture, "p")) if text[:5] == "Apart")
        parts = dict(re.findall(r"([\w-]+) \((\d+)\)", apart))
        assert set(parts) == set(groups) - set(together)
        for kind, count in parts.items():
            assert int(count) == sum(bool(ranks & set(group)) for group in groups[kind])
        if not together:
            assert PAGE["together_none"]["en"] in text_of(picture)
        else:
            exact = said(
                "together_exact",
                kind=" = ".join(rows[0][0].split()),
                index=rows[0][1].split(", ")[0],
            )
            assert (exact in text_of(picture)) == (sizes[0] == len(ranks))


LOG = """[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout:
WorkNCCL(SeqNum=11, OpType=ALLREDUCE, NumelIn=8192, Timeout(ms)=600000) ran for 600012 ms
[rank 11] something else at 10.0.0.12:29500, rank=7 and Rank: 15"""


def test_the_lines_of_a_log_are_read_for_their_ranks():
    for text, ranks in ((LOG, "3, 7, 11, 15"), ("1-2 9..10;9", "1–2, 9–10"), ("[4, 5]", "4–5")):
        picture = shown(State(), "ranks", ranks=text)
        count = len(re.findall(r"\d+", ranks))
        understood = said("together_ranks", ranks=ranks, count=counted(count, "rank", "en"))
        assert understood in text_of(picture)
    rows = table(shown(State(), "ranks", ranks=LOG), "shared")
    assert all({"3", "7", "11", "15"} <= set(row[3].split(", ")) for row in rows)


NO_RANKS = {
    "a word": "abc",
    "a word among ranks": "3, x",
    "a rank too high": "16",
    "a range backwards": "5-2",
    "a float": "1e3",
    "a range too long": "0-99999999",
    "HTML": "<img src=x onerror=alert(1)>",
    "a long number": "9" * 5000,
    "a long list": "1," * 60_000,
    "an object": {"a": 1},
    "a boolean": True,
}


@every("language", ["en", "zh"])
@every("ranks", NO_RANKS.values(), ids=NO_RANKS)
def test_what_is_no_list_of_ranks_is_refused_in_words(ranks, language):
    picture = shown(State(), "ranks", language, ranks=ranks)
    assert picture.count('class="refusal"') == 1
    assert "<img" not in picture
    assert len(text_of(only(picture, ".refusal"))) < 300
    assert 'class="rank"' in picture  # the card stands


@every("nothing", ["", "  \n", None])
def test_nothing_pasted_is_an_invitation(nothing):
    for language in ("en", "zh"):
        picture = shown(State(), "ranks", language, ranks=nothing)
        assert PAGE["together_empty"][language] in html.unescape(picture)
        assert "refusal" not in picture
