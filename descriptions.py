"""Every sentence the page shows, in English and Chinese, as data.

A text holds both languages, and the language picks one:

>>> TYPES["dp"].title["en"]
'Data parallel (DP)'

Texts are plain: no HTML, no Markdown. *Rank* always means the global rank; ranks and groups count
from 0. Products have the multiplication sign: a pair of asterisks would turn into italics.
"""

from __future__ import annotations

from texts.controls import CONTROLS, DP_KINDS, SHORT_LABELS, VIEWS
from texts.estimate import ESTIMATE
from texts.frameworks import FRAMEWORKS, OWN_GROUPS, UNSETTLED
from texts.hang import hang_sentence
from texts.hosts import HOSTS_REMARKS, HOSTS_WORDS, LAUNCHER_NOTES, ORDER_REASONS
from texts.job import JOB
from texts.kinds import KINDS, kind_of
from texts.launch import LAUNCH_NOTES, TARGET_NAMES, note_text
from texts.memory import MEMORY
from texts.operations import ALGORITHM_TEXTS, OPERATION_TEXTS
from texts.page import HOW_TO_READ, HOW_TO_READ_LARGE, NOUNS, PAGE, counted
from texts.presets import NOTES_ZH
from texts.refusals import REFUSALS, SPANS, WORK
from texts.run import RUN
from texts.shapes import GAPS, LANGUAGES, Control, GroupType, Kind, Link, Text, joined
from texts.shell import SECTIONS, SHELL
from texts.stories import ENTRIES, STORIES, TOUR, TOUR_WORDS
from texts.traffic import (
    BESIDE,
    CLUSTER_NOTES,
    CP_CHOICES,
    LEFT_OUT,
    PURPOSES,
    REASONS,
    SEARCH_LEFT_OUT,
    TRAFFIC,
)
from texts.types import TYPES
from texts.words import WORDS

__all__ = [
    "ALGORITHM_TEXTS",
    "BESIDE",
    "CLUSTER_NOTES",
    "CONTROLS",
    "CP_CHOICES",
    "DP_KINDS",
    "ENTRIES",
    "ESTIMATE",
    "FRAMEWORKS",
    "GAPS",
    "HOSTS_REMARKS",
    "HOSTS_WORDS",
    "HOW_TO_READ",
    "HOW_TO_READ_LARGE",
    "JOB",
    "KINDS",
    "LANGUAGES",
    "LAUNCHER_NOTES",
    "LAUNCH_NOTES",
    "LEFT_OUT",
    "MEMORY",
    "NOTES_ZH",
    "NOUNS",
    "OPERATION_TEXTS",
    "ORDER_REASONS",
    "OWN_GROUPS",
    "PAGE",
    "PURPOSES",
    "REASONS",
    "REFUSALS",
    "RUN",
    "SEARCH_LEFT_OUT",
    "SECTIONS",
    "SHELL",
    "SHORT_LABELS",
    "SPANS",
    "STORIES",
    "TARGET_NAMES",
    "TOUR",
    "TOUR_WORDS",
    "TRAFFIC",
    "TYPES",
    "UNSETTLED",
    "VIEWS",
    "WORDS",
    "WORK",
    "Control",
    "GroupType",
    "Kind",
    "Link",
    "Text",
    "counted",
    "hang_sentence",
    "joined",
    "kind_of",
    "note_text",
]
