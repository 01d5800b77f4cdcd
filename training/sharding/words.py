"""The names of what data parallelism may be: programs, cuts, and when things happen."""

ENGINES = ("megatron", "ddp", "fsdp2", "zero")
"""Programs of data parallelism: Megatron's (and what is like it), torch's DDP, torch's fully_shard,
DeepSpeed's ZeRO."""

OF_TORCH = ("ddp", "fsdp2")
"""Of these torch's own, whose pipelines are torch's too."""

WITH_COPIES = ("fsdp2",)
"""Of these those that hold several copies of what they cut, as many as one says (HSDP)."""

CUTS = ("nothing", "optimizer", "gradients", "weights")
"""What is cut over the ranks of a copy, each with those before it: ZeRO's stages 0 to 3."""

SYNCS = ("every", "last", "kept", "replicas")
"""When gradients are reduced: behind every micro-batch; behind the last one only, with weights cut
again meanwhile (last) or kept whole (kept); or reduce-scattered behind each and all-reduced over
replicas behind the last."""

RESHARDS = ("default", "always", "never")
"""Whether weights are cut again after forward: torchtitan's words; by default they are, but under
pipeline stages, and but the last modules."""

UNSAID = {
    "megatron": (1, "bf16-fp32"),
    "ddp": (0, "bf16-fp32"),
    "fsdp2": (3, "bf16-fp32"),
    "zero": (0, "bf16-bf16"),
}
"""What an engine does where nobody says its stage of ZeRO and its formats (deepspeedai/DeepSpeed
edaa722 deepspeed/runtime/zero/config.py, stage)."""
