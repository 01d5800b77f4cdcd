"""Numbers in, pictures out: groups, tensors, timelines, shards, heat, traffic.

What to draw is computed first, as plain data that a test can read; painters decide nothing. Those
that write SVG are for the page, those that draw with matplotlib (`figure`, `*_figure`) for files.
"""
