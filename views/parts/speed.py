"""The chart of servers' speeds, for the views that show one."""

from __future__ import annotations

from descriptions import SPEED
from render.scenes.speed import SpeedChart, SpeedCurve, Spot
from request.answers.served.words import requests_text
from training.serving.layouts import ServedLayout, ServedSearch
from training.serving.speed import Speed

EVERY = 2
"""Of the points of a curve each so-manieth has its number of requests beside it."""

NAMED = 2
"""The points at the end of a curve that have no number where its name is."""

FRONT_CURVES = 5
"""The most curves of a search that are drawn."""


def words_of(language: str) -> dict[str, str]:
    names = {"across": "across", "up": "up", "own": "own", "measured": "measured"}
    return {name: SPEED[key][language] for name, key in {**names, "edge": "front_edge"}.items()}


def spot_of(found: ServedLayout, requests: float, seconds: float) -> Spot:
    """Tokens a second of a user and of a GPU, with so many requests of all servers at once."""
    return 1.0 / seconds, requests / seconds / found.asked.gpus


def curve_of(found: ServedLayout, *, is_own: bool = False, name: str = "") -> SpeedCurve:
    points = found.curve
    last = len(points) - (NAMED if name else 0)  # where its name stands
    texts = tuple(
        f"{requests:,.0f}" if is_own and place % EVERY == 0 and place < last else ""
        for place, (requests, _) in enumerate(points)
    )
    spots = tuple(spot_of(found, requests, speed.seconds) for requests, speed in points)
    return SpeedCurve(spots, texts, name, is_own)


def chart_of(found: ServedLayout, language: str) -> SpeedChart:
    """The curve of one layout with its interval, what was measured, and the chosen point."""

    def ends(requests: float, speed: Speed) -> tuple[Spot, Spot]:
        return spot_of(found, requests, speed.high), spot_of(found, requests, speed.low)

    here = spot_of(found, found.answered, found.speed.seconds)
    at_once = SPEED["here"][language].format(requests=requests_text(found.answered, language))
    return SpeedChart(
        (curve_of(found, is_own=True),),
        words_of(language),
        band=tuple(ends(*point) for point in found.curve),
        here=(here, at_once),
        rings=tuple(
            spot_of(found, run.requests * found.servers, run.seconds)
            for run in found.speed.same_layout
        ),
    )


def is_same(one: ServedLayout, other: ServedLayout) -> bool:
    """Whether two layouts cut the model alike; without experts, data parallel parts are servers."""
    sides = []
    for each in (one, other):
        servers = (each.server.parts, each.servers)
        servers = servers if each.asked.model.experts else (1, servers[0] * servers[1])
        sides.append((each.server.cut, servers))
    return sides[0] == sides[1]


def front_of(found: ServedSearch, current: ServedLayout | None, language: str) -> SpeedChart:
    """Curves of the best layouts, by their places in the list, with their front, and the layout on
    screen."""
    shown = dict.fromkeys([0, *(point.place for point in found.front)])
    own = [at for at, each in enumerate(found.best) if current and is_same(each, current)]
    places = [at for at in shown if at not in own][:FRONT_CURVES]
    curves = [curve_of(found.best[at], name=str(at + 1)) for at in places]
    if current is not None:
        name = str(own[0] + 1) if own else SPEED["own"][language]
        curves.append(curve_of(current, is_own=True, name=name))
    here = None
    if current is not None:
        spot = spot_of(current, current.answered, current.speed.seconds)
        here = (spot, requests_text(current.answered, language))
    edge = tuple((point.user_rate, point.gpu_rate) for point in found.front)
    return SpeedChart(tuple(curves), words_of(language), here=here, edge=edge)
