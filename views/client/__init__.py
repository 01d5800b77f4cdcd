"""The page's client: Gradio's one component, and the page's scripts and styles."""

from ..server.importing import without_stubs

with without_stubs():  # for a class of components Gradio writes one beside it
    from . import components as components
