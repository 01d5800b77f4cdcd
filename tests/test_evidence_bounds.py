"""What people send as evidence of a hang costs no more than a request may: memory and work are
counted, time is not."""

from __future__ import annotations

import base64
import json
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest

from formats.logs.model import Diagnosis, Log, ProcessGroup, Wait
from groups import LayoutError
from groups.budget import LIMIT, within
from views.hang.files import LONGEST, MOST_PARTS, MOST_PLAIN, digest_of, log_of
from views.server.lanes import LIGHT, Bite, TooHeavyError

MEGABYTE = 2**20


def peak_of(work: Callable[[], object]) -> int:
    """Bytes of memory that the work has at most beside what there was."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- digests: read where everybody is served -----------------------------------------------------


def packed(plain: str) -> str:
    return base64.b64encode(zlib.compress(plain.encode(), 9)).decode()


MANY = 2_500_000
UNPACKS_TO = {
    "empty lists": '{"ranks":[' + "[]," * MANY + "0]}",
    "empty objects": '{"ranks":[' + "{}," * MANY + "0]}",
    "nested lists": '{"ranks":' + "[" * MANY,
    "nested objects": '{"a":' * (MANY // 4),
    "missing ranks": '{"missing":[' + "1," * 3_900_000 + "0]}",
    "ranks": '{"ranks":[' + "1," * (MOST_PLAIN // 2 - 9) + "0]}",
    "lists of one": '{"ranks":[' + "[0]," * MANY + "0]}",
    "lists in stalls": '{"stalls":[' + "[]," * (MOST_PARTS + 1) + "0]}",
    "as many lists as are read": '{"ranks":[' + "[]," * (MOST_PARTS - 9) + "0]}",
    "notes": '{"notes":[' + '{"code":"?","facts":{}},' * (MOST_PARTS // 2 - 9) + "0]}",
    "one text": '{"ranks":"' + "x" * MANY + '"}',
    "one number": '{"ranks":[' + "9" * MANY + "]}",
    "one text many times": '{"notes":["' + '","'.join(["long" * 99] * 9_000) + '"]}',
    "spaces": '{"ranks":[' + " " * MANY + "]}",
}


@pytest.mark.parametrize("name", UNPACKS_TO)
def test_a_short_digest_that_unpacks_to_much_is_refused_or_begun_anew_in_the_worker(name):
    text = packed(UNPACKS_TO[name])
    assert len(text) < 60_000

    def in_the_server() -> None:
        with pytest.raises((LayoutError, TooHeavyError)) as refused, within(LIGHT, Bite):
            log_of(text)
        assert getattr(refused.value, "code", "bad-digest") == "bad-digest"

    assert peak_of(in_the_server) < 8 * MEGABYTE


@pytest.mark.parametrize("name", ["ranks", "as many lists as are read", "notes"])
def test_the_largest_digests_are_no_light_work_and_cost_less_than_a_request_may(name):
    with within() as budget, suppress(LayoutError):
        log_of(packed(UNPACKS_TO[name]))
    assert LIGHT < budget.spent < LIMIT // 4


def test_the_digest_of_a_large_job_is_read_where_it_is_asked_for():
    """512 GPUs that wait in 512 groups, as dumps of 512 ranks say them."""
    groups = [
        ProcessGroup(f"{name}:TENSOR_MODEL_PARALLEL_GROUP", str(name), "TENSOR", "tp", ranks, True)
        for name in range(512)
        for ranks in [tuple(range(name // 8 * 8, name // 8 * 8 + 8))]
    ]
    waits = tuple(
        Wait(group, "all_reduce", 30, waiting=group.members[1:], absent=group.members[:1])
        for group in groups
    )
    every = tuple(range(512))
    log = Log(every, process_groups=tuple(groups), dumped=every, diagnosis=Diagnosis(waits=waits))
    text = digest_of(log)
    assert len(text) < LONGEST // 10
    with within(LIGHT, Bite):
        assert log_of(text) == log


def test_of_more_lists_than_are_read_a_digest_keeps_fewer_groups():
    waits = tuple(
        Wait(ProcessGroup(f"g{at}", None, None, "tp", (at,)), "op", 1, (at,))
        for at in range(20_000)
    )
    kept = log_of(digest_of(Log(diagnosis=Diagnosis(waits=waits))))
    assert 64 <= len(kept.diagnosis.waits) < len(waits)
    plain = zlib.decompress(base64.b64decode(digest_of(Log(diagnosis=Diagnosis(waits=waits)))))
    assert json.loads(plain)
    assert plain.count(b"[") + plain.count(b"{") <= MOST_PARTS
