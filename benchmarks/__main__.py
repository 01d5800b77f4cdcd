"""The command: every part, or those named by --only, one table each as soon as it is there."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import time

from .page_client import Servers

PARTS = (
    "groups",
    "picture",
    "pipeline",
    "moves",
    "search",
    "estimate",
    "published",
    "server",
    "served",
    "browser",
    "clients",
    "load",
    "start",
    "memory",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="few repeats: shows that every part still runs"
    )
    parser.add_argument(
        "--only",
        type=_parts,
        default=PARTS,
        metavar="PART,...",
        help=f"parts to run: {', '.join(PARTS)}",
    )
    chosen = parser.parse_args()
    begun = time.perf_counter()
    print(f"{_machine()}{', quick' if chosen.quick else ''}", flush=True)
    with Servers() as servers:
        for part in chosen.only:
            # A part is imported when its turn comes: "groups" needs no gradio.
            module = importlib.import_module(f".{part}", __package__)
            for result in module.run(chosen.quick, servers):
                print(f"\n{result}", flush=True)
    print(f"\nTook {time.perf_counter() - begun:.0f} s.")


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"there is no part {', '.join(unknown)}: choose among {', '.join(PARTS)}"
        )
    return parts


def _machine() -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"Python {platform.python_version()}, {os.cpu_count()} cores{load}"


if __name__ == "__main__":
    main()
