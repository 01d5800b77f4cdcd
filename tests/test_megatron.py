"""Every group of a real job, against megatron-core 0.16.1 run for real.

tests/data/megatron_dense.json has its dense groups, megatron_groups.json the others and the errors,
megatron_ranks.json what single ranks say of themselves; megatron_ids.json lists all recorded cases.
"""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from cases import every

from groups import Axis, LayoutError, Mesh, fit, rank_groups
from groups.megatron.grids import GTP, ORDER, expert_grid, grids, mended
from groups.megatron.parallel_state import FAMILIES, groupings, process_groups

DATA = Path(__file__).parent / "data"


def read(name: str) -> dict:
    return json.loads((DATA / f"{name}.json").read_text())


DENSE, OTHERS, RANKS = (read(f"megatron_{name}") for name in ("dense", "groups", "ranks"))
IDS = read("megatron_ids")["ids"]
MADE = [case for case in OTHERS["cases"] if "error" not in case]
ERRORS = [case for case in OTHERS["cases"] if "error" in case]
DENSE_MADE = {c["id"]: c for c in DENSE["cases"] if c["kind"] == "initialize_model_parallel"}
OPTIONS = {
    "n_dist_opt": "num_distributed_optimizer_instances",
    "hcp": "hierarchical_context_parallel_sizes",
    "hybrid_cp": "hybrid_context_parallel",
    "embedding_indices": "embedding_stages",
    "vpp": "virtual_pipeline_model_parallel_size",
}


ENORMOUS = pytest.param(10**5000, id="10**5000")  # too long for Python to print


def by_id(cases: list[dict]) -> list:
    return [pytest.param(case, id=case["id"]) for case in cases]


def lists(groups) -> list[list[int]]:
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def arguments(case: dict) -> dict:
    """A recorded case as the arguments of process_groups, with the world."""
    asked = {name: case["sizes"][name] for name in ("tp", "cp", "pp", "ep")}
    asked |= {OPTIONS[name]: value for name, value in case["options"].items()}
    etp = case["sizes"]["etp"] if case["etp_given"] else None
    return {"world": case["world_size"], "order": case["order"], "etp": etp, **asked}


def refused(**asked) -> LayoutError:
    with pytest.raises(LayoutError) as refusal:
        process_groups(**asked)
    return refusal.value


def assert_alternatives_work(error: LayoutError, asked: dict) -> None:
    for cure in error.alternatives:
        assert process_groups(**{**asked, **cure}), cure


# -- the recorded cases --------------------------------------------------------------------------


def test_every_recorded_case_is_in_the_data_once_a_part():
    """The dense groups of a started job are in one file, its other groups in another."""
    kept = [{case["id"] for case in data["cases"]} for data in (DENSE, OTHERS, RANKS)]
    assert set().union(*kept) == set(chain(*IDS.values()))
    assert len(set(chain(*IDS.values()))) == sum(map(len, IDS.values())) == 224
    assert kept[0] & kept[1] == set(IDS["initialize_model_parallel"])
    assert not kept[2] & (kept[0] | kept[1])
    for data in (DENSE, OTHERS, RANKS):
        assert len(data["cases"]) == data["meta"]["n_cases"]
        assert "0.16.1" in data["meta"]["package"]


def test_every_kind_of_case_is_kept_whole():
    kinds = {
        "initialize_model_parallel": {case["id"] for case in MADE},
        "error": {
            *(case["id"] for case in ERRORS),
            *(case["id"] for case in DENSE["cases"] + RANKS["cases"] if case["kind"] == "error"),
        },
        **{
            kind: {case["id"] for case in DENSE["cases"] + RANKS["cases"] if case["kind"] == kind}
            for kind in ("masked_orthogonal", "rank_generator", "per_rank", "hyper_comm_grid")
        },
    }
    assert {kind: set(ids) for kind, ids in IDS.items()} == kinds
    assert {kind: len(ids) for kind, ids in kinds.items()} == {
        "initialize_model_parallel": 131,
        "error": 38,
        "masked_orthogonal": 25,
        "rank_generator": 21,
        "per_rank": 5,
        "hyper_comm_grid": 4,
    }


