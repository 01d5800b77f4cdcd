"""What people type to start this, for messages that say a command.

In a checkout each room is a package by itself; installed, all of them stand in `parallel_groups`.

>>> PROGRAM, PAGE
('python -m groups', 'python app.py')
"""

from __future__ import annotations

import sys

CHECKOUT = __name__ == "groups.program"


def _called() -> str:
    """The command line, by the name under which it runs, else by that of its console script."""
    if CHECKOUT:
        return "python -m groups"
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    running = spec.name.removesuffix(".__main__") if spec else ""
    own = __name__.split(".")[0]
    return f"python -m {running}" if running in (own, f"{own}.groups") else "parallel-groups"


PROGRAM = _called()
PAGE = "python app.py" if CHECKOUT else "parallel-group-playground"
