"""The sentences of the page by subject; `descriptions` gathers them all."""
