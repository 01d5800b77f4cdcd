"""A job of one GPU in words: nothing says "1 GPUs", and no view breaks."""

from __future__ import annotations

import re
from dataclasses import replace

from cases import every
from markup import text_of

from request.state import State
from views.all import VIEWS
from views.page import answer

MANY = "GPUs nodes ranks groups stages micro-batches engines replicas servers steps samples"
ONE_OF_MANY = re.compile(rf"(?<![\d.,–-])(?<!x )1\s({'|'.join(MANY.split())})\b")

JOBS = {
    "one GPU": State(nodes=1, gpus_per_node=1, tp=1, pp=1),
    "two of dp": State(nodes=1, gpus_per_node=2, tp=1, pp=1),
    "two nodes": State(nodes=2, gpus_per_node=1, tp=1, pp=2),
    "one sample": State(nodes=1, gpus_per_node=1, tp=1, pp=1, global_batch="1", micro_batch="1"),
    "a server": State(framework="vllm", nodes=1, gpus_per_node=1, tp=1, pp=1, model="llama3-8b"),
    "beside two": State(
        nodes=1, gpus_per_node=1, tp=1, pp=1, kept="?nodes=1&gpus_per_node=2&tp=2&pp=1"
    ),
}


@every("job, view", [(job, view) for job in JOBS for view in VIEWS])
def test_one_of_something_is_in_the_singular(job, view):
    page = answer(replace(JOBS[job], view=view))
    texts = {name: text_of(getattr(page, name)) for name in ("picture", "derived", "status")}
    assert not [found[0] for text in texts.values() for found in ONE_OF_MANY.finditer(text)]
