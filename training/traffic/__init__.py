"""The bytes that each kind of group sends in one step: their links, senders and receivers."""
