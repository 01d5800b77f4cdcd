"""The page, and the endpoints that programs call.

A view is a folder: `view` is a function of a `base.context.Context` and its row, one `View`,
`inputs` reads what it is asked, `pictures` go into files, `api` answers programs; `all` lists them.
`base` is what all share, `gradio` knows Gradio's JavaScript, `server` stands before it, `page`
wires everything, `export` makes files.
"""
