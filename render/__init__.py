"""Numbers in, pictures out: groups, tensors, timelines, shards, heat maps, traffic.

What to draw is computed first, as plain data that a test can read (`scenes`); painters decide
nothing. Those in `svg` write what the page's script and style sheet know by its names, those in
`files` make marks of a scene (`marks`), which leave the page; what nothing on the page has to know
is painted by the same marks there.
"""
