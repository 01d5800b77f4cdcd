"""The kinds of layers that models are made of: mixers and feed-forwards, and the layers of them.

Each kind is a frozen value of its sizes. What it holds (`weights`), keeps of a token and of a
request, and computes follows from these sizes alone; nobody else asks which kind it is.
"""

from .attention import Attention
from .feed_forward import MLP, Experts
from .latent import MLA, Compressed
from .layers import LayerKind, LayerRun, Mixer
from .mamba import Mamba1, Mamba2
from .states import KDA, GatedDelta, Lightning, ShortConv, StateMixer
from .tokens import Indexer
from .weights import Weight

__all__ = [
    *(
        "Attention",
        "Compressed",
        "Experts",
        "GatedDelta",
        "Indexer",
        "KDA",
        "LayerKind",
        "Lightning",
    ),
    *("MLA", "MLP", "Mamba1", "Mamba2", "Mixer", "LayerRun", "ShortConv", "StateMixer", "Weight"),
]
