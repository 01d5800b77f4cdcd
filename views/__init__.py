"""The page.

A view is a folder: `view` is a function of a `request.context.Context` and its row, one `View`;
`all` lists them. `base` holds elements, inputs and refusals, `parts` what several views show,
`client` the page's scripts, `server` stands before it; `page` wires everything, `export` makes
files.
"""
