"""The sentences of the page by what they are about; `descriptions` gathers them all."""
