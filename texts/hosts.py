"""Words of machines as they are: remarks, reasons for an order, notes on launchers."""

from __future__ import annotations

from .shapes import words

HOSTS_REMARKS = words("hosts", "HOSTS_REMARKS")
"""What to know beside what a text says, by the code of the remark."""

ORDER_REASONS = words("hosts", "ORDER_REASONS")
"""Why an order is as it is, by the code of the reason."""

LAUNCHER_NOTES = words("hosts", "LAUNCHER_NOTES")
"""What each launcher does with the file that is written for it."""

HOSTS_WORDS = words("hosts", "HOSTS_WORDS")
"""Names of levels, and sentences on measurements."""
