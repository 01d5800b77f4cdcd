"""WHAT the groups do in one training step: numbers only, no page, no drawing, no torch.

    collectives, mappings    what an operation leaves on each rank; its bytes in `cost`, its
                             messages in `algorithms`
    pipeline                 schedules op by op, their times and bubbles
    memory                   bytes of each rank, of a `model` cut by a `split`
    traffic                  bytes and seconds of each kind of group in a step, on a cluster
    estimate                 how long a step takes and whether it fits, as measured runs tell
    search                   the layouts that cost least, with `reasons`

>>> from groups import parse_mesh, rank_groups
>>> from training.collectives import apply
>>> groups = rank_groups(parse_mesh("tp2-dp2"), "tp")
>>> [tensor.tolist() for tensor in apply("all_reduce", [[0], [1], [2], [3]], groups)]
[[1], [1], [5], [5]]
"""
