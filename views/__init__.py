"""The page and what programs may ask of it.

A view is a folder: `view` is one function of a `base.context.Context`, `inputs` reads what it is
asked, `pictures` go into files, `api` answers programs, and `row` says so in one `View`; `all` is
the list of them. `base` is what all share: the page's one `State` and its table of fields, links,
refusals, what is trained. `gradio` knows Gradio's JavaScript, `page` wires everything, `export`
makes files.
"""
