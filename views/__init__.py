"""The page and what programs may ask of it.

A view is one pure function, ``x_html(layout, controls, asked, language)``, in a module `x`;
`x_asked` reads what it is asked, `x_...` are its parts. `state` reads the column, `page` wires
everything to Gradio, `charts` and `export` make files, and `api*` are the endpoints.
"""
