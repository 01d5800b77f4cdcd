"""How launch files of the world are read: exact, asked, wrong or refused, for each framework.

    python -m benchmarks.launch_files TRUTH FOLDER

TRUTH: a line of JSON a file: ``file``, ``format``, ``sure`` and ``expected`` (the sizes and batches
below; null: the file does not say). FOLDER: the texts, under the names that ``file`` gives.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formats.launch import Parsed, read_launch
from groups.errors import LayoutError

SIZES = ("nodes", "gpus_per_node", "world", "tp", "pp", "cp", "ep", "etp")
BATCHES = ("vpp", "micro_batch", "global_batch")


def verdict(found: Parsed, expected: Mapping[str, Any]) -> str:
    """What an answer is worth beside what the file is known to ask for."""
    values: dict[str, Any] = dict(found.values)
    if "nodes" in values and "gpus_per_node" in values:
        values["world"] = values["nodes"] * values["gpus_per_node"]
    named = {item.sets for item in found.unresolved} | {*found.asks, *found.assumed}
    if named & {"nodes", "gpus_per_node"}:
        named.add("world")
    if found.runs and not found.run:
        return "choice"
    wrong = [name for name in expected if None not in (values.get(name), expected[name])]
    if any(values[name] != expected[name] for name in wrong):
        return "wrong"
    lacking = [name for name in (*SIZES, *BATCHES) if expected[name] and name not in values]
    if not any(expected.values()):
        return "says no layout"
    if not lacking:
        return "exact"
    return "asked" if found.asks or set(lacking) <= named else "incomplete"


def main(truth: Path, folder: Path) -> None:
    """Print the table."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    seconds = []
    for line in truth.read_text("utf-8").splitlines():
        launch_file = json.loads(line)
        path = folder / launch_file["file"]
        if not path.is_file():
            continue
        start = time.process_time()
        try:
            kind = verdict(read_launch(path.read_text("utf-8")), launch_file["expected"])
        except LayoutError:
            kind = "refused"
        seconds.append(time.process_time() - start)
        rows[launch_file["format"]][kind if launch_file["sure"] else f"({kind})"] += 1
    for name, counts in sorted(rows.items()):
        print(f"{name:24}", ", ".join(f"{kind} {count}" for kind, count in counts.most_common()))
    every = sum(rows.values(), Counter())
    print(f"{'all':24}", ", ".join(f"{kind} {count}" for kind, count in every.most_common()))
    seconds.sort()
    print(f"median {1e3 * seconds[len(seconds) // 2]:.1f} ms, most {1e3 * seconds[-1]:.0f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