@every("case", by_id(MADE))
def test_every_group_is_megatrons_to_the_last_rank(case):
    found = process_groups(**arguments(case))
    parts = (case, DENSE_MADE[case["id"]])
    listed = {name: groups for part in parts for name, groups in part.get("groups", {}).items()}
    hashed = {name: sha for part in parts for name, sha in part.get("groups_sha256", {}).items()}
    assert set(found) == set(listed) | set(hashed)
    for name, expected in listed.items():
        assert lists(found[name]) == expected, name
    for name, expected in hashed.items():
        text = json.dumps(lists(found[name]), separators=(",", ":")).encode()
        assert hashlib.sha256(text).hexdigest() == expected, name


@every("case", by_id([c for c in RANKS["cases"] if c["kind"] == "per_rank"]))
def test_every_rank_says_of_itself_what_it_says_in_megatron(case):
    found = groupings(**arguments(case))

    def place(name: str, rank: int) -> int:
        return found[name].members(rank).tolist().index(rank)

    def first(name: str, rank: int) -> int:
        return int(found[name].members(rank)[0])

    assert [said["rank"] for said in case["per_rank"]] == list(range(case["world_size"]))
    for said in case["per_rank"]:
        rank = said["rank"]
        stages = found["pp"].members(rank).tolist()
        before, after = found["pp"].neighbours(rank)
        ours = {
            "rank": rank,
            **{f"{name}_src": first(name, rank) for name in ("tp", "dp", "mp")},
            "dp_cp_src": first("dp-cp", rank),
            **{f"{name}_rank": place(name, rank) for name in ("tp", "pp", "dp", "cp", "ep", "etp")},
            "edp_rank": place("edp", rank),
            "dp_cp_rank": place("dp-cp", rank),
            "tp_ep_rank": place("tp-ep", rank),
            "pp_first": stages[0],
            "pp_last": stages[-1],
            "pp_next": after,
            "pp_prev": before,
            "is_first_stage": rank == stages[0],
            "is_last_stage": rank == stages[-1],
            "in_embedding_group": found["embd"].index_of(rank) is not None,
            "in_position_embedding_group": found["pos-embd"].index_of(rank) is not None,
        }
        assert ours == said


@every("case", by_id([c for c in RANKS["cases"] if c["kind"] == "hyper_comm_grid"]))
def test_a_grid_of_the_same_package_makes_the_same_groups(case):
    """HyperCommGrid sorts the names it is asked for; taken as given, the last would be fastest."""
    axes = zip(case["dim_names"], case["shape"], strict=True)
    mesh = Mesh(tuple(Axis(name, size) for name, size in axes), case["rank_offset"])
    groups = rank_groups(mesh, case["key"]).tolist()
    assert groups == case["groups"]["ordered"]
    assert rank_groups(mesh, "-".join(case["dims"])).tolist() == groups
    assert set(map(frozenset, groups)) == set(map(frozenset, case["groups"]["as_given"]))


# -- what Megatron refuses -----------------------------------------------------------------------

# Python's, torch's or nobody's words, not Megatron's: a size of 0 divides by zero, negative ones
# ask for ranks below 0, and without a world there is no torch.distributed.
WORDLESS = {"mg-0541", "mg-0543", "mg-0544", "mg-0557"}

# No cure can exist: none of the recorded calls is so.
INCURABLE: set[str] = set()


@every("case", by_id(ERRORS))
def test_what_megatron_refuses_is_refused_with_its_words_and_a_cure(case):
    asked = {OPTIONS.get(name, name): value for name, value in case["config"].items()}
    error = refused(**asked)
    said = case["error"]["message"]
    if case["error"]["type"] == "KeyError":
        said = f"KeyError: {said}"
    if case["id"] in WORDLESS:
        assert not error.quote
        assert case["error"]["type"] in ("ZeroDivisionError", "ValueError") or not said
    else:
        assert error.quote
        assert said.startswith(error.quote)
    assert bool(error.alternatives) == (case["id"] not in INCURABLE)
    assert len(error.alternatives) <= 3
    assert error.control
    assert_alternatives_work(error, asked)


def test_a_world_that_the_sizes_do_not_fill_exactly_is_refused():
    """A mask over axes of 2 x 2 x 2 = 8 on a world of 12 ends in an assertion of Megatron's."""
    (case,) = (c for c in RANKS["cases"] if c["kind"] == "error")
    sizes = dict(zip("abc", case["parallel_size"], strict=True))
    with pytest.raises(LayoutError) as refusal:
        fit(case["world_size"], order="a-b-c", **sizes)
    assert refusal.value.alternatives
    for cure in refusal.value.alternatives:
        assert fit(case["world_size"], order="a-b-c", **{**sizes, **cure}).world_size == 12


