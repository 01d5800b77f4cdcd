"""What a command prints as rows, and as JSON in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from formats.documents.exports import heading
from formats.documents.tables import Table
from formats.values import Facts


@dataclass(frozen=True)
class Report(Table):
    """Rows to read, and the facts of an endpoint, which JSON prints in full."""

    facts: Facts = field(default_factory=dict)

    def _json(self) -> Iterator[str]:
        schema = f"parallel-{self.title}"
        about = heading(self.layout, schema) if self.layout else {"schema": schema}
        yield json.dumps({**about, **self.facts}, indent=2) + "\n"
