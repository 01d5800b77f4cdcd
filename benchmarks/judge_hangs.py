"""Who finds the culprit in the dumps of injected hangs: this reader, and PyTorch's own analyzer.

    python -m benchmarks.judge_hangs DIRECTORY ...
    python -m benchmarks.judge_hangs --pack tests/data/hang/injected.json.xz DIRECTORY ...

Dumps of `hangs` are read as they are and with ``pg_config`` filled in as NCCL writes it; the
analyzer can only read the latter.
"""

from __future__ import annotations

import argparse
import json
import lzma
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from formats.logs import read_log

ANALYZER = """
import sys
from torch.distributed.flight_recorder.fr_trace import main
for folder in sys.argv[1:]:
    print("== " + folder, file=sys.stderr, flush=True)
    try:
        main([folder, "-p", "full_trace_rank_"])
    except BaseException as error:
        print("error", repr(error), file=sys.stderr, flush=True)
"""


def verdicts_of_torch(folders: list[Path]) -> dict[str, set[int]]:
    """Whom PyTorch's own analyzer names in its first finding, by folder."""
    command = [sys.executable, "-c", ANALYZER, *map(str, folders)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    verdicts: dict[str, set[int]] = {}
    folder = ""
    for line in run.stdout.splitlines():
        if line.startswith("== "):
            folder = Path(line[3:]).name
        missing = re.search(r"missing ranks: \{([\d, ]+)\}", line)
        culprits = re.findall(r"Culprit rank (\d+)", line)
        named = culprits or (missing[1].split(",") if missing else [])
        if named:
            verdicts.setdefault(folder, {int(n) for n in named})
    return verdicts


def judge(directory: Path, with_torch: bool = True) -> dict[str, Counter[str]]:
    """Who is named in each hang, by reader: right, wrong, among the suspects, or nobody."""
    table: dict[str, Counter[str]] = {}
    folders = list(_folders([directory]))
    by_torch = verdicts_of_torch(folders) if with_torch else {}
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text())
        answers = {}
        for prefix in ("full", "gloo"):
            files = {file.name: file.read_bytes() for file in folder.glob(f"{prefix}_trace_rank_*")}
            log = read_log(files)
            suspects = log.diagnosis.suspects
            answers[prefix] = _verdict({*log.missing}, truth["rank"], truth["rank"] in suspects)
            if answers[prefix] != "right":
                fault = [truth[name] for name in ("kind", "rank", "call", "sizes")]
                told = (sorted(log.missing), suspects, log.diagnosis.reason)
                print(folder.name, prefix, *fault, "->", *told)
        if with_torch:
            answers["fr_trace"] = _verdict(by_torch.get(folder.name, set()), truth["rank"], False)
        for reader, answer in answers.items():
            for name in (truth["kind"], "all"):
                table.setdefault(f"{reader} | {name}", Counter())[answer] += 1
    return table


def _folders(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        yield from sorted(entry for entry in directory.iterdir() if entry.is_dir())


def _verdict(named: set[int], culprit: int, suspected: bool) -> str:
    if named == {culprit}:
        return "right"
    if culprit in named:
        return "with others"
    return "wrong" if named else "suspected" if suspected else "nobody"


def pack(directories: list[Path], into: Path) -> None:
    """All hangs of some directories as one file: the data of tests/test_injected_hangs.py."""
    packed = [
        {
            "truth": json.loads((folder / "truth.json").read_text()),
            "dumps": {
                file.name.rpartition("_")[2]: pickle.loads(file.read_bytes())
                for file in sorted(folder.glob("full_trace_rank_*"))
            },
        }
        for folder in _folders(directories)
    ]
    text = json.dumps(packed, separators=(",", ":"))
    into.write_bytes(lzma.compress(text.encode(), preset=9))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY")
    parser.add_argument("--pack", type=Path, metavar="FILE")
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    if options.pack:
        pack(options.directories, options.pack)
        return
    for directory in options.directories:
        for name, counts in sorted(judge(directory, not options.without_torch).items()):
            print(f"{name:32}", dict(counts))


if __name__ == "__main__":
    main()