def test_nonsense_that_is_marked_in_the_data_is_refused():
    marked = [
        case
        for case in DENSE["cases"] + OTHERS["cases"] + RANKS["cases"]
        if "note" in case or "masked_orthogonal_unchecked" in case
    ]
    assert [case["id"] for case in marked] == ["mg-0557"]
    for case in marked:
        asked = {OPTIONS.get(name, name): value for name, value in case["config"].items()}
        assert refused(**asked).control == "world"


@every(
    "asked, quote",
    [
        ({"world": 16, "tp": 2, "pp": 2, "order": "tp-pp"},
         "The size of (dp) is (4), but you haven'tspecified the order (tp-pp)."),
        ({"world": 8, "tp": 2, "order": ""},
         "The size of (tp) is (2), but you haven'tspecified the order ()."),
        ({"world": 16, "tp": 3}, "world_size (16) is not divisible by 3"),
        ({"world": 16, "tp": 2, "ep": 3, "pp": 1},
         "world_size (16) is not divisible by expert_tensor_model_pipeline_parallel size (6)"),
        ({"world": 7, "hybrid_context_parallel": True},
         "Hybrid context parallel requires an even number of ranks"),
        ({"world": 8, "use_sharp": True, "sharp_enabled_group": "dp_replica"},
         "dp_replica group requires num_distributed_optimizer_instances > 1"),
    ],
)  # fmt: skip
def test_more_refusals_that_the_source_has_words_for(asked, quote):
    error = refused(**asked)
    assert error.quote == quote
    assert error.alternatives
    assert_alternatives_work(error, asked)


@every("world", [0, -1, 2**20 + 1, ENORMOUS])
@every("sizes", [{}, {"tp": 2, "ep": 4}, {"tp": 3, "pp": 2, "etp": 1, "ep": 7}])
def test_a_world_out_of_range_is_answered_by_one_that_both_grids_fill(world, sizes):
    error = refused(world=world, **sizes)
    assert error.control == "world"
    assert error.alternatives
    assert_alternatives_work(error, {"world": world, **sizes})


@every("order", ["TP-CP-EP-DP-PP", "Tp-dP-pp", "TP-PP-DP"])
def test_an_order_is_in_any_case(order):
    """parallel_state.py makes small letters of it (NVIDIA/Megatron-LM d98e8a6, RankGenerator)."""
    capital, small = (process_groups(16, tp=2, pp=2, order=text) for text in (order, order.lower()))
    assert {name: groups.tolist() for name, groups in capital.items()} == {
        name: groups.tolist() for name, groups in small.items()
    }


@every("order", ["tp-tp-dp", "tp-xx-dp-pp-cp-ep", "", "tp dp pp", "tp-dp-pp-", None, 3])
def test_an_order_that_is_none_is_refused(order):
    error = refused(world=8, tp=2, order=order)
    assert error.control == "order"
    assert error.alternatives
    assert_alternatives_work(error, {"world": 8, "tp": 2, "order": order})


@every("name", ["tp", "cp", "pp", "ep", "etp", "gtp", "egtp"])
@every("size", [0, -1, 2.0, "2", True, float("nan"), [2], ENORMOUS])
def test_a_size_that_is_none_is_refused(name, size):
    error = refused(world=8, **{name: size})
    assert error.control == name
    assert len(str(error)) < 300
    assert error.alternatives
    assert_alternatives_work(error, {"world": 8, name: size})


def test_bad_sizes_are_cured_together():
    assert refused(world=8, tp=-1, cp="x", pp=2).alternatives == ({"tp": 1, "cp": 1},)


@every(
    "name, value",
    [
        ("num_distributed_optimizer_instances", 0),
        ("num_distributed_optimizer_instances", 3),
        ("num_distributed_optimizer_instances", None),
        ("hierarchical_context_parallel_sizes", [0, 4]),
        ("hierarchical_context_parallel_sizes", [2, 3]),
        ("hierarchical_context_parallel_sizes", ["2", 2]),
        ("hierarchical_context_parallel_sizes", "22"),
        ("hierarchical_context_parallel_sizes", 3),
        ("embedding_stages", [2]),
        ("embedding_stages", [-3]),
        ("embedding_stages", [0.5]),
        ("embedding_stages", None),
        ("hybrid_context_parallel", True),
        ("virtual_pipeline_model_parallel_size", 0),
        ("virtual_pipeline_model_parallel_size", 1.5),
        ("sharp_enabled_group", "dp"),
        ("sharp_enabled_group", 3),
    ],
)
def test_an_option_that_is_none_is_refused_with_a_cure(name, value):
    asked = {"world": 16, "cp": 4, "pp": 2, name: value}
    error = refused(**asked)
    assert error.control in (name, "pp")
    assert error.alternatives
    assert_alternatives_work(error, asked)


