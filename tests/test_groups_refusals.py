"""What the core refuses, and how: never a plausible answer, always the control and a cure."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest
from cases import every

from groups import (
    Axis,
    LayoutError,
    Mesh,
    coordinates,
    fit,
    group_index,
    parse_mesh,
    rank_groups,
    rank_of,
)
from groups.frameworks import OWN
from groups.layout import Job

MESH = parse_mesh("tp2-cp1-dp4-pp2")
ORDER = "tp-cp-dp-pp"
MOST = 1_048_576
ENORMOUS = 10**5000  # too long for Python to print


def refusal(call, *args, **kwargs) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        call(*args, **kwargs)
    return caught.value


def table(values):
    return [pytest.param(value, id=name_of(value)) for value in values]


def name_of(value) -> str:
    if isinstance(value, int) and abs(value) == ENORMOUS:
        return "10**5000" if value > 0 else "-10**5000"
    return repr(value)[:24]


NO_NUMBERS = [
    2.5,
    2.0,
    float("nan"),
    float("inf"),
    True,
    False,
    "2",
    "",
    None,
    [2],
    (2,),
    2j,
    Fraction(2),
    np.float64(2),
    np.bool_(True),
    np.array([2, 2]),
]
NO_SIZES = [0, -1, -ENORMOUS, np.int64(0), *NO_NUMBERS]
NO_RANKS = [-1, 16, ENORMOUS, np.int64(16), *NO_NUMBERS]
NO_KINDS = [
    "xx",
    "TP",
    "tpdp",
    "tp dp",
    "tp,dp",
    " tp",
    "tp\n",
    "",
    "-",
    "tp-",
    "-tp",
    "tp--dp",
    "tp-xx",
    "tp2",
    "ep",
    "tp-tp",
    "dp-tp-dp",
    None,
    0,
    b"tp",
    ["tp"],
    ("tp", "dp"),
]


# -- what every refusal has ----------------------------------------------------------------------


def test_tp_3_on_16_gpus_says_what_why_the_cure_and_the_control():
    error = refusal(fit, 16, order=ORDER, tp=3)
    assert str(error) == "tp 3 x pp 1 x cp 1 = 3 does not divide 16 GPUs; try tp 2 or tp 4"
    assert error.what == "tp 3 x pp 1 x cp 1 = 3 does not divide 16 GPUs"
    assert error.why
    assert error.control == "tp"
    assert error.alternatives[:2] == ({"tp": 2}, {"tp": 4})
    assert error.code
    three = refusal(fit, 16, order=ORDER, tp=3, pp=3)
    assert str(three).endswith("; try tp 2 with pp 4, tp 4 with pp 2 or tp 4 with pp 4")


def test_a_refusal_is_a_value_error_in_one_line():
    error = refusal(fit, 16, order=ORDER, tp=5, pp=7)
    assert isinstance(error, ValueError)
    assert "\n" not in str(error)
    assert isinstance(error.alternatives, tuple)


def test_a_refusal_that_is_copied_keeps_every_part():
    parts = {"why": "why", "control": "tp", "facts": {"value": 3}, "quote": "Megatron's words"}
    error = LayoutError("a-code", "tp is 3", alternatives=[{"tp": 2}], **parts)
    assert {part: getattr(error, part) for part in parts} == parts
    for copy in (pickle.loads(pickle.dumps(error)), error.replace(), error.renamed({})):
        assert vars(copy) == vars(error)


@pytest.mark.parametrize(
    ("world", "sizes", "expected"),
    [
        # one axis is wrong: its neighbours among what divides
        pytest.param(384, {"tp": 5}, [{"tp": 4}, {"tp": 6}], id="384 GPUs, tp 5"),
        pytest.param(24, {"tp": 2, "pp": 5}, [{"pp": 4}, {"pp": 6}], id="24 GPUs, pp 5"),
        pytest.param(7, {"tp": 2}, [{"tp": 1}, {"tp": 7}], id="7 GPUs, tp 2"),
        # each divides, their product does not: lower either
        pytest.param(16, {"tp": 8, "pp": 4}, [{"tp": 4}, {"pp": 2}], id="16 GPUs, tp 8, pp 4"),
        # both are wrong: both must change
        pytest.param(16, {"tp": 3, "pp": 3}, [], id="16 GPUs, tp 3, pp 3"),
        pytest.param(1, {"tp": 2, "pp": 2}, [], id="1 GPU, tp 2, pp 2"),
        # bigger than the world
        pytest.param(8, {"tp": 16}, [{"tp": 8}], id="8 GPUs, tp 16"),
    ],
)
def test_the_alternatives_are_worked_out_for_the_layout(world, sizes, expected):
    error = refusal(fit, world, order=ORDER, **sizes)
    assert error.control in sizes
    assert 1 <= len(error.alternatives) <= 3
    for alternative in expected:
        assert alternative in error.alternatives
    for alternative in error.alternatives:
        assert fit(world, order=ORDER, **{**sizes, **alternative}).world_size == world
        for name, size in alternative.items():
            assert f"{name} {size}" in str(error)


# -- sizes ---------------------------------------------------------------------------------------


@every("size", table(NO_SIZES))
def test_a_size_that_is_no_whole_number_from_1_up_makes_no_axis(size):
    assert refusal(Axis, "tp", size).control == "tp"


@every("size", table(NO_SIZES))
@every("name", ["tp", "pp", "cp"])
def test_fit_refuses_such_a_size_names_it_and_offers_sizes_that_fit(name, size):
    error = refusal(fit, 16, order=ORDER, **{name: size})
    assert error.control == name
    assert error.alternatives
    for alternative in error.alternatives:
        assert fit(16, order=ORDER, **{name: size, **alternative}).world_size == 16


@every("dp", table([0, -1, 1, 3, 5, 16, -ENORMOUS, ENORMOUS]))
def test_a_dp_that_is_not_what_remains_is_refused_and_the_right_one_offered(dp):
    sizes = {"tp": 2, "pp": 2, "dp": dp}
    error = refusal(fit, 16, order=ORDER, **sizes)
    assert error.control == "dp"
    assert error.alternatives[0] == {"dp": 4}
    for alternative in error.alternatives[1:]:  # other sizes, with which so many do remain
        assert "dp" not in alternative
        fit(16, order=ORDER, **{**sizes, **alternative})


@every("dp", table([value for value in NO_NUMBERS if value is not None]))
def test_a_dp_that_is_no_number_is_refused(dp):
    error = refusal(fit, 16, order=ORDER, tp=2, pp=2, dp=dp)
    assert error.control == "dp"
    for alternative in error.alternatives:
        assert alternative == {"dp": 4}


@every("world", table([*NO_SIZES, MOST + 1, ENORMOUS]))
def test_fit_refuses_such_a_world(world):
    assert refusal(fit, world, order=ORDER, tp=2).control == "world"


@every("world", table(NO_SIZES))
def test_a_world_that_no_size_goes_with_is_answered_by_none(world):
    assert refusal(fit, world, order=ORDER, tp="two").alternatives == ()


@every("world", table([0, -1, MOST + 1, ENORMOUS]))
@every("sizes", [{}, {"tp": 2}, {"tp": 3, "pp": 5}])
def test_a_world_out_of_range_is_answered_by_one_that_the_sizes_fill(world, sizes):
    error = refusal(fit, world, order=ORDER, **sizes)
    for alternative in error.alternatives:
        mesh = fit(**{"world": world, "order": ORDER, **sizes, **alternative})
        assert mesh.world_size == alternative["world"]
        unit = math.prod(sizes.values())
        assert mesh.world_size == (unit if world < 1 else MOST // unit * unit)


@every("offset", table([-1, -ENORMOUS, *NO_NUMBERS]))
def test_a_mesh_refuses_an_offset_that_is_no_whole_number_from_0_up(offset):
    assert refusal(Mesh, (Axis("tp", 2),), offset).control == "offset"


def test_numpy_integers_are_whole_numbers():
    mesh = fit(np.int64(16), order=ORDER, tp=np.int8(2), pp=np.uint16(2), dp=np.int32(4))
    assert mesh == MESH
    assert hash(mesh) == hash(MESH)
    assert str(Mesh((Axis("tp", np.int32(2)),), offset=np.int64(8))) == "tp2+8"
    assert {type(size) for size in mesh.sizes} == {int}
    assert coordinates(MESH, np.int64(5)) == {"tp": 1, "cp": 0, "dp": 2, "pp": 0}
    assert rank_of(MESH, tp=np.int64(1), dp=np.uint8(2)) == 5


# -- how large a world may be --------------------------------------------------------------------


def test_a_world_of_1_048_576_ranks_is_answered():
    mesh = fit(MOST, order=ORDER, tp=8, cp=4, pp=16)
    assert str(mesh) == "tp8-cp4-dp2048-pp16"
    assert rank_groups(mesh, "dp").shape == (512, 2048)
    assert group_index(mesh, "dp-cp").max() == 8 * 16 - 1
    assert coordinates(mesh, MOST - 1) == {"tp": 7, "cp": 3, "dp": 2047, "pp": 15}


@pytest.mark.parametrize(
    "axes",
    [
        pytest.param((Axis("dp", MOST + 1),), id="one axis, one rank too many"),
        pytest.param((Axis("tp", 2), Axis("dp", MOST)), id="two axes"),
        pytest.param((Axis("tp", 2**40), Axis("dp", 2**40)), id="more than 64 bits"),
        pytest.param((Axis("tp", ENORMOUS),), id="too long to print"),
    ],
)
def test_a_mesh_of_more_ranks_is_refused(axes):
    assert refusal(Mesh, axes).control == "world"


def test_a_text_of_more_ranks_is_refused():
    assert refusal(parse_mesh, f"tp{MOST + 1}").control == "world"
    refusal(parse_mesh, "tp2-dp99999999999999999999999999")
    names = [a + b for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]
    refusal(parse_mesh, "-".join(f"{name}999999999999" for name in names))


def test_a_mesh_of_hundreds_of_axes_is_answered_or_refused_but_never_breaks():
    names = [a + b for a in "abcdefghij" for b in "abcdefghij"]
    try:
        mesh = parse_mesh("-".join(f"{name}1" for name in names) + "-dp2")
        assert rank_groups(mesh, "dp").tolist() == [[0, 1]]
    except LayoutError:
        pass


# -- names ---------------------------------------------------------------------------------------


@every("kind", table(NO_KINDS))
@every("ask", [rank_groups, group_index])
def test_a_kind_is_different_axes_of_the_mesh_joined_by_dashes(ask, kind):
    assert refusal(ask, MESH, kind).control == "kind"


@every(
    "order",
    table(
        [
            "TP-CP-DP-PP",
            "tp-tp-dp",
            "tp-dp-dp",
            "tp dp pp",
            "tp - dp",
            "tp,dp",
            "tp-",
            "-tp",
            "tp--dp",
            "tp2-dp",
            "tp-dp\n",
            "",
            None,
            4,
            ["tp", "dp"],
        ]
    ),
)
def test_an_order_is_different_lower_case_names_joined_by_dashes(order):
    assert refusal(fit, 16, order=order).control == "order"


@pytest.mark.parametrize(
    ("order", "sizes", "named"),
    [
        pytest.param("tp-dp", {"tp": 2, "pp": 2}, "pp", id="no pp"),
        pytest.param("cp-dp-pp", {"tp": 2}, "tp", id="no tp"),
        pytest.param("tpdp", {"tp": 2}, "tp", id="two names run together"),
        pytest.param(ORDER, {"xx": 2}, "xx", id="a size for an unknown axis"),
        pytest.param(ORDER, {"TP": 2}, "TP", id="a size in capitals"),
    ],
)
def test_fit_refuses_a_size_for_an_axis_that_is_not_in_the_order(order, sizes, named):
    error = refusal(fit, 16, order=order, **sizes)
    assert error.control in ("order", named)
    assert named in str(error)


@every("name", table(["", "TP", "t p", "tp2", "2tp", "_tp", "tp-dp", "é", None, 3]))
def test_an_axis_is_named_in_lower_case_letters(name):
    refusal(Axis, name, 2)


def test_a_mesh_has_at_least_one_axis_and_each_once():
    refusal(Mesh, ())
    assert "tp" in str(refusal(Mesh, (Axis("tp", 2), Axis("dp", 2), Axis("tp", 2))))


@every(
    "text",
    table(
        [
            "",
            "-",
            "tp",
            "2",
            "tp2-",
            "-tp2",
            "tp2--dp2",
            "TP2",
            "tp 2",
            "tp2 dp2",
            "tp2,dp2",
            "tp2-tp2",
            "tp0",
            "tp2-dp0",
            "tp-2",
            "tp2.5",
            "tp1e3",
            "tp2\n",
            "tp\uff12",  # a full-width 2
            "tp²",
            "tp2+",
            "tp2+x",
            "tp2+-8",
            "tp2+8+8",
            "tp2+1.5",
            "+8",
            "tp" + "9" * 5000,
            None,
            4,
            b"tp2",
            ["tp2"],
        ]
    ),
)
def test_a_text_that_is_no_mesh_is_refused(text):
    error = refusal(parse_mesh, text)
    assert error.control is not None
    assert len(str(error)) < 300


def test_a_long_wrong_input_is_not_echoed_whole():
    assert len(str(refusal(rank_groups, MESH, "x" * 1_000_000))) < 300
    assert len(str(refusal(fit, 16, order="tp dp " * 100_000))) < 300
    assert len(str(refusal(fit, 16, order=ORDER, tp="9" * 1_000_000))) < 300


# -- ranks and coordinates -----------------------------------------------------------------------


@every("rank", table(NO_RANKS))
def test_coordinates_of_a_rank_that_is_not_in_the_mesh_are_refused(rank):
    assert refusal(coordinates, MESH, rank).control == "rank"


@every("rank", [0, 7, 24])
def test_the_ranks_of_a_mesh_start_at_its_offset(rank):
    mesh = parse_mesh("tp2-cp1-dp4-pp2+8")
    error = refusal(coordinates, mesh, rank)
    assert error.control == "rank"
    for alternative in error.alternatives:
        assert coordinates(mesh, alternative["rank"])
    assert coordinates(mesh, 8) == {"tp": 0, "cp": 0, "dp": 0, "pp": 0}
    assert coordinates(mesh, 23) == {"tp": 1, "cp": 0, "dp": 3, "pp": 1}


@every("at", table([-1, 4, 16, ENORMOUS, *NO_NUMBERS]))
def test_rank_of_a_coordinate_outside_its_axis_is_refused(at):
    assert refusal(rank_of, MESH, dp=at).control == "dp"


@every("name", table(["xx", "TP", "ep", "tp-dp", "tp dp", ""]))
def test_rank_of_an_axis_that_is_not_in_the_mesh_is_refused(name):
    refusal(rank_of, MESH, **{name: 0})


# -- values --------------------------------------------------------------------------------------


def test_a_mesh_cannot_be_changed_and_can_be_a_key():
    assert {MESH: "same"}[fit(16, order=ORDER, tp=2, pp=2)] == "same"
    with pytest.raises(FrozenInstanceError):
        MESH.offset = 8
    with pytest.raises(FrozenInstanceError):
        MESH.axes[0].size = 4


def test_the_arrays_of_one_call_are_not_shared_with_the_next():
    groups = rank_groups(MESH, "tp")
    groups[:] = -1
    index = group_index(MESH, "tp")
    index[:] = -1
    assert rank_groups(MESH, "tp").min() == 0
    assert group_index(MESH, "tp").min() == 0


# -- what a job is refused ------------------------------------------------------------------------


def test_experts_that_do_not_fit_leave_edp_and_not_dp():
    error = refusal(Job(nodes=2, tp=2, ep=3).layout)
    assert error.facts["left"] == "EDP"
    assert error.why.startswith("edp is what remains")


def test_an_axis_named_twice_is_no_size_that_the_order_leaves_out():
    assert refusal(Job(nodes=2, pp=2, framework=OWN, order="tp-tp").layout).quote == ""


def test_machines_of_too_many_gpus_have_only_fixes_that_work():
    job = Job(nodes=1, gpus_per_node=2_000_000)
    fixes = refusal(job.layout).alternatives
    assert [*fixes] == [{"gpus_per_node": MOST}]
    assert refusal(replace(job, nodes=2_000_000, gpus_per_node=1).layout).control == "nodes"


def test_options_of_megatrons_are_refused_with_both_ways_out():
    job = Job(nodes=2, framework="llama3", instances=2, hybrid=True)
    fixes = refusal(job.layout).alternatives
    assert [*fixes] == [{"instances": 1, "hybrid": False}, {"framework": "megatron"}]
    assert replace(job, **fixes[0]).layout().world_size == 16


def test_experts_of_a_framework_that_does_not_cut_them_may_be_said_to_be_whole():
    job = Job(nodes=2, tp=2, ep=4, framework="torchtitan")
    assert replace(job, etp=1).layout().expert == job.layout().expert
    error = refusal(replace(job, etp=2).layout)
    assert (error.code, *error.alternatives) == ("expert-tp-is-fixed", {"etp": None})


# -- jobs ----------------------------------------------------------------------------------------


@every("framework", ["jax", "", 7, None])
def test_a_framework_that_there_is_not_is_no_job(framework):
    error = refusal(Job(framework=framework).layout)
    assert (error.code, error.control) == ("not-a-choice", "framework")


@every(
    "job, control, fix",
    [
        (Job(instances=3), "instances", {"instances": 4}),
        (Job(cp=4, levels=(2, 3)), "levels", {"levels": (2, 2)}),
        (Job(gpus_per_node=3, hybrid=True), "cp", {"hybrid": False}),
    ],
)
def test_a_job_is_refused_in_its_own_names_not_megatrons(job, control, fix):
    error = refusal(job.layout)
    assert error.control == control
    assert fix in error.alternatives
    assert replace(job, **fix).layout()
