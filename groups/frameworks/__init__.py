"""How frameworks number their ranks, and which groups they make: an object for each.

>>> framework_of("sglang").sizes["dp"], framework_of("picotron").serves
('attn-dp', False)
"""

from .framework import AXES, EXPERTS_MAIN, MAIN, OF_MEGATRON, SERVED, Framework, Made, OwnAxis
from .sizes import JobSizes
from .table import FRAMEWORKS, OWN, framework_of, framework_or_first
