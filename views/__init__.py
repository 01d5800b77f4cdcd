"""The page and what programs may ask of it.

A view is a folder: `view` is one pure function, ``x_html(layout, state, language)``,
`inputs` reads what it is asked, `api` answers programs. `base` is what all share, `gradio` knows
Gradio's JavaScript, `page` wires everything, `charts` and `export` make files.
"""
