"""How fast the page is, measured: python -m benchmarks [--quick] [--only groups,picture,...].

Nothing here passes or fails by time. Figures are medians (p95 where someone waits for it), and what
is compared is measured in turns within one run, so a busy machine slows both sides.
"""
