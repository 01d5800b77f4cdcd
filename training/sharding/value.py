"""Data parallelism as one value: how copies of a model share its states and its gradients.

    replicate x shard     ranks with a copy each, each copy cut over shard ranks
    cut                   what of a copy is cut: nothing (DDP), the optimizer (ZeRO-1), gradients
                          too (ZeRO-2), weights too (ZeRO-3, FSDP)
    stored, gathered, reduced   formats of parameters, of parameters on their way, of gradients on
                          theirs
    units, reshard        what is gathered together, and when it is cut again after forward
    sync                  when gradients are reduced

Each framework's own is made where it stands (groups/frameworks); laws of it are beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import refusal, require_choice
from .record import BYTES
from .units import WRAPPINGS
from .words import CUTS, ENGINES, RESHARDS, SYNCS

Reshard = bool | int | str
"""After forward: cut again (True), kept whole (False), cut over so many ranks, or torchtitan's
"default", "always" and "never"."""


@dataclass(frozen=True)
class DataParallel:
    """How one job does data parallelism.

    engine: one of ENGINES. root_reshard: the same for the root's own unit, which is kept whole
    unless it is said. last_flag: whether backward passes before the last are said to be no last
    ones (set_is_last_backward).

    >>> titan = DataParallel("fsdp2", "weights", shard=8, units="torchtitan", reshard="default")
    >>> titan.ranks, titan.keeps_whole(pp=1), titan.keeps_whole(pp=4)
    (8, False, True)

    Errors: LayoutError for what is none of the choices.
    """

    engine: str = "megatron"
    cut: str = "optimizer"
    replicate: int = 1
    shard: int = 1
    stored: str = "fp32"
    gathered: str = "bf16"
    reduced: str = "fp32"
    units: str = "blocks"
    reshard: Reshard = True
    root_reshard: bool | int = False
    sync: str = "every"
    last_flag: bool = False
    hpz: int = 1

    def __post_init__(self) -> None:
        require_choice("engine", self.engine, ENGINES)
        require_choice("cut", self.cut, CUTS)
        require_choice("units", self.units, tuple(WRAPPINGS))
        require_choice("sync", self.sync, SYNCS)
        for name in ("stored", "gathered", "reduced"):
            require_choice(name, getattr(self, name), tuple(BYTES))
        if isinstance(self.reshard, str):
            require_choice("reshard", self.reshard, RESHARDS)
        elif not isinstance(self.reshard, bool) and self.shard % max(self.reshard, 1):
            facts = {"ranks": self.reshard, "shard": self.shard}
            raise refusal("reshard-does-not-divide", "reshard", {"reshard": True}, **facts)

    @property
    def ranks(self) -> int:
        """Ranks that read different samples, or parts of one."""
        return self.replicate * self.shard

    @property
    def zero(self) -> int:
        """The stage of ZeRO whose states it cuts."""
        return CUTS.index(self.cut)

    def keeps_whole(self, pp: int) -> bool:
        """Whether the layers' weights stay whole from their first use to the end of the step."""
        return (
            self.reshard is False
            or self.reshard == "never"
            or (self.reshard == "default" and pp > 1)
        )

    def reshard_of(self, pp: int, *, is_root: bool, is_end: bool) -> bool | int:
        """What a module does after forward: torchtitan keeps the last modules whole unless it is
        "always"; a root is kept unless it is said."""
        if isinstance(self.reshard, str):
            return self.reshard == "always" if is_end else not self.keeps_whole(pp)
        if is_root:
            return self.root_reshard
        return self.reshard if self.reshard is True or self.reshard > 1 else False
