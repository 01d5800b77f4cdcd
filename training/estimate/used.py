"""How well a step uses its GPUs: operations that the model needs over those that the peak allows.

    model       3 times the forward products with weights, of layers and output layer, without
                padding, and 3 times attention's over what each token sees: forward, and twice that
                backward; 2 times with weights that are frozen
    again       products and attention that are recomputed: not the model's, but the GPU's
    MFU         model / (seconds * GPUs * peak)         (arXiv:2204.02311 appendix B)
    HFU         (model + again) / (seconds * GPUs * peak)
    tokens      samples of a step * sequence / seconds

A causal token sees half of its sequence on average. Sources differ in whether they count that half
(Megatron-LM since 2025, MaxText since July 2025) or all of it (arXiv:2104.04473, arXiv:2205.05198,
PaLM); both are given, and the first is what is meant without a word. The peak is that of the format
in which the layers multiply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from groups.kept import kept

from ..kinds import LayerKind, StateMixer
from ..model import Model
from ..recipe import WIDE
from ..recompute import modules_of
from ..split import Split
from .answer import Estimate
from .request import Request
from .work import layer_work

CAUSAL, FULL = "causal", "full"
COUNTS = (CAUSAL, FULL)
"""Ways to count attention: what a causal token sees, or the whole sequence."""


@dataclass(frozen=True)
class Operations:
    """Forward operations of one token: of products with weights in all layers, of attention where a
    token sees what is before it, and where it sees all; of the output layer."""

    layers: float
    causal: float
    full: float
    head: float

    def forward(self, counted: str = CAUSAL) -> float:
        return self.layers + self.head + (self.causal if counted == CAUSAL else self.full)


@kept
def operations_of(model: Model) -> Operations:
    """The forward operations of a model's token.

    >>> from training.models import MODELS
    >>> found = operations_of(MODELS["gpt3-175b"].model)
    >>> h, s, layers = 12288, 2048, 96  # arXiv:2104.04473 appendix: 24 h^2 and 4 s h of a layer
    >>> found.layers == layers * 24 * h**2, found.full == layers * 4 * s * h
    (True, True)
    """
    layers = causal = full = 0.0
    for number, kind in _counted(model):
        products = sum(
            2.0 * n * k for mixer in kind.mixers for n, k, _ in mixer.products(model.hidden, 1)
        )
        for part in kind.feed_forwards:
            products += 2.0 * (3 if part.gated else 2) * model.hidden * part.dense_width
        if (moe := kind.moe) is not None:
            width = moe.latent or model.hidden
            products += 2.0 * (moe.experts + moe.zero) * model.hidden
            products += 2.0 * (3 if moe.gated else 2) * moe.top_k * width * moe.width
        sequence = float(model.sequence)
        for mixer in kind.mixers:
            constant = mixer.constant_operations()
            seen = mixer.mean_seen(sequence)
            whole = seen if isinstance(mixer, StateMixer) else sequence
            causal += number * (mixer.context_operations() * seen + constant)
            full += number * (mixer.context_operations() * whole + constant)
        layers += number * products
    head = 2.0 * model.vocabulary * model.hidden * (1 + model.mtp_layers)
    return Operations(layers, causal, full, head)


@kept
def _counted(model: Model) -> list[tuple[int, LayerKind]]:
    """Each kind of layer with the number of its layers, MTP modules among the last kind's."""
    counts = Counter(model.stack)
    counts[model.stack[-1]] += model.mtp_layers
    return [(number, kind) for kind, number in counts.items()]


@dataclass(frozen=True)
class Use:
    """How well a step of so many seconds uses the GPUs of a request.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> step = estimate(MODELS["gpt3-175b"].model, cluster="dgx-a100", gpus=64, pp=8, vpp=3,
    ...                 global_batch=64, sequence=2048, recompute="selective", flash=False)
    >>> round(Use(step.request, 13.75).mfu(FULL), 3)  # measured; arXiv:2205.05198 Table 5: 51.4 %
    0.514
    """

    request: Request
    seconds: float

    @property
    def peak(self) -> float:
        """Operations per second of one GPU, in the format of the layers' products."""
        products, machine = self.request.training.products, self.request.machine
        if products in WIDE:
            return machine.peak
        return machine.fp4 if products == "nvfp4" else machine.fp8

    @property
    def tokens(self) -> float:
        """Tokens of a step."""
        return float(self.request.global_batch * self.request.model.sequence)

    @cached_property
    def operations(self) -> Operations:
        return operations_of(self.request.model)

    def model_operations(self, counted: str = CAUSAL) -> float:
        """Operations of a step that the model needs, of all GPUs: of frozen weights no product for
        their gradients, and adapters beside them."""
        forward, training = self.operations.forward(counted), self.request.training
        if not training.is_adapted:
            return 3.0 * self.tokens * forward
        products = self.operations.layers + self.operations.head
        adapters = _of_adapters(self.request)
        each = training.product_passes * products + 3.0 * (forward - products + adapters)
        return self.tokens * each

    def again(self, counted: str = CAUSAL) -> float:
        """Operations of a step that are computed again."""
        recompute, found = self.request.training.recompute, self.operations
        attention = found.causal if counted == CAUSAL else found.full
        if recompute == "full":
            return self.tokens * (found.layers + attention)
        modules = modules_of(recompute)
        is_again = "core_attn" in modules and not self.request.training.flash
        return self.tokens * (attention * is_again + _of_modules(self.request, modules))

    def _of_peak(self, operations: float) -> float:
        return operations / (self.seconds * self.request.gpus * self.peak)

    def mfu(self, counted: str = CAUSAL) -> float:
        return self._of_peak(self.model_operations(counted))

    def hfu(self, counted: str = CAUSAL) -> float:
        return self._of_peak(self.model_operations(counted) + self.again(counted))

    def per_gpu(self, counted: str = CAUSAL) -> float:
        """Operations per second and GPU that the model needs."""
        return self.model_operations(counted) / (self.seconds * self.request.gpus)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    def facts(self) -> dict[str, object]:
        """The figures as JSON values."""
        gpus = self.request.gpus
        return {
            "tokens_per_second": self.tokens_per_second,
            "tokens_per_second_per_gpu": self.tokens_per_second / gpus,
            "tflop_per_second_per_gpu": self.per_gpu() / 1e12,
            "mfu": self.mfu(),
            "hfu": self.hfu(),
            "attention_in_full": {
                "tflop_per_second_per_gpu": self.per_gpu(FULL) / 1e12,
                "mfu": self.mfu(FULL),
                "hfu": self.hfu(FULL),
            },
            "peak_tflop_per_second": self.peak / 1e12,
            "counted": "model operations: attention counts what a causal token sees; recomputation "
            "counts in hfu alone",
        }


