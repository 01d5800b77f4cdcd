"""Every sentence the page shows, in English and Chinese, as data.

A text holds both languages, and the language picks one:

>>> TYPES["dp"].title["en"]
'Data parallel (DP)'

Texts are plain: no HTML, no Markdown. *Rank* always means the global rank; ranks and groups count
from 0. Products have the multiplication sign: a pair of asterisks would turn into italics.
"""

from __future__ import annotations

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
    OperationText,
    Step,
    Term,
    Text,
    catalogue,
    catalogues,
    has_text,
    joined,
    untranslated,
    words,
)
from texts.types import KINDS, TYPES, kind_of

CONTROLS: dict[str, Control] = {
    name: Control(*texts)
    for room in catalogues()
    for name, texts in catalogue(room).get("CONTROLS", {}).items()
}

SHORT_LABELS = words("controls", "SHORT_LABELS")
"""What a control is called on the button of a fix, where its label is long."""

DP_KINDS = words("controls", "DP_KINDS")
VIEWS = words("controls", "VIEWS")

WORDS = tuple(Term(*texts) for texts in catalogue("words")["WORDS"].values())
PAGE = {**words("collectives", "PAGE"), **words("page", "PAGE"), **words("pipeline", "PAGE")}
HOW_TO_READ, HOW_TO_READ_LARGE = words("page", "HOW_TO_READ").values()
CARD = words("page", "CARD")
"""What the card of a GPU says, most of it written by the page's script."""

JOB = words("job", "JOB")
SECTIONS, SHELL = words("shell", "SECTIONS"), words("shell", "SHELL")
SAVED = words("shell", "SAVED")

ENTRIES, STORIES = words("stories", "ENTRIES"), words("stories", "STORIES")
TOUR_WORDS = words("stories", "TOUR_WORDS")
TOUR = tuple(Step(query, text) for query, text in words("stories", "TOUR").items())

FRAMEWORKS = words("frameworks", "FRAMEWORKS")
"""What is special about a framework's names and order, by the id of its convention."""

UNSETTLED = words("frameworks", "UNSETTLED")
"""What a framework's source leaves open."""

OWN_GROUPS = words("frameworks", "OWN_GROUPS")
"""Groups of a framework that are none of Megatron's, by their own names."""

OPERATION_TEXTS, ALGORITHM_TEXTS = (
    {name: OperationText(*texts) for name, texts in section.items()}
    for section in catalogue("operations").values()
)
"""By the names of training.collectives.operations and .algorithms."""

ESTIMATE, MEMORY = words("estimate", "ESTIMATE"), words("memory", "MEMORY")
RUN = words("run", "RUN")
HOSTS_REMARKS, HOSTS_WORDS = words("hosts", "HOSTS_REMARKS"), words("hosts", "HOSTS_WORDS")
LAUNCHER_NOTES, ORDER_REASONS = words("hosts", "LAUNCHER_NOTES"), words("hosts", "ORDER_REASONS")
TARGET_NAMES = words("launch", "TARGET_NAMES")
TRAFFIC, REASONS = words("traffic", "TRAFFIC"), words("traffic", "REASONS")
PURPOSES, BESIDE = words("traffic", "PURPOSES"), words("traffic", "BESIDE")
CP_CHOICES = words("traffic", "CP_CHOICES")

CLUSTER_NOTES = words("traffic", "CLUSTER_NOTES")
"""What is not settled about the numbers of a cluster."""

NOTES = {text.en: text for text in words("presets", "NOTES").values()}
"""What is to be known of a published layout, by its note in groups/published.txt."""

DERIVED = words("presets", "DERIVED")
"""Why a published layout has an option that its source does not state (training/derived.csv)."""

SPANS, WORK = words("refusals", "SPANS"), words("refusals", "WORK")
"""By names of the maths, which says its refusals in English itself."""

CALLED = {text.en: text for text in words("refusals", "CALLED").values()}
"""Frameworks that are called by words, by what a refusal calls them."""

LEFT_OUT = tuple(words("traffic", "LEFT_OUT").values())
SEARCH_LEFT_OUT = tuple(words("traffic", "SEARCH_LEFT_OUT").values())
