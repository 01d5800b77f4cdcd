"""Everything that knows Gradio's JavaScript: the column, the state box, size boxes, the painter."""
