"""What a model is, in numbers: parameters by kind and layer, and what its kinds of layers hold.

parameters  in all, of the language part, outside of layers, of each layer, of routed experts,
            and those that one token meets
kinds       each kind of layer: how many, their parameters, what they keep, their operations
sequence_operations    forward of whole sequences
"""

from __future__ import annotations

from .configs.reading import ReadConfig
from .kinds import LayerKind
from .model import Model
from .parameters import (
    active_parameters,
    end_weights,
    layer_parameters,
    layer_total,
    parameters_by_kind,
    total_parameters,
)

Facts = dict[str, object]

LENGTHS = (4096, 131072)
"""Context lengths for which operations are told."""


def config_facts(read: ReadConfig) -> Facts:
    """All facts of a configuration, as JSON has them.

    >>> from training.configs.reading import read_config
    >>> facts = config_facts(read_config({"model_type": "llama", "hidden_size": 64,
    ...     "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    ...     "vocab_size": 1000, "tie_word_embeddings": False}))
    >>> facts["parameters"]["all"], facts["parameters"]["layers"], facts["layers"][0]
    (210240, [41088, 41088], {'mixer': 'attention', 'ffn': 'mlp'})
    """
    facts = model_facts(read.model)
    assumed = dict(read.assumed or {})
    about = {"model_type": read.model_type}
    more = {"not_counted": [*read.not_counted], "assumed": assumed, "weights": read.weights}
    return {**about, **facts, **more}


def model_facts(model: Model) -> Facts:
    """The facts of a model."""
    towers = sum(tower.parameters for tower in model.towers)
    layers = [layer_total(model, kind) for kind in model.kinds]
    each = [layers[place] for place in model.numbers]
    kinds = [layer_parameters(model, kind) for kind in model.kinds]
    routed = [sum(counts.get("experts", (0, 0))) for counts in kinds]
    total = total_parameters(model)
    knows_active = all(kind.moe.top_k for kind in model.kinds if kind.moe)
    return {
        "parameters": {
            "all": total,
            "language": total - towers,
            "outside_layers": total - towers - sum(each) - _mtp(model),
            "layers": each,
            "routed": [routed[place] for place in model.numbers] if any(routed) else [],
            "active": active_parameters(model) if knows_active else None,
            "by_kind": parameters_by_kind(model),
        },
        "layers": [
            {"mixer": layer.mixer, "ffn": layer.ffn}
            for layer in (model.kinds[place] for place in model.numbers)
        ],
        "kinds": [kind_facts(model, place) for place in range(len(model.kinds))],
        "sequence_operations": {length: sequence_operations(model, length) for length in LENGTHS},
        "towers": {tower.name: tower.parameters for tower in model.towers},
    }


def _mtp(model: Model) -> int:
    return parameters_by_kind(model).get("mtp", 0)


def kind_facts(model: Model, place: int) -> Facts:
    """The facts of one kind of layer: bytes that it keeps are in 16 bits."""
    kind = model.kinds[place]
    return {
        "mixer": kind.mixer,
        "ffn": kind.ffn,
        "layers": model.numbers.count(place),
        "parameters": layer_total(model, kind),
        "token_bytes": sum(2 * mixer.token_elements for mixer in kind.mixers),
        "state_bytes": sum(2 * mixer.request_elements() for mixer in kind.mixers),
        "window": max((mixer.window for mixer in kind.mixers), default=0),
        "operations": {length: operations(model, kind, length) for length in LENGTHS},
    }


def operations(model: Model, kind: LayerKind, context: int) -> float:
    """Operations of one token forward through a layer, with ``context`` tokens before it.

    Two for each parameter of a product that it meets, and 2*n*(d_qk + d_v) for each token that it
    attends to; windows and chunks attend to no more than their tokens.
    """
    products = sum(weight.operations for weight in kind.weights(model.hidden))
    for mixer in kind.mixers:
        products += mixer.context_operations() * mixer.seen(context)
        products += mixer.constant_operations() + mixer.score_operations(context)
    return products


def sequence_operations(model: Model, tokens: int) -> float:
    """Operations forward of a whole sequence through the model, as torch's counter finds them in
    transformers' code: products of matrices and convolutions alone, and no window is used."""
    layers = []
    for kind in model.kinds:
        products = sum(weight.operations for weight in kind.weights(model.hidden)) * tokens
        layers.append(products + sum(each.sequence_operations(tokens) for each in kind.mixers))
    ends = sum(weight.operations for weight in end_weights(model))
    outside = tokens * (2 * model.vocabulary * model.hidden + ends)
    return sum(layers[place] for place in model.numbers) + outside


def token_operations(model: Model, context: int) -> float:
    """Operations of one token forward through the whole model, output included."""
    layers = [operations(model, kind, context) for kind in model.kinds]
    ends = sum(weight.operations for weight in end_weights(model))
    output = 2 * model.vocabulary * model.hidden
    return sum(layers[place] for place in model.numbers) + output + ends
