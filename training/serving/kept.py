"""What a layer keeps of a request while it is answered, as each engine keeps it.

    attention      keys and values of every token, or of a window's
    MLA, indexer   the latent of every token; the indexer's key beside it
    with a state   the last columns of a convolution, and the state: no token more

vLLM and SGLang hold k - 1 columns of a convolution of k tokens, transformers k; states have 16 bits
in vLLM unless the configuration says else, 32 in SGLang and transformers (lightning: 16). Of a
window of w tokens transformers keeps w - 1.

Sources: vllm-project/vllm 0.33.0 vllm/v1/kv_cache_interface.py; sgl-project/sglang 0.5.23 configs/
mamba_utils.py; huggingface/transformers 5.24.0 cache_utils.py.
"""

from __future__ import annotations

from ..errors import require_choice
from ..kinds import MLA, Compressed, LayerKind, Lightning, Mixer, StateMixer
from ..model import Model

ENGINES = ("vllm", "sglang", "transformers")
"""Engines that keep it differently."""


def kept_bytes(mixer: Mixer, tokens: int, engine: str = "vllm", tp: int = 1) -> float:
    """Bytes of a request of ``tokens`` tokens in one mixer, on one of ``tp`` ranks.

    >>> from training.kinds import Attention, GatedDelta
    >>> kept_bytes(Attention(32, 8, 128), 256), kept_bytes(GatedDelta(16, 32, 128, 128, 4), 256)
    (1048576.0, 1097728.0)
    """
    require_choice("engine", engine, ENGINES)
    if isinstance(mixer, StateMixer):
        return _state_bytes(mixer, engine, tp)
    if isinstance(mixer, Compressed):
        return _compressed(mixer, tokens, engine)
    seen = tokens
    if mixer.window:
        seen = min(tokens, mixer.window - (engine == "transformers"))
    if engine == "transformers" and isinstance(mixer, MLA) and mixer.indexer:
        return 2.0 * seen * (mixer.token_elements + mixer.indexer.dim)
    return seen * mixer.rank_token_bytes(tp)


def _state_bytes(mixer: StateMixer, engine: str, tp: int) -> float:
    conv, state = mixer.conv_elements(tp), mixer.state_elements // tp
    if engine == "transformers" and mixer.kernel > 1:
        conv = conv * mixer.kernel // (mixer.kernel - 1)
    is_wide = engine != "vllm" and not isinstance(mixer, Lightning)
    return 2.0 * conv + (4.0 if is_wide else 2.0) * state


def _compressed(mixer: Compressed, tokens: int, engine: str) -> float:
    """The window, one key for every few tokens, and of overlapping ones the last pair's halves."""
    twice = engine == "transformers"  # keys, and the same as values
    kept = 2.0 * (1 + twice) * mixer.head_dim * min(tokens, mixer.window - twice)
    if not mixer.rate:
        return kept
    dims = mixer.head_dim + (mixer.indexer.dim if mixer.indexer else 0)
    kept += 2.0 * dims * (tokens // mixer.rate)
    return kept + (6.0 * mixer.rate * dims if mixer.indexer else 0.0)


def layer_kept(layer: LayerKind, tokens: int, engine: str = "vllm", tp: int = 1) -> float:
    """Bytes of a request in one layer."""
    return sum(kept_bytes(mixer, tokens, engine, tp) for mixer in layer.mixers)


def request_bytes(model: Model, tokens: int, engine: str = "vllm", tp: int = 1) -> float:
    """Bytes of a request in all layers, on one of ``tp`` ranks without a pipeline."""
    kinds = [layer_kept(kind, tokens, engine, tp) for kind in model.kinds]
    return sum(kinds[place] for place in model.numbers)
