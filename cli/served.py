"""The commands about the speed of servers: a layout and its curve, the best ones for a target."""

from __future__ import annotations

from formats.documents.tables import Table
from formats.values import Facts

from .inputs import CommandLine
from .report import Report
from .state import served_context


def speed(inputs: CommandLine) -> Table:
    """How fast servers answer, a row for each number of requests at once; of a file, a link or a
    published server, or of options alone."""
    from request.answers.served.api import served_speed_facts

    if inputs.words:
        from .named import set_base

        set_base(inputs, inputs.words[0])
    context = served_context(inputs)
    facts = served_speed_facts(context)
    gpus = facts["gpus"]
    rows = [
        [
            round(row["requests"], 1),
            *(round(1e3 * row[f"{name}_seconds"], 2) for name in ("tpot", "low", "high")),
            round(row["user_tokens_per_second"], 1),
            round(row["gpu_tokens_per_second"], 1),
            round(row["gpu_tokens_per_second"] * gpus, 1),
            *(round(1e3 * seconds, 2) for seconds in row["parts_seconds"].values()),
        ]
        for row in facts["curve"]
    ]
    columns = ["requests", "tpot_ms", "low_ms", "high_ms", "user_tokens_per_s"]
    columns += ["gpu_tokens_per_s", "tokens_per_s"]
    columns += [f"{name}_ms" for name in facts["parts_seconds"]]
    before = [_head(facts), _answered(facts)]
    after = [_measured(row) for row in facts["measured"]]
    return Report("speed", columns, rows, context.layout, before=before, after=after, facts=facts)


def best(inputs: CommandLine) -> Table:
    """The quickest layouts of servers for a target, a row each with its command."""
    from request.answers.served.api import best_facts
    from request.answers.served.speed import serving_job

    context = served_context(inputs)
    facts = best_facts(context)
    asked = serving_job(context)
    sizes = ["tp", "pp", "dp", "ep", "servers"]
    columns = ["place", *sizes, "requests", "that_fit", "tpot_ms", "low_ms", "high_ms"]
    columns += ["user_tokens_per_s", "gpu_tokens_per_s", "command"]
    rows = [
        [
            str(place),
            *(row[name] for name in sizes),
            round(row["requests"], 1),
            round(row["requests_that_fit"], 1),
            *(round(1e3 * row[f"{name}_seconds"], 2) for name in ("tpot", "low", "high")),
            round(row["user_tokens_per_second"], 1),
            round(row["gpu_tokens_per_second"], 1),
            " ".join(row["command"].replace("\\\n", " ").split()),
        ]
        for place, row in enumerate(facts["best"], 1)
    ]
    target = f"a token within {1e3 * asked.bound:g} ms" if asked.bound else "requests at once"
    number = "" if asked.bound else f"{asked.load.requests:,.0f} "
    before = [f"{facts['tried']:,} layouts of {asked.framework} tried for {number}{target}"]
    after = [f"not listed: {row['layouts']} layouts: {row['why']}" for row in facts["refused"]]
    return Report("search", columns, rows, context.layout, before=before, after=after, facts=facts)


def _head(facts: Facts) -> str:
    return (
        f"{facts['model']} on {facts['engine']}, weights {facts['weights_format']}, "
        f"{facts['gpus']} GPUs of {facts['machine']}: prompts of {facts['prompt_tokens']:,.0f} "
        f"tokens, answers of {facts['answer_tokens']:,.0f}"
    )


def _answered(facts: Facts) -> str:
    low, high = (f"{1e3 * facts[f'{name}_seconds']:.3g}" for name in ("low", "high"))
    return (
        f"{facts['requests']:,.0f} at once: {1e3 * facts['tpot_seconds']:.3g} ms a token "
        f"({low} to {high}), {facts['tokens_per_second']:,.0f} tokens/s in all; "
        f"{facts['requests_that_fit']:,.1f} fit"
    )


def _measured(row: Facts) -> str:
    return (
        f"measured: {row['attention_ranks']} ranks, {row['weights_format']}, "
        f"{row['requests']:,.0f} x {row['prompt_tokens']:,.0f} + {row['answer_tokens']:,.0f}: "
        f"{1e3 * row['tpot_seconds']:.3g} ms ({row['source']})"
    )
