"""The commands that start this program, for messages that quote one.

In a checkout each room is a package of its own; installed, all of them are in `parallel_groups`.

>>> PROGRAM, PAGE
('python -m groups', 'python app.py')
"""

from __future__ import annotations

import sys

CHECKOUT = __name__ == "groups.program"


def _called() -> str:
    """The program name of the running command line, else the name of the console script."""
    if CHECKOUT:
        return "python -m groups"
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    running = spec.name.removesuffix(".__main__") if spec else ""
    own = __name__.split(".")[0]
    return f"python -m {running}" if running in (own, f"{own}.groups") else "parallel-groups"


PROGRAM = _called()
PAGE = "python app.py" if CHECKOUT else "parallel-group-playground"
