"""Every sentence the page shows, in English and Chinese, as data.

A text holds both languages, and the language picks one:

>>> TYPES["dp"].title["en"]
'Data parallel (DP)'

Texts are plain: no HTML, no Markdown. *Rank* always means the global rank; ranks and groups count
from 0. Products have the multiplication sign: a pair of asterisks would turn into italics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from groups.tables import Rows
from texts.sentences import (
    HANG_STEPS,
    LAUNCH_NOTES,
    REFUSALS,
    close_up,
    counted,
    hang_sentence,
    note_text,
    with_reason,
)
from texts.shapes import (
    GAP,
    LANGUAGES,
    Control,
    Kind,
    OperationText,
    Term,
    Text,
    TourStep,
    by_english,
    catalogue,
    catalogues,
    has_text,
    joined,
    untranslated,
    words,
    words_of_all,
)
from texts.slow import SLOW_DOING, SLOW_NOTES, SLOW_STEPS, slow_note, slow_sentence
from texts.types import KINDS, LINKS, TYPES, kind_of

CONTROLS: Mapping[str, Control] = words_of_all("CONTROLS", Control)

SHORT_LABELS = words("controls", "SHORT_LABELS")
"""The name of a control on the button of a fix, if its label is long."""

DP_KINDS = words("controls", "DP_KINDS")
ENGRAM = words("serving", "ENGRAM")
VIEWS: Mapping[str, Text] = words_of_all("VIEWS", Text)

WORDS: Mapping[str, Term] = words("words", "WORDS", Term)
PAGE: Mapping[str, Text] = words_of_all("PAGE", Text)
HOW_TO_READ = words("page", "HOW_TO_READ")
CARD = words("page", "CARD")
"""The texts of a GPU's card, most of them used by the page's script."""

JOB = words("groups", "JOB")
SECTIONS, SHELL = words("shell", "SECTIONS"), words("shell", "SHELL")
SAVED = words("shell", "SAVED")

ENTRIES, STORIES = words("stories", "ENTRIES"), words("stories", "STORIES")
TOUR_WORDS = words("stories", "TOUR_WORDS")


def tour() -> tuple[TourStep, ...]:
    """The steps of the tour."""
    return cast("tuple[TourStep, ...]", catalogue("stories")["TOUR"])


SPEED = words("speed", "SPEED")
"""How fast servers answer, and which layout of them."""

ZOOMS = words("zooms", "ZOOMS")
"""The time axis of the views of a step."""

FRAMEWORKS = words("frameworks", "FRAMEWORKS")
"""Remarks on a framework's names and order, by the id of its convention."""

UNSETTLED = words("frameworks", "UNSETTLED")
"""Questions that a framework's source leaves open."""

OWN_GROUPS = words("frameworks", "OWN_GROUPS")
"""Groups of a framework that Megatron lacks, by their own names."""

SERVER_GROUPS: Mapping[str, Kind] = words("serving", "SERVER_GROUPS", Kind)
"""Groups of servers, by their own names, or those with the engine's in front."""

SERVER = words("serving", "SERVER")

OPERATION_TEXTS: Mapping[str, OperationText] = words("operations", "OPERATION_TEXTS", OperationText)
ALGORITHM_TEXTS: Mapping[str, OperationText] = words("operations", "ALGORITHM_TEXTS", OperationText)
"""Texts by the names of training.collectives.operations and .algorithms."""

ESTIMATE, MEMORY = words("estimate", "ESTIMATE"), words("memory", "MEMORY")
RUN: Mapping[str, Text] = words_of_all("RUN", Text)
MACHINE = words("machine", "MACHINE")
"""Of a machine of one's own, and how well a machine is used."""
ROLES = words("roles", "ROLES")
HOSTS_REMARKS, HOSTS_WORDS = words("nodes", "HOSTS_REMARKS"), words("nodes", "HOSTS_WORDS")
LAUNCHER_NOTES, ORDER_REASONS = words("nodes", "LAUNCHER_NOTES"), words("nodes", "ORDER_REASONS")
TARGET_NAMES = words("launch", "TARGET_NAMES")
MOVES, MOVES_RULES = words("moves", "MOVES"), words("moves", "MOVES_RULES")
TRAFFIC, REASONS = words("traffic", "TRAFFIC"), words("search", "REASONS")
PURPOSES, BESIDE = words("traffic", "PURPOSES"), words("traffic", "BESIDE")
CP_CHOICES = words("traffic", "CP_CHOICES")

CLUSTER_NOTES = words("traffic", "CLUSTER_NOTES")
"""Open questions about the numbers of a cluster."""

NOTES: Mapping[str, Text] = Rows(lambda: by_english("presets", "NOTES"))
"""Remarks on a published layout, by its note in groups/published.toml."""

DERIVED = words("presets", "DERIVED")
"""Why a published layout has an option that its source does not state (training/derived.csv)."""

SPANS, WORK = words("refusals", "SPANS"), words("refusals", "WORK")
"""Names of the maths, by their English words in refusals."""

CALLED: Mapping[str, Text] = Rows(lambda: by_english("refusals", "CALLED"))
"""Frameworks that refusals call by words."""

LEFT_OUT, SEARCH_LEFT_OUT = words("traffic", "LEFT_OUT"), words("search", "SEARCH_LEFT_OUT")
