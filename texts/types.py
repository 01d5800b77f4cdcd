"""Types of groups, the choices of the dropdown, with pages to read; and kinds of groups."""

from __future__ import annotations

import re

from .shapes import GroupType, Kind, Link, catalogue, words

_URLS = {
    "parameter-server": "https://www.cs.cmu.edu/~muli/file/ps.pdf",
    "from-dp-to-fsdp": "https://zhuanlan.zhihu.com/p/485208899",
    "data-parallel-1": "https://zhuanlan.zhihu.com/p/617133971",
    "data-parallel-2": "https://zhuanlan.zhihu.com/p/618865052",
    "megatron-2019": "https://arxiv.org/pdf/1909.08053.pdf",
    "megatron-survey": "https://strint.notion.site/Megatron-LM-86381cfe51184b9c888be10ee82f3812",
    "tensor-parallel": "https://zhuanlan.zhihu.com/p/622212228",
    "megatron-2021": "https://arxiv.org/pdf/2104.04473.pdf",
    "pipeline-source": "https://zhuanlan.zhihu.com/p/678724323",
    "pipeline-gpipe": "https://zhuanlan.zhihu.com/p/613196255",
    "megatron-setup": "https://juejin.cn/post/7063030243224879140",
    "zero-bubble": "https://mp.weixin.qq.com/s/PXjYm9dN8C9B8svMQ7nOvw",
    "context-parallel-docs": "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/context_parallel.html",
    "ulysses-and-ring": "https://zhuanlan.zhihu.com/p/689067888",
    "ring-and-flash": "https://zhuanlan.zhihu.com/p/683714620",
    "context-parallel-answer": "https://www.zhihu.com/question/637961859/answer/3349322621",
    "lightseq": "https://mp.weixin.qq.com/s/u4gG1WZ73mgH9mEKQQCRww",
    "best-layout": "https://mp.weixin.qq.com/s/D-14J482SFQf-zh-EFa-1w",
    "megatron-init": "https://zhuanlan.zhihu.com/p/629121480",
    "pytorch-fsdp": "https://zhuanlan.zhihu.com/p/670374745",
    "parallel-folding": "https://arxiv.org/abs/2504.14960",
    "deepseek-v3": "https://arxiv.org/abs/2412.19437",
    "moe-docs": "https://docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html",
}

_TITLES = words("types", "LINKS")
LINKS = {name: Link(url, _TITLES[name]) for name, url in _URLS.items()}

_CP = "context-parallel-docs ulysses-and-ring ring-and-flash context-parallel-answer lightseq"
_SHOWN = {
    "auto": ("", "megatron-setup megatron-init"),
    "dp": ("dp", "parameter-server from-dp-to-fsdp data-parallel-1 data-parallel-2"),
    "tp": ("tp", "megatron-2019 megatron-survey tensor-parallel"),
    "pp": ("pp", "megatron-2021 pipeline-source pipeline-gpipe megatron-setup zero-bubble"),
    "cp": ("cp", _CP),
    "dp+tp": ("dp tp", "best-layout"),
    "dp+pp": ("dp pp", "best-layout zero-bubble pipeline-source"),
    "dp+tp+pp": ("dp tp pp", "megatron-setup megatron-init pytorch-fsdp"),
    "cp+dp": ("cp dp", _CP),
    "cp+dp+tp": ("cp dp tp", _CP),
    "cp+dp+pp": ("cp dp pp", _CP),
    "cp+dp+tp+pp": ("cp dp tp pp", _CP),
    "cp+tp": ("cp tp", _CP),
    "cp+pp": ("cp pp", _CP),
    "cp+tp+pp": ("cp tp pp", _CP),
    "ep": ("ep", "parallel-folding deepseek-v3 moe-docs"),
    "ep+edp": ("ep etp edp", "parallel-folding moe-docs"),
    "moe": ("tp cp dp pp etp ep edp", "parallel-folding deepseek-v3 moe-docs"),
    "model": ("mp embd pos-embd", "megatron-setup megatron-init pipeline-source"),
    "framework": ("", "from-dp-to-fsdp pytorch-fsdp megatron-setup"),
    "chosen": ("", "megatron-setup megatron-init"),
}
"""Of each type the kinds of its panels, and pages to read about them."""

TYPES: dict[str, GroupType] = {
    name: GroupType(
        title, body, tuple(kinds.split()), tuple(LINKS[link] for link in reading.split())
    )
    for name, (title, body) in catalogue("types")["TYPES"].items()
    for kinds, reading in [_SHOWN[name]]
}

KINDS: dict[str, Kind] = {
    name: Kind(title, body, lead[0] if lead else None)
    for name, (title, *lead, body) in catalogue("kinds")["KINDS"].items()
}
"""By the name of the group; of numbered ones (hcp-l0, hybrid-dp-cp-2) by the family's name."""

NUMBERED = re.compile(r"(hcp)-l\d+|(hybrid-dp-cp)-\d+", re.ASCII)


def kind_of(name: str) -> Kind:
    """The kind of a group by its own name, which may carry a number: hcp-l1 is an hcp. Errors:
    KeyError."""
    numbered = NUMBERED.fullmatch(name)
    return KINDS[numbered[1] or numbered[2] if numbered else name]
