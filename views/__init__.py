"""One module per tab: ``answer(...)`` is pure and testable, ``build(...)`` wires widgets to it."""
