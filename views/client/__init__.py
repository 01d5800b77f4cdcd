"""The page's client: Gradio's one component, and the page's scripts and styles."""
