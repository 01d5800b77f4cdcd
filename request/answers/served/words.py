"""What is said of a server's speed, in words and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator

from descriptions import SPEED, counted, joined
from formats.values import Document
from groups.layout import Job
from training.serving.layouts import ServedLayout
from training.serving.runs import ServedRun
from training.serving.speed import Speed
from training.serving.work import met, sent_bytes, step_work

from ...context import Context
from ...model import model_name
from ...served import served_of
from ...units import seconds_text
from ...words import saying

ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}

STAYS = ("overhead", "messages")
"""Parts of a step that more tp does not make smaller."""

MUCH = 0.5
"""Share of a step from which on what stays, or experts that are touched, is worth a sentence."""


def ms(seconds: float) -> str:
    """Milliseconds in three digits.

    >>> ms(0.01234), ms(0.1), ms(1.5)
    ('12.3', '100', '1,500')
    """
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def rate_text(rate: float) -> str:
    """Tokens a second in three digits.

    >>> rate_text(12.345), rate_text(98765)
    ('12.3', '98,800')
    """
    if rate < 99.95:
        return f"{rate:.3g}"
    digits = 10 ** max(0, len(str(int(rate))) - 3)
    return f"{round(rate / digits) * digits:,}"


def requests_text(count: float, language: str) -> str:
    """How many requests, in words.

    >>> requests_text(1, "en"), requests_text(1234.5, "en"), requests_text(1.5, "en")
    ('one request', '1,234 requests', '1.5 requests')
    """
    if count == 1:
        return SPEED["requests_one"][language]
    text = f"{count:,.1f}" if count < 10 and count != int(count) else f"{int(count):,}"
    return SPEED["requests_many"][language].format(count=text)


def tpot_text(speed: Speed, language: str, words: str = "tpot") -> str:
    """A token's milliseconds with their interval; words: of SPEED."""
    each = {"ms": speed.seconds, "low": speed.low, "high": speed.high}
    return SPEED[words][language].format(**{name: ms(value) for name, value in each.items()})


def sizes_text(job: Job, parts: int) -> str:
    """The sizes of a server that are not 1, as its engine takes them; parts: its dp, which may be
    what remains.

    >>> sizes_text(Job(tp=4, framework="vllm", expert_parallel=True), 2)
    'tp4 dp2 ep'
    """
    names = {"tp": job.tp, "pp": job.pp, "cp": job.cp, "dp": parts, "ep": job.ep, "dcp": job.dcp}
    sizes = [f"{name}{size}" for name, size in names.items() if size and size > 1]
    return " ".join([*sizes, *(["ep"] * bool(job.expert_parallel))]) or "tp1"


def layout_text(found: ServedLayout) -> str:
    """The layout's name: how many servers, and the sizes of one."""
    sizes = sizes_text(found.job, found.server.parts)
    return f"{found.servers} × {sizes}" if found.servers > 1 else sizes


def head_text(found: ServedLayout, language: str) -> str:
    """For how many, and the seconds of a token."""
    requests = requests_text(found.answered, language)
    tpot = tpot_text(found.speed, language)
    text = SPEED["verdict_head"][language].format(requests=requests, tpot=tpot)
    return text[:1].upper() + text[1:]


def verdict_text(context: Context, found: ServedLayout) -> str:
    """How fast the servers answer, for how many, and how many fit."""
    language = context.language
    end = {"zh": "。"}.get(language, ".")
    return joined((head_text(found, language) + end, rest_text(context, found)), language)


def rest_text(context: Context, found: ServedLayout) -> str:
    """Tokens a second, how many fit, and what is to be known of those that do not."""
    return joined(_sentences(context, found), context.language)


def _sentences(context: Context, found: ServedLayout) -> Iterator[str]:
    language, say, asked = context.language, saying(SPEED, context.language), found.asked
    served, load = served_of(context), found.asked.load
    yield say(
        "verdict",
        user=rate_text(found.speed.user_rate),
        all=rate_text(found.rate),
        gpu=rate_text(found.gpu_rate),
    )
    if asked.bound:
        yield say("bound_met" if found.is_within else "bound_missed", ms=ms(asked.bound))
    yield say(
        f"fits_{found.limit}",
        fits=requests_text(found.fits, language),
        longest=requests_text(served.requests, language),
        length=f"{served.serving.length:,}",
    )
    if not asked.bound and asked.load.requests > found.answered * 1.001:
        yield say("waits", asked=requests_text(asked.load.requests, language))
    tokens = load.prompt + load.answer
    if tokens > served.serving.length:
        yield say("too_long", tokens=f"{tokens:,.0f}", length=f"{served.serving.length:,}")
    if found.servers > 1:
        each = requests_text(found.speed.load.requests, language)
        yield say("several", count=f"{found.servers:,}", requests=each)


