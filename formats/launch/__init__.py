"""Launch commands and configurations of training frameworks: read into a job, written from one.

`read_launch` is the face of the reader (`args`), `emit` writes. Nothing that is read is ever
executed.

>>> found = read_launch("vllm serve some/model --tensor-parallel-size 4")
>>> found.framework.name, found.values["tp"], found.asks
('vllm', 4, ())
"""

from .args import Parsed, emit
from .args import parse as read_launch

__all__ = ["Parsed", "emit", "read_launch"]
