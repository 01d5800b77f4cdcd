"""How nanotron deals the layers of a model to the ranks of a pipeline.

Every block has a cost: a layer its products, with queries, keys and values counted as wide as
hidden, and the output layer its own; the embedding has none. A rank takes blocks until the cost of
all that are dealt exceeds its share of the whole, so the first ranks have more layers than Megatron
would give them, and the last ones may have none.

Source: huggingface/nanotron 2411b02, src/nanotron/models/base.py build_model and
src/nanotron/models/llama.py get_block_compute_costs.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from groups.kept import kept

from ..model import Model
from .request import Request


def dealt_by_cost(request: Request) -> Request:
    """The request with nanotron's assignment of layers; unchanged if a rank would have no layer.

    >>> from training.models import MODELS
    >>> from .request import Arguments, request_of
    >>> asked = request_of(MODELS["llama3-8b"].model, Arguments(gpus=8, tp=1, pp=4, sequence=4096))
    >>> dealt_by_cost(asked).split.spread
    'Et*9|t*9|t*8|t*6L'
    """
    pp = request.split.pp
    if pp == 1 or pp > request.model.layers:
        return request
    shape = layout_by_cost(request.model, pp)
    split = replace(request.split, spread=shape, account=False)
    return replace(request, split=split)


@kept
def layout_by_cost(model: Model, pp: int) -> str:
    """The layers of each rank, as Megatron writes a layout (groups.stages.layout_strings)."""
    layer = (4 * model.hidden + 3 * model.ffn) * model.hidden
    output = model.vocabulary * model.hidden
    counts, at = [0] * pp, 0
    whole = model.layers * layer + output
    for dealt in accumulate([layer] * model.layers):
        counts[at] += 1
        at += at < pp - 1 and dealt * pp > whole * (at + 1)
    ranks = [f"t*{count}" if count > 1 else "t" * count for count in counts]
    return "|".join(["E" + ranks[0], *ranks[1:]]) + "L"