def test_an_argument_that_megatron_does_not_have_is_no_argument():
    with pytest.raises(TypeError):
        process_groups(8, dp=2)


# -- the two grids -------------------------------------------------------------------------------


def test_an_expert_group_may_span_the_context_parallel_ranks():
    """16 GPUs, tp 2, cp 2, dp 2, pp 2: with ep 8 one ep group is a whole pipeline stage."""
    groups = process_groups(16, tp=2, cp=2, pp=2, ep=8, etp=1)
    assert groups["ep"].tolist() == [list(range(8)), list(range(8, 16))]
    assert groups["edp"].tolist() == [[rank] for rank in range(16)]
    assert groups["dp"].shape == (8, 2)


def test_expert_tensor_parallelism_is_tp_unless_it_is_given():
    _, expert = grids(16, tp=4)
    assert (expert.size("tp"), expert.size("dp")) == (4, 4)
    _, expert = grids(16, tp=4, etp=1)
    assert (expert.size("tp"), expert.size("dp")) == (1, 16)


def test_an_order_that_ends_in_pp_may_leave_out_an_axis_of_size_1():
    """Megatron tests order.endswith("pp"), and only then appends cp: edp may differ from dp."""
    dense, expert = grids(16, order="tp-ep-dp-pp", tp=2, ep=2, pp=2)
    assert str(dense) == "tp2-ep1-dp4-pp2-cp1"
    assert str(expert) == "tp2-ep2-dp2-pp2-cp1"
    assert np.array_equal(rank_groups(dense, "pp"), rank_groups(expert, "pp"))


def test_an_order_without_pp_is_not_one_that_ends_in_pp():
    dense, expert = grids(16, order="tp-ep-dp", tp=2, ep=2)
    assert (dense.size("dp"), expert.size("dp")) == (8, 4)  # pp 1: there is nothing to clash
    assert refused(world=16, order="tp-ep-dp", tp=2, ep=2, pp=2).control == "order"


def test_an_order_of_dp_alone_is_one_for_dp_alone():
    groups = process_groups(4, order="dp")
    assert groups["dp"].tolist() == [[0, 1, 2, 3]]
    assert groups["tp"].tolist() == [[0], [1], [2], [3]]


def test_stages_may_be_named_for_the_shared_embedding():
    """24 ranks, tp 2, pp 3: T5 once shared it with a stage in the middle, too."""
    groups = groupings(24, tp=2, pp=3, embedding_stages=[0, 1, -1])
    assert groups["embd"].groups()[0].tolist() == [0, 8, 16]
    assert groupings(24, tp=2, pp=3, embedding_stages=[0])["embd"].groups()[0].tolist() == [0]
    assert "embd" not in groupings(24, tp=2, pp=3, embedding_stages=[])  # and not all of them


@every("order", ["dp-tp", "TP tp-xx-pp-ep", "", None, 3, "x" * 10**6])
def test_a_mended_order_is_a_whole_one_with_pp_last(order):
    names = mended(order).split("-")
    assert sorted(names) == sorted(ORDER.split("-"))
    assert names[-1] == "pp"


# -- main, after 0.16.1 --------------------------------------------------------------------------

MAIN = read("megatron_main")["cases"]
OF_MAIN = {family.parallel_state: name for name, family in FAMILIES.items()}


@every("case", [case for case in MAIN if "groups" in case])
def test_every_group_of_main_is_made_with_its_key_of_nccl_options(case):
    found = process_groups(**case["config"])
    names = set()
    for description, (key, groups) in case["groups"].items():
        name = OF_MAIN[description]
        names.add(name)
        assert FAMILIES[name].option == key
        if name in found:
            assert [sorted(ranks) for ranks in lists(found[name])] == groups, name
        else:  # main makes these even where nothing is cut: each rank alone, and tp-ep-pp again
            assert name in {"gtp", "egtp", "tp-ep-egtp-pp"}
            assert name == "tp-ep-egtp-pp" or {len(ranks) for ranks in groups} == {1}
    for name in found.keys() - names:  # no group of its own there: it stands for another one
        assert name in {"gtp-dp", "gtp-dp-cp", "egtp-edp"}


