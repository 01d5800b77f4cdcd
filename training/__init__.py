"""WHAT the groups do in one training step: numbers only, no page, no drawing, no torch.

collectives, mappings    what an operation leaves on each rank; its bytes in `cost`, its
                         messages in `algorithms`
pipeline                 schedules op by op, their times and bubbles
memory                   bytes of each rank, of a `model` cut by a `split`
traffic                  bytes and seconds of each kind of group in a step, on a cluster
estimate                 how long a step takes and whether it fits, as measured runs tell
search                   the layouts that cost least, with `reasons`
"""
