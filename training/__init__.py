"""WHAT the groups do in one training step: numbers only, no page, no drawing, no torch.

models, clusters   what is trained and on what: published shapes, machines
split, parameters  how a model is cut over ranks, and what each then holds of it
recipe             how it is trained: batch, schedule, number formats, ZeRO
collectives        what an operation leaves on each rank, its bytes, its messages
pipeline           schedules op by op, their times and bubbles
memory             bytes of each rank
traffic            bytes and seconds of each kind of group in a step, on a cluster
estimate           how long a step takes and whether it fits, as measured runs tell
search             the layouts that cost least, with the reasons
"""