@every("case", [case for case in MAIN if "error" in case])
def test_gathers_of_their_own_beside_gtp_ask_main_for_ranks_that_do_not_exist(case):
    assert "is out of range" in case["error"]
    error = refused(**case["config"])
    assert (error.code, error.control) == ("gathers-with-gtp", "create_all_gather_group")
    assert_alternatives_work(error, case["config"])


def test_every_option_key_of_main_is_one_of_a_family():
    keys = {key for case in MAIN for key, _ in case.get("groups", {}).values()}
    gtp = {"gtp_remat", "gtp_remat_dp", "gtp_remat_dp_cp"}
    gtp |= {"expt_gtp_remat", "ep_gtp_remat_dp", "tp_ep_gtp_remat_pp"}
    assert gtp <= keys <= {family.option for family in FAMILIES.values()}


# -- gtp -----------------------------------------------------------------------------------------

GTP_NAMES = {"gtp", "gtp-dp", "gtp-dp-cp", "egtp", "egtp-edp", "tp-ep-egtp-pp"}


def test_the_groups_of_8_gpus_with_tp_2_and_gtp_2_are_those_of_megatron():
    """Main at d98e8a64: gtp between tp and dp, and mp over gtp too.

    ranks of gtp, dp     dp 0    dp 1
    gtp 0, tp across     0 1     4 5
    gtp 1                2 3     6 7
    """
    groups = process_groups(8, tp=2, gtp=2)
    assert groups["tp"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups["gtp"].tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups["dp"].tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups["gtp-dp"].tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert groups["mp"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups["tp-dp"].tolist() == [list(range(8))]
    assert groups["tp-dp-cp"].tolist() == [list(range(8))]
    assert groups["intra-dist-opt"].tolist() == [list(range(8))]


def test_experts_gather_their_weights_over_egtp():
    groups = process_groups(16, tp=2, pp=2, ep=2, egtp=2)
    assert groups["ep"].tolist()[0] == [0, 2]
    assert groups["egtp"].tolist()[0] == [0, 4]
    assert groups["tp-ep-pp"].tolist()[0] == [0, 1, 2, 3, 8, 9, 10, 11]
    assert groups["tp-ep-egtp-pp"].tolist() == [list(range(16))]
    assert groups["edp"].shape == (16, 1)
    assert groups["gtp"].shape == (16, 1)


def test_gtp_stands_after_tp_in_the_dense_and_after_ep_in_the_expert_grid():
    dense, expert = grids(32, tp=2, cp=2, ep=2, gtp=2, egtp=4)
    assert str(dense) == "tp2-gtp_remat2-cp2-ep1-dp4-pp1"
    assert str(expert) == "tp2-cp1-ep2-gtp_remat4-dp2-pp1"


def test_gtp_stands_where_the_order_names_it():
    dense, expert = grids(32, tp=2, cp=2, ep=2, gtp=2, egtp=4, order=f"tp-cp-ep-dp-{GTP}-pp")
    assert str(dense) == "tp2-cp2-ep1-dp4-gtp_remat2-pp1"
    assert str(expert) == "tp2-cp1-ep2-dp2-gtp_remat4-pp1"


@every("order", [ORDER, f"tp-{GTP}-cp-ep-dp-pp"])
def test_names_with_gtp_are_there_only_where_it_is_used(order):
    without = process_groups(16, tp=2, order=order)
    assert not GTP_NAMES & set(without)
    assert process_groups(16, tp=2, order=order, num_distributed_optimizer_instances=2)
    for used in ({"gtp": 2}, {"egtp": 2}):
        made = process_groups(16, tp=2, order=order, **used)
        assert set(made) - set(without) == GTP_NAMES
        assert set(without) <= set(made)


@every("used", [{"gtp": 2}, {"egtp": 2}, {"gtp": 2, "egtp": 2}])
def test_gtp_does_not_go_with_several_optimizer_instances(used):
    asked = {"world": 16, "tp": 2, "num_distributed_optimizer_instances": 2, **used}
    error = refused(**asked)
    assert error.quote == (
        "GTP_remat with num_distributed_optimizer_instances > 1 is not yet supported."
    )
    assert {"num_distributed_optimizer_instances": 1} in error.alternatives
    assert {"gtp": 1, "egtp": 1} in error.alternatives
    assert_alternatives_work(error, asked)


def test_the_expert_grid_goes_by_the_names_of_experts():
    _, expert = grids(64, tp=4, cp=2, pp=2, ep=8, etp=2)
    assert str(expert_grid(expert)) == "etp2-ep8-edp2-pp2"
