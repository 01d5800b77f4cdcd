"""What the views themselves are asked, beside the layout: unchecked, as `Controls` is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Asked:
    """The view that is shown, and what each is asked."""

    view: Any = "groups"
    preset: Any = ""  # the published layout that was chosen last
    versus: Any = "auto"
    ranks: Any = ""
    kept: Any = ""  # the link of the layout to compare with
    paste: Any = ""  # a launch command
    rank: Any = ""  # the pinned one, as it was typed; empty: none. Last: status.js writes it there