def job_text(context: Context, found: ServedLayout) -> str:
    """What is served, on which GPUs, in requests of which lengths."""
    language, asked = context.language, found.asked
    return SPEED["load"][language].format(
        model=model_name(served_of(context).chosen, language),
        weights=asked.serving.weights.upper().replace("_PLAIN", ""),
        engine=ENGINES[asked.serving.engine],
        gpus=counted(asked.gpus, "gpu", language),
        machine=asked.machine.name,
        prompt=f"{asked.load.prompt:,.0f}",
        answer=f"{asked.load.answer:,.0f}",
    )


def causes(found: ServedLayout, language: str) -> list[str]:
    """Why more tp helps little, and how many experts a step reads, where that matters."""
    say, speed, said = saying(SPEED, language), found.speed, []
    stays = sum(speed.parts[name] for name in STAYS) / speed.seconds
    if stays > MUCH:
        said.append(say("why_tp", share=f"{stays:.0%}"))
    moe = next((kind.moe for kind in found.asked.model.kinds if kind.moe), None)
    if moe:
        share = met(moe.experts, moe.top_k, speed.load)
        said.append(say("why_experts", share=f"{share:.0%}"))
    return said


def moved_bytes(found: ServedLayout) -> dict[str, float]:
    """Bytes that a GPU reads and sends in a step, by the part of it that they take."""
    server, load = found.server, found.speed.load
    own = type(load)(load.requests / server.cut.pp, load.prompt, load.answer)
    formats = (server.weights, server.cache, server.parts)
    work = step_work(server.model, server.cut, own, *formats)
    sent = sent_bytes(work, server.cut.attention, server.sharing)
    pp = server.cut.pp
    return {
        "weights": sum(work.weights.values()) / pp,
        "cache": work.cache / pp,
        "messages": sent / pp,
    }


def near_text(found: ServedLayout, language: str) -> str:
    """Whether runs of the same engine, model and GPU were measured, and what they changed."""
    say, miss = saying(SPEED, language), found.speed.miss
    if miss is None:
        return say("near_few" if found.speed.runs else "near_none")
    return say("near_corrected", runs=f"{miss.runs:,}", times=f"{miss.times:.2f}")


def run_cells(run: ServedRun, language: str) -> tuple[str, ...]:
    """A measured run as cells of a table."""
    attention, _, ep, _, pp = run.cut
    sizes = {"tp": attention, "dp": run.parts, "pp": pp, "ep": ep}
    name = " ".join(f"{size}{number}" for size, number in sizes.items() if number > 1) or "tp1"
    name = run.how or name
    load = SPEED["load_cell"][language].format(
        requests=f"{run.requests:,.0f}", prompt=f"{run.prompt:,.0f}", answer=f"{run.answer:,.0f}"
    )
    first = seconds_text(run.first) if run.first else "–"
    return (f"{name} · {run.weights}", load, f"{ms(run.seconds)} ms", first, run.source)


# -- for programs ----------------------------------------------------------------------------------


def speed_facts(speed: Speed) -> Document:
    return {
        "tpot_seconds": speed.seconds,
        "low_seconds": speed.low,
        "high_seconds": speed.high,
        "parts_seconds": speed.parts,
        "user_tokens_per_second": speed.user_rate,
    }


def layout_facts(found: ServedLayout) -> Document:
    """A layout with what it answers, as JSON values."""
    job, server = found.job, found.server
    sizes = {"tp": job.tp, "pp": job.pp, "dp": job.dp or 1, "ep": server.cut.ep, "dcp": job.dcp}
    return {
        **sizes,
        "servers": found.servers,
        "gpus_per_server": server.gpus,
        "requests_that_fit": found.fits,
        "bounded_by": found.limit,
        "requests": found.answered,
        "within_bound": found.is_within,
        **speed_facts(found.speed),
        "tokens_per_second": found.rate,
        "gpu_tokens_per_second": found.gpu_rate,
        "first_token_at_least_seconds": found.speed.first,
    }
