"""The Slow view: the picture of time lost, the aligned timeline, and what the page says of both."""

from __future__ import annotations

import numpy as np
import pytest
from painted import alone

from groups import parse_mesh
from render.palette import SCALE_ENDS, rgb, scale_of
from render.scenes.job import job_picture
from render.scenes.lost import LostPicture, Scale, amounts_of
from render.scenes.together import TogetherCall, TogetherChart

THEMES = ("light", "dark")
WORDS = dict.fromkeys(("stage", "layers", "band", "replica", "replicas"), "{first}")


def at(picture: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    return tuple(picture[round(2 * y), round(2 * x)].tolist())


def lost_picture(mesh: str, *names: str) -> LostPicture:
    """GPU 1 holds up the others, each of which loses as much as the other."""
    job = job_picture(parse_mesh(mesh), [], 8, rank=1, words=WORDS)
    world = job.mesh.world_size
    lost, caused = np.full(world, 0.5), np.zeros(world)
    lost[1], caused[1] = 0.0, 2.0
    seconds = {"lost": lost, "caused": caused}
    scales = (
        Scale(name, seconds[name], seconds[name].max(), amounts_of(seconds[name], 1.0))
        for name in names or ("lost", "caused")
    )
    return LostPicture(job, tuple(scales))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("mesh", ["tp2-dp2-pp2", "tp8-dp8-pp4"], ids=["amounts", "numbers"])
def test_a_cell_is_blue_at_the_left_of_whoever_lost_time_and_orange_at_the_right_of_whoever_cost_it(
    mesh, theme
):
    scene = lost_picture(mesh)
    assert bool(scene.letters) == (scene.job.mesh.world_size < 64)
    picture, (wide, tall) = alone(scene, theme), scene.job.sides
    ends = {name: scale_of(name, theme) for name in SCALE_ENDS[theme]}
    for rank in range(scene.job.mesh.world_size):
        x, y = float(scene.job.x[rank]), float(scene.job.y[rank]) + 0.9 * tall
        halves = ("lost", 0 if rank == 1 else -1), ("caused", -1 if rank == 1 else 0)
        for right, (name, step) in zip((0.1, 0.9), halves):
            assert at(picture, x + right * wide, y) == rgb(ends[name][step])


@pytest.mark.parametrize("theme", THEMES)
def test_of_small_cells_a_picture_has_one_scale_as_opaque_as_it_is_much(theme):
    scene = lost_picture("tp8-dp8-pp8", "caused")
    picture, (wide, tall) = alone(scene, theme), scene.job.sides
    x, y = (float(one[1]) + side / 2 for one, side in zip((scene.job.x, scene.job.y), (wide, tall)))
    assert at(picture, x, y) == rgb(SCALE_ENDS[theme]["caused"])
    assert at(picture, x + 2 * wide, y) != at(picture, x, y)


def test_calls_end_at_one_time_for_all_and_who_came_last_is_marked_without_colour_too():
    calls = [
        TogetherCall("all_reduce", 1.0, (0.5, 0.1, None), 1),
        TogetherCall("x", 2.0, (0.2, 0.9, 0.3), 0),
    ]
    chart = TogetherChart(["GPU 0", "GPU 1", "GPU 2"], calls, (1e-3, "ms"))
    by_call = [[bar for bar in chart.bars if bar.end == chart.x(call.end)] for call in calls]
    assert [[bar.row for bar in bars] for bars in by_call] == [[0, 1], [0, 1, 2]]
    for bars, call in zip(by_call, calls):
        assert {bar.began for bar in bars} == {chart.x(call.end - call.moved)}
        (last,) = (bar for bar in bars if bar.is_last)
        assert last.row == call.last
        assert last.came == last.began == max(bar.came for bar in bars)
    picture = alone(chart)
    last = next(bar for bar in chart.bars if bar.is_last)
    middle = 20.0 + chart.row * 1.5
    assert at(picture, last.came - 3, middle) == rgb(SCALE_ENDS["light"]["caused"])
    assert [text for _, text in chart.ticks] == [f"{time}" for time in range(600, 2001, 200)]