def _of_modules(request: Request, modules: frozenset[str]) -> float:
    """Forward operations of one token in products that modules compute again."""
    if not modules - {"core_attn"}:
        return 0.0
    alone, total = _alone(request), 0.0
    for number, kind in _counted(request.model):
        work = layer_work(alone, kind)
        each = work.lifted.operations if "mla_up_proj" in modules else 0.0
        around = {"moe", "shared_experts"} if kind.moe else {"mlp"}
        each += work.mlp.operations if modules & around else 0.0
        each += work.experts.operations if "moe" in modules else 0.0
        total += number * each / alone.tokens
    return total


def _of_adapters(request: Request) -> float:
    """Forward operations of one token in adapters."""
    alone = _alone(request)
    counted = _counted(request.model)
    total = sum(number * layer_work(alone, kind).adapters.operations for number, kind in counted)
    return total / alone.tokens


def _alone(request: Request) -> Request:
    """The same on a single rank."""
    return Request(**{**vars_of(request), "split": Split()})  # type: ignore[arg-type]


def vars_of(request: Request) -> Mapping[str, object]:
    """The fields of a request, without what is worked out from them."""
    names = request.__dataclass_fields__
    return {name: getattr(request, name) for name in names}


# -- from the peak to the step ---------------------------------------------------------------------

LOSSES = ("recompute", "shapes", "tp", "cp", "ep", "pp", "bubble", "dp", "optimizer")
"""What a step's seconds are for beyond the model's operations at the peak, in order."""


def waterfall(estimate: Estimate) -> dict[str, float]:
    """Seconds from the peak to the step: "peak", what the model would take at it, then what each
    cause adds; they sum to the step.

    recompute: its share of the time to compute; shapes: what products of real sizes and formats,
    passes over memory and uneven stages take more than the peak; then waits, idle time, optimizer,
    offload and the host.

    >>> from training.models import MODELS
    >>> from .answer import estimate
    >>> step = estimate(MODELS["llama3-8b"].model, gpus=8, tp=1, global_batch=64, sequence=8192)
    >>> falls = waterfall(step)
    >>> abs(sum(falls.values()) - step.seconds) < 1e-9, round(falls["peak"] / step.seconds, 2)
    (True, 0.52)
    """
    use, parts = Use(estimate.request, estimate.seconds), estimate.parts
    needed, again = use.model_operations(), use.again()
    peak = needed / (estimate.request.gpus * use.peak)
    recompute = parts["compute"] * again / (needed + again)
    others = {name: seconds for name, seconds in parts.items() if name != "compute"}
    shapes = parts["compute"] - recompute - peak
    return {"peak": peak, "recompute": recompute, "shapes": shapes, **others}


def seconds_of(request: Request, kind: str, value: float) -> dict[str, float]:
    """Seconds of a step by how a measured speed counts: of seconds and tokens there is one answer
    ("" in both), of TFLOP/s one for each way to count attention.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> request = estimate(MODELS["llama3-8b"].model, gpus=8, tp=1, global_batch=64).request
    >>> seconds_of(request, "tokens", 65_536.0), sorted(seconds_of(request, "tflops", 400.0))
    ({'': 4.0}, ['causal', 'full'])
    """
    use = Use(request, 1.0)
    if kind == "tflops":
        return {counted: use.per_gpu(counted) / (value * 1e12) for counted in COUNTS}
    tokens = {"tokens": use.tokens / value, "tokens_per_gpu": use.tokens / (value * request.gpus)}
    return {"": tokens.get(kind, value)}
