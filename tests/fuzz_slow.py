"""Damaged traces, summaries and logs: refused or read, without a traceback, in bounded time.

    python tests/fuzz_slow.py 20000     # minutes; says the slowest and the largest

A small slice of it is a test (`test_slow_hostile`).
"""

from __future__ import annotations

import gzip
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from diagnosis.slow import account_of, slowness_of, verdict_of
from diagnosis.slow.calls import JobCalls
from formats.slow import as_json, read_evidence, read_summary
from formats.traces.bounds import MEGABYTE, TraceBounds
from groups.errors import LayoutError
from tests.slow_runs import runs, traces
from tests.test_slow import LAYOUT, SlowJob, slowness
from tests.test_slow_sources import inspector, timers
from texts.slow import slow_note, slow_sentence

PAGE = TraceBounds(bytes=64 * MEGABYTE, collectives=65_536, busy=262_144, calls=400_000)
DATA = Path(__file__).parent / "data" / "traces"

Files = dict[str, bytes]


def seeds() -> list[Files]:
    """Whole inputs of each kind that is read."""
    job = JobCalls()
    for trace in traces(runs("calm")[0]):
        job.add(trace)
    gloo = {path.name: path.read_bytes() for path in sorted((DATA / "gloo").iterdir())}
    unpacked = {
        name: gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        for name, data in gloo.items()
    }
    nccl = gzip.decompress((DATA / "nccl_data.json.gz").read_bytes())
    slow = SlowJob({3: 900}, {})
    nsys = "\n".join(
        ["Start (ns),Duration (ns),Name"]
        + [f"{c.start:.0f},{c.duration:.0f},ncclDevKernel_AllReduce" for c in slow.calls[0]]
    ).encode()
    return [
        gloo,
        unpacked,
        {"rank0.json": nccl},
        {"summary.json": orjson.dumps({"slow": as_json(slowness({3: 900}, {}))})},
        {"summary.json": orjson.dumps({"slow": as_json(slowness_of(job))})},
        inspector(slow, marked=True, timed=True),
        inspector(slow, marked=False, timed=False),
        {"log": timers(5).encode()},
        {"rank0.csv": nsys, "rank1.csv": nsys},
    ]


VALUES = (b"-1", b"1e308", b"null", b'""', b"[]", b"{}", b"9" * 40, b"0", b"NaN", b"true", b'"x"')
TOKENS = (b'"ts"', b'"dur"', b'"args"', b'"ranks"', b'"group"', b'"rank"', b'"steps"', b'"calls"')


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes changed, left out, doubled or cut, and values put in place of numbers."""
    text = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(max(1, len(text)))
        match chance.randrange(6):
            case 0:
                text[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del text[at : at + chance.randrange(1, 200)]
            case 2:
                text[at:at] = text[at : at + chance.randrange(1, 2000)]
            case 3:
                del text[at:]
            case 4:
                end = at
                while end < len(text) and text[end : end + 1].isdigit():
                    end += 1
                text[at:end] = chance.choice(VALUES)
            case _:
                text[at:at] = chance.choice(TOKENS + VALUES)
    return bytes(text)


def mutants(count: int, seed: int = 1) -> Iterator[Files]:
    chance, whole = random.Random(seed), seeds()
    for number in range(count):
        files = dict(whole[number % len(whole)])
        for name in chance.sample(sorted(files), k=min(len(files), chance.choice((1, 1, 2, 8)))):
            files[name] = damaged(files[name], chance)
        yield files


def answered(files: Files) -> str:
    """What is said of files: the kind of the verdict, or the code of the refusal."""
    try:
        found = read_evidence(files, LAYOUT, PAGE)
    except LayoutError as error:
        return error.code if error.what else "said nothing"
    verdict = verdict_of(found, LAYOUT)
    for language in ("en", "zh"):
        for note in account_of(found, LAYOUT):
            assert slow_sentence(note.code, note.facts, language)
        for name in found.notes:
            assert slow_note(name, language)
    again = read_summary(orjson.dumps({"slow": as_json(found)}))
    assert len(again.ranks) == len(found.ranks)
    return verdict.kind


def main(count: int) -> None:
    slowest, said = (0.0, -1), dict[str, int]()
    for number, files in enumerate(mutants(count)):
        begun = time.process_time()
        try:
            answer = answered(files)
        except Exception:
            print(f"input {number}:", {name: data[:200] for name, data in files.items()})
            raise
        slowest = max(slowest, (time.process_time() - begun, number))
        said[answer] = said.get(answer, 0) + 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count} inputs, slowest {slowest[0]:.2f} s of CPU (input {slowest[1]}), {memory:.0f} MB"
    )
    print(said)


if __name__ == "__main__":
    main(int(sys.argv[1]))
