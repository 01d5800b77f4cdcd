"""The console scripts: the command line, and the page where its extra is installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from groups.__main__ import main


def page() -> None:
    """Serve the page; without what it needs say how to get it."""
    if find_spec("gradio") is None or find_spec("matplotlib") is None:
        sys.exit("The page needs more than the command line: pip install 'parallel-groups[page]'")
    from app import main as serve

    serve()


if __name__ == "__main__":
    sys.exit(main())
