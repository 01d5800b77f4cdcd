"""Everything that knows Gradio's JavaScript: the page's one component, its scripts and styles."""
