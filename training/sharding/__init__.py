"""Data parallelism as each framework does it: what it holds, sends and keeps alive in a step.

value      who shares what, and when        units    parameters, and what is gathered together
fsdp       FSDP2's hooks played             step     a step of them, without stages or through some
ddp        DDP's buckets                    zero, zero3, zero_steps    DeepSpeed's ZeRO
held       bytes on a rank                  sent     operations of a step by kind of group
"""
