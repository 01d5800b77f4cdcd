"""Heavy work goes to a process of its own, light work passes it, and too much is told "busy"."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groups import LayoutError, fit
from groups.budget import spend
from request.words import sentence
from views.page import draw
from views.server.lanes import LIGHT, USUAL, WAITING, Lanes, Turns, answering, heading, telling
from views.server.worker import MOST_MORE, Worker, too_much_memory

ROOT = Path(__file__).parent.parent
LARGE = '{"nodes": "131072", "tp": "8", "pp": "16"}'


@pytest.fixture(scope="module")
def worker():
    one = Worker()
    yield one
    one.close()


def run(coroutine: Any) -> Any:
    """In a thread of its own: the browser tests keep an event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def costs(units: int) -> int:
    spend(units, "words")
    return os.getpid()


def test_light_work_is_done_here_and_heavy_work_elsewhere_with_the_same_answer(worker):
    lanes = Lanes(worker)
    light = run(lanes.run(draw, "{}"))
    assert light == draw("{}")
    assert worker.process is None
    heavy = run(lanes.run(draw, LARGE))
    assert heavy == draw(LARGE)
    assert worker.process


@pytest.mark.parametrize(("units", "is_here"), [(LIGHT, True), (LIGHT + 1, False)])
def test_what_spends_more_than_a_light_budget_is_heavy(units, is_here):
    lanes = Lanes(_Elsewhere())
    found = run(lanes.run(costs, units))
    assert (found == os.getpid()) is is_here


def test_the_head_of_a_link_is_worked_out_in_a_thread_and_a_heavy_one_is_that_of_the_first_page():
    asked = []

    def head(query: str, address: str) -> str:
        asked.append((query, threading.current_thread()))
        spend(int(query or 0), "words")
        return f"{address}?{query}"

    link_head = heading(head, Lanes(_Elsewhere()))
    assert run(link_head("1", "a")) == "a?1"
    assert run(link_head(f"{LIGHT + 1}", "a")) == "a?"
    assert run(link_head(f"{LIGHT + 1}", "a")) == "a?"  # and is not begun again
    assert [query for query, _ in asked] == ["1", f"{LIGHT + 1}", "", ""]
    assert threading.main_thread() not in {thread for _, thread in asked}


def test_what_is_given_up_leaves_nothing_in_memory():
    """Its frames held all that was worked out, until Python collected its oldest objects."""
    lanes, kept = Lanes(_Elsewhere()), []

    def work(units: int, code: str) -> None:
        large = np.zeros(10)
        kept.append(weakref.ref(large))
        if code:
            raise LayoutError(code, str(len(large)))
        costs(units)

    gc.disable()
    try:
        assert run(lanes.run(work, LIGHT + 1, "")) == "elsewhere"
        with pytest.raises(LayoutError):
            run(lanes.run(work, 1, "busy"))
        assert [one() is None for one in kept] == [True, True]
    finally:
        gc.enable()


def test_what_was_heavy_or_slow_once_is_not_begun_here_again(monkeypatch):
    lanes, begun = Lanes(_Elsewhere()), []

    def work(units: int) -> int:
        begun.append(units)
        return costs(units)

    assert [run(lanes.run(work, LIGHT + 1)) for _ in range(3)] == 3 * ["elsewhere"]
    assert begun == [LIGHT + 1]
    assert [run(lanes.run(work, 1)) for _ in range(2)] == 2 * [os.getpid()]
    monkeypatch.setattr("views.server.lanes.SLOW", -1.0)
    assert [run(lanes.run(work, 2)) for _ in range(2)] == [os.getpid(), "elsewhere"]


def test_a_refusal_comes_back_whole_from_the_worker(worker):
    with pytest.raises(LayoutError) as here:
        fit(16, tp=3)
    with pytest.raises(LayoutError) as there:
        run(Lanes(worker).run(fit, 16, tp=3, heavy=True))
    assert vars(there.value) == vars(here.value)
    assert str(there.value) == str(here.value)
    assert vars(pickle.loads(pickle.dumps(here.value))) == vars(here.value)


class _Elsewhere(Worker):
    """A worker that answers when it is let."""

    def __init__(self, let: object = None) -> None:
        super().__init__()
        self.let = let

    def ask(self, work, values, named):
        if self.let is not None:
            assert self.let.wait(60)
        return "elsewhere"


def test_too_many_heavy_requests_are_told_busy_while_light_ones_pass():
    let = threading.Event()
    lanes = Lanes(_Elsewhere(let))

    async def crowd() -> list[object]:
        heavy = [lanes.run(costs, 10**9 + number) for number in range(WAITING + 4)]
        asked = [asyncio.ensure_future(one) for one in heavy]
        _, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_EXCEPTION)
        assert await lanes.run(costs, 1) == os.getpid()
        let.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = run(crowd())
    busy = [one for one in found if isinstance(one, LayoutError)]
    assert {one.code for one in busy} == {"busy"}
    assert (len(busy), found.count("elsewhere")) == (3, WAITING + 1)


def test_who_would_wait_too_long_is_told_at_once_for_how_long():
    async def crowd() -> tuple[list[object], int]:
        turns, done = Turns(longest=2.5 * USUAL), []

        async def one(number: int) -> int:
            async with turns.turn():
                await asyncio.sleep(0)
                done.append(number)
            return number

        found = await asyncio.gather(*map(one, range(6)), return_exceptions=True)
        assert turns.wait == 0
        return found, len(done)

    found, done = run(crowd())
    assert (found[:3], done) == ([0, 1, 2], 3)
    assert {(one.code, one.facts["seconds"]) for one in found[3:]} == {("busy", 3 * USUAL)}
    assert "6 秒" in sentence(found[3], "zh")


