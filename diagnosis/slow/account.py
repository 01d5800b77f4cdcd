"""Three sentences about a slow step, as records: who, the evidence, and the cost."""

from __future__ import annotations

from collections import Counter, defaultdict

from groups.layout import Layout
from groups.notes import Note

from .model import WAITING, Slowness
from .verdict import Culprit, verdict_of


def account_of(slow: Slowness, layout: Layout | None = None) -> tuple[Note, ...]:
    """At most three records: who is slow and by how much, who came last in which groups and why,
    and the chain of waiting with the possible gain."""
    verdict = verdict_of(slow, layout)
    notes = [_who(slow, verdict)]
    if verdict.kind == "unknown" and slow.straggler is None:
        return tuple(notes)
    if not slow.waits:
        detected = _detected(slow)
        return (notes[0], *detected) if detected else tuple(notes)
    last = _last(slow, verdict)
    cost = _cost(slow, verdict)
    return tuple(note for note in (*notes, last, cost) if note is not None)


def _detected(slow: Slowness) -> list[Note]:
    """What a straggler detector names, and what the same lines say of that GPU's clock and heat."""
    named = slow.straggler
    if named is None:
        return []
    facts = {"rank": named.rank, "times": named.times, "of": named.of, "share": named.score}
    code = "detector" if named.score is None else "detector-score"
    notes = [Note(code, {**facts, "us": named.slow_us, "fast": named.fast_us})]
    power = "detector-power-held" if named.clock else "detector-power-idle"
    told = (("detector-clock", named.clock), ("detector-heat", named.celsius), (power, named.watts))
    for code, pair in told:
        if pair is not None:
            own, other = (round(value) for value in pair)
            notes.append(Note(code, {"rank": named.rank, "value": own, "other": other}))
    return notes


def _who(slow: Slowness, verdict: Culprit) -> Note:
    if verdict.kind == "unknown" and slow.straggler:
        return Note("few-reports", {"count": slow.straggler.of})
    if verdict.kind == "unknown":
        code = "one-trace" if len(slow.ranks) < 2 else "nothing-matched"
        return Note(code, {"count": len(slow.ranks)})
    facts: dict[str, object] = {
        "ranks": verdict.ranks,
        "rank": verdict.ranks[0] if verdict.ranks else None,
        "index": verdict.index,
        "host": verdict.host or None,
        "us": verdict.excess_us,
        "share": verdict.share,
        "steps": verdict.steps,
        "of": slow.straggler.of if slow.straggler and not slow.steps else len(slow.steps),
        "cause": verdict.cause,
    }
    code = verdict.kind
    if slow.straggler and slow.straggler.score is not None and verdict.ranks:
        code, facts["share"] = f"{code}-score", 1 - verdict.share
    if verdict.kind == "group":
        group = slow.groups[verdict.index or 0]
        facts |= {"kind": group.title}
        code = "place-network" if "place" in verdict.also else "group"
    if "stage" in verdict.also and verdict.kind == "node":
        code = "node-or-stage"
    return Note(code, facts)


def _last(slow: Slowness, verdict: Culprit) -> Note | None:
    """Who came last most often, in the groups of the kind with most waiting; with its activity
    before."""
    blamed = {*verdict.ranks}
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    per_rank: Counter[int] = Counter()
    for row in slow.waits:
        of_kind = by_kind[slow.groups[row.group].title]
        of_kind["calls"] += row.calls
        for last in row.lasts:
            is_blamed = not blamed or last.rank in blamed
            of_kind["last"] += last.times * is_blamed
            of_kind["us"] += int(last.waited_us * is_blamed)
            per_rank[last.rank] += last.times
    if not by_kind:
        return None
    kind = max(by_kind, key=lambda name: by_kind[name]["us"])
    found = by_kind[kind]
    facts: dict[str, object] = {"kind": kind, "times": found["last"], "of": found["calls"]}
    if not blamed:
        rank, times = per_rank.most_common(1)[0]
        calls = sum(row.calls for row in slow.waits)
        return Note("last-spread", {**facts, "rank": rank, "times": times, "of": calls})
    if verdict.kind == "group":
        return Note("moves-slowly", {"kind": slow.groups[verdict.index or 0].title})
    doing: Counter[str] = Counter()
    for one in slow.ranks:
        if one.rank in blamed:
            for part in one.before:
                doing[part.what] += int(part.us)
    what = doing.most_common(1)[0][0] if doing else verdict.cause
    code = "came-last" + "-one" * (len(blamed) == 1)
    return Note(code, {**facts, "ranks": verdict.ranks, "doing": what})


def _cost(slow: Slowness, verdict: Culprit) -> Note | None:
    """The cost of waiting for a step, and the groups along which it spreads."""
    if not slow.ranks:
        return None
    lost = sum(one.lost_us for one in slow.ranks) / len(slow.ranks)
    share = lost / slow.step_us if slow.step_us else 0.0
    links = slow.chain_to(verdict.ranks, verdict.cause)
    kinds = tuple(dict.fromkeys(slow.groups[link.group].title for link in links))
    facts: dict[str, object] = {"us": lost, "share": share, "kinds": kinds}
    if not verdict.ranks:
        return Note("waiting", facts)
    paid = sum(one.cost_us for one in slow.ranks if one.rank in verdict.ranks)
    everything = sum(one.cost_us for one in slow.ranks)
    facts |= {"paid": paid / everything if everything else 0.0}
    is_chain = any(link.doing == WAITING for link in links)
    return Note("chain" if is_chain and len(kinds) > 1 else "cost", facts)
