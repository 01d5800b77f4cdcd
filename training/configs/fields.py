"""The fields of a config.json, each read by name, so that what was not read is known.

A name may have older ones (``n_embd`` for ``hidden_size``). A field that is absent has the value of
its architecture's row in defaults.toml, and is noted as taken from there. One that is null has
none, whatever the default: DeepSeek's ``q_lora_rank: null`` is a model without compressed queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from groups.errors import quoted

from ..errors import refusal
from ..model import MAX_SIZE

OLD_NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "n_embed", "d_model", "dim", "emb_dim", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "decoder_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "num_key_value_heads": ("num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "intermediate_size": (
        "n_inner",
        "ffn_hidden_size",
        "ffn_dim",
        "d_ff",
        "inner_dim",
        "block_ff_dim",
    ),
    "max_position_embeddings": ("n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "vocab_size": ("padded_vocab_size",),
    "tie_word_embeddings": ("tie_embedding",),
    "head_dim": ("kv_channels", "attention_head_dim"),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts"),
    "num_experts_per_tok": ("moe_k", "moe_topk", "num_experts_per_token", "top_k_experts"),
    "moe_intermediate_size": ("expert_ffn_hidden_size",),
    "hidden_act": ("hidden_activation", "activation_function", "activation", "mlp_hidden_act"),
}
"""Other names of a field, as older configurations have them."""


class Fields:
    """One object of a config.json.

    >>> config = Fields({"n_embd": 768, "n_layer": 12, "dropout": 0.1})
    >>> config.size("hidden_size"), config.size("num_hidden_layers"), sorted(config.unread())
    (768, 12, ['dropout'])

    Errors: LayoutError for a value that is not of its kind, or that two names give differently.
    """

    def __init__(
        self, raw: Mapping[str, object], defaults: Mapping[str, object] | None = None
    ) -> None:
        self.raw, self.defaults = raw, defaults or {}
        self.read: set[str] = set()
        self.assumed: dict[str, object] = {}

    def value(self, name: str) -> object:
        """A field's value; None where it is absent, null, and has no default."""
        names = (name, *OLD_NAMES.get(name, ()))
        self.read.update(names)
        found = {other: self.raw[other] for other in names if self.raw.get(other) is not None}
        if len({repr(value) for value in found.values()}) > 1:
            (first, one), (second, other) = [*found.items()][:2]
            facts = {"one": quoted(one), "second": second, "other": quoted(other)}
            raise refusal("config-says-two", first, field=first, **facts)
        if found:
            return next(iter(found.values()))
        if any(other in self.raw for other in names):
            return None
        for other in names:
            if other in self.defaults:
                self.assumed[other] = self.defaults[other]
                return self.defaults[other]
        return None

    def has(self, name: str) -> bool:
        """Whether it is given, by any name, and not null."""
        return any(self.raw.get(other) is not None for other in (name, *OLD_NAMES.get(name, ())))

    def size(self, name: str, otherwise: int | None = None) -> int:
        """A whole number from 0 up.

        Errors: LayoutError where it is absent and nothing stands for it.
        """
        value = self.value(name)
        if value is None:
            if otherwise is None:
                raise refusal("config-lacks", name, field=name)
            return otherwise
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
            raise refusal("config-no-size", name, field=name, value=quoted(value))
        return value

    def positive(self, name: str, otherwise: int | None = None) -> int:
        """A whole number from 1 up."""
        size = self.size(name, otherwise)
        if not size:
            raise refusal("config-no-size", name, field=name, value=0)
        return size

    def flag(self, name: str, otherwise: bool = False) -> bool:
        value = self.value(name)
        if value is None:
            return otherwise
        if not isinstance(value, bool):
            raise refusal("config-no-flag", name, field=name, value=quoted(value))
        return value

    def text(self, name: str, otherwise: str = "") -> str:
        value = self.value(name)
        if value is None:
            return otherwise
        if not isinstance(value, str):
            raise refusal("config-no-text", name, field=name, value=quoted(value))
        return value

    def items(self, name: str) -> list[object] | None:
        """A list; None where it is absent."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise refusal("config-no-list", name, field=name, value=quoted(value))
        return cast("list[object]", value)

    def part(self, name: str, defaults: Mapping[str, object] | None = None) -> Fields | None:
        """A nested object; None where it is absent."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise refusal("config-no-object", name, field=name, value=quoted(value))
        return Fields(cast("Mapping[str, object]", value), defaults)

    def unread(self) -> set[str]:
        """Names of the fields that have a value and were not read."""
        return {name for name, value in self.raw.items() if value is not None} - self.read