def test_what_a_refusal_of_the_worker_was_about_is_let_go():
    class Refusing(_Elsewhere):
        def ask(self, work, values, named):
            raise LayoutError("too-much-memory", f"no {values}")

    sent = np.zeros(10)
    kept, lanes = weakref.ref(sent), Lanes(Refusing())
    gc.disable()
    try:
        assert "refused" in run(answering(len, lanes, heavy=True)(sent))
        del sent
        for _ in range(400):  # the thread of the lane may not have left its last line yet
            if kept() is None:
                break
            time.sleep(0.01)
        assert kept() is None
    finally:
        gc.enable()


def test_half_a_question_in_the_pipes_reaches_nobody_else(worker):
    """Where the memory ends while a question is written, the rest of it was the next one's."""

    class Torn:
        def __reduce__(self):
            raise MemoryError

    lanes = Lanes(worker)
    assert run(lanes.run(divmod, 7, 2, heavy=True)) == (3, 1)
    with pytest.raises(MemoryError):
        run(lanes.run(len, ["x" * 100_000, Torn()], heavy=True))
    assert worker.process is None
    assert run(lanes.run(divmod, 9, 2, heavy=True)) == (4, 1)


def test_a_worker_that_dies_is_told_in_words_and_replaced(worker, monkeypatch):
    lanes = Lanes(worker)
    run(lanes.run(os.getpid, heavy=True))
    first = worker.process
    with pytest.raises(LayoutError) as refusal:
        run(lanes.run(os._exit, 1, heavy=True))
    assert refusal.value.code == "ended-early"
    run(lanes.run(os.getpid, heavy=True))
    assert worker.process not in (None, first)
    monkeypatch.setattr("views.server.worker.LONGEST", 0.0)
    with pytest.raises(LayoutError) as refusal:
        run(lanes.run(time.sleep, 600, heavy=True))
    assert refusal.value.code == "took-too-long"
    monkeypatch.undo()
    run(lanes.run(os.getpid, heavy=True))
    worker.process.kill()
    worker.process.wait()
    assert run(lanes.run(divmod, 7, 2, heavy=True)) == (3, 1)  # dead before it was asked


@pytest.mark.parametrize("work", [bytearray, np.zeros])
def test_memory_beyond_its_limit_is_refused_and_the_worker_goes_on(worker, work):
    lanes = Lanes(worker)
    run(lanes.run(os.getpid, heavy=True))
    process = worker.process
    with pytest.raises(LayoutError) as refusal:
        run(lanes.run(work, MOST_MORE, heavy=True))
    assert refusal.value.code == "too-much-memory"
    assert (run(lanes.run(divmod, 7, 2, heavy=True)), worker.process) == ((3, 1), process)
    assert len(run(lanes.run(bytearray, MOST_MORE // 10, heavy=True))) == MOST_MORE // 10


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_the_worker_could_not_do_is_told_to_the_page_in_its_language(language):
    class Small(_Elsewhere):
        def ask(self, work, values, named):
            raise too_much_memory()

    asked = answering(draw, Lanes(Small()), heavy=True)
    told = json.loads(run(asked(f'{{"paste":"...","lang":"{language}"}}')))
    assert told == {"refused": sentence(too_much_memory(), language)}
    assert json.loads(run(asked(b'{"lang":"zh"}\n\xff')))["refused"].startswith("所需内存")


def test_a_worker_ends_with_the_server_in_the_middle_of_its_work():
    code = """
from views.server.worker import main
main()"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pickle.dump(("time", "sleep", (600,), {}), process.stdin)
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


def test_what_the_worker_imports_builds_no_page():
    code = """
from views import page
from views.server import worker
import sys"""
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint({{'gradio', 'matplotlib'}} & {{*sys.modules}})"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert out.stdout.strip() == "set()", out.stderr


def test_a_worker_that_is_asked_nothing_gives_its_memory_back(monkeypatch):
    monkeypatch.setattr("views.server.worker.IDLE", 0.0)
    worker, rested = Worker(), threading.Event()
    close = worker.close
    monkeypatch.setattr(worker, "close", lambda: (close(), rested.set()))
    assert worker.ask(divmod, (7, 2), {}) == (3, 1)
    assert rested.wait(60)
    assert worker.process is None
    assert worker.ask(divmod, (9, 2), {}) == (4, 1)


def test_a_worker_that_has_grown_ends_after_its_answer_and_what_is_printed_is_none():
    questions = [("builtins", "print", ("hello",), {}), ("builtins", "divmod", (7, 2), {})]

    def answers(grown: int) -> list[object]:
        code = f"""
from views.server import worker
worker.GROWN = {grown}
worker.main()"""
        found: list[object] = []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, **pipes) as process:
            process.stdin.write(b"".join(map(pickle.dumps, questions)))
            process.stdin.flush()
            while len(found) < 2 * len(questions) and True not in found[::2]:
                found += [pickle.load(process.stdout), pickle.load(process.stdout)]
        return found

    assert answers(10**15) == [False, (True, None), False, (True, (3, 1))]
    assert answers(0) == [True, (True, None)]


def test_who_waits_can_ask_how_long_it_will_be():
    """So many that are before it, each as long as one has taken lately."""
    lanes = Lanes()

    async def waited() -> list[str]:
        tell, entered, leave = telling(lanes), asyncio.Event(), asyncio.Event()

        async def heavy() -> None:
            async with lanes._turns.turn():
                entered.set()
                await leave.wait()

        told = [await tell({})]
        first, second = asyncio.create_task(heavy()), asyncio.create_task(heavy())
        await entered.wait()
        told.append(await tell({}))
        leave.set()
        await asyncio.gather(first, second)
        return [*told, await tell({})]

    assert [json.loads(text)["seconds"] for text in run(waited())] == [0, 2 * USUAL, 0]
