"""A plan's fullest moment in a sentence, and what would make it fit."""

from __future__ import annotations

from descriptions import MEMORY, PAGE, ROLES, joined
from formats.roles.presets import PLANS
from training.roles import Phase

from ...context import Context
from ...units import gib
from ...words import fix_label
from .fitting import Change, Way, ways_to_fit
from .moments import Moments, moments_of


def found_of(context: Context) -> Moments:
    """The memory of the page's plan, worked out once."""
    return context.once(moments_of)


def phase_text(phase: Phase, language: str) -> str:
    return ROLES[f"phase_{phase.name}"][language]


def fullest_text(context: Context) -> str:
    """The moment with least free memory, over all GPUs."""
    found = found_of(context)
    fullest, most = found.step.fullest, found.step.fullest.total
    if not most:
        return ROLES["fullest_unknown"][context.language]
    facts = {"phase": phase_text(fullest.phase, context.language), "gpu": fullest.gpu}
    words = "fullest" if found.fits else "fullest_over"
    sizes = {"most": gib(most), "capacity": gib(found.capacity)}
    sentence = ROLES[words][context.language].format(**facts, **sizes)
    if found.fits or context.state.preset not in PLANS:
        return sentence
    return joined([sentence, ROLES["unstated"][context.language]], context.language)


def ways_of(context: Context) -> tuple[Way, ...]:
    """What would make the page's plan fit, tried."""
    return ways_to_fit(found_of(context), context.cast)


def way_text(way: Way, language: str) -> str:
    """The changes of a way, and what the fullest GPU has then."""
    changes = PAGE["and_list"][language].join(_change(one, language) for one in way.changes)
    return MEMORY["way_total"][language].format(change=changes, total=gib(way.bytes))


def _change(change: Change, language: str) -> str:
    words = "fit_away" if change.away else "fit_change"
    label = "" if change.away else fix_label(change.fields, language)
    return ROLES[words][language].format(role=change.role, change=label)


def changes_of(way: Way, context: Context) -> dict[str, str]:
    """The fields of the page that differ once a way is taken."""
    now, then = vars(context.state), vars(way.page())
    return {name: then[name] for name in now if name in then and then[name] != now[name]
            and isinstance(then[name], str)}  # fmt: skip
