"""Texts of several roles: a job of reinforcement learning, or servers that share a cluster.

    read_plan(text)   the plan that a configuration makes: every role with its layout, its GPUs and
                      what is known of its model, training or serving; the order of their turns; and
                      what the text leaves open, in codes and facts

>>> from formats.roles import read_plan
>>> read = read_plan(
...     "python3 -m verl.trainer.main_ppo trainer.nnodes=2 algorithm.adv_estimator=grpo "
...     "actor_rollout_ref.actor.strategy=fsdp data.train_batch_size=64 "
...     "actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.tensor_model_parallel_size=4"
... )
>>> str(read.plan), [role.name for role in read.plan.turns]
('2 x 8 GPUs: actor 0-15, rollout 0-15', ['rollout', 'actor'])
>>> read.role("actor").values["global_batch"]
512

What it cannot know is refused by the name of its setting, with values that work; they are answered
as ``given``:

>>> text = "python3 -m verl.trainer.main_ppo trainer.nnodes=$NODES"
>>> read_plan(text)
Traceback (most recent call last):
groups.errors.LayoutError: the text does not work out trainer.nnodes, which is $NODES; \
try trainer.nnodes 1
>>> str(read_plan(text, {"trainer.nnodes": "4"}).plan)
'4 x 8 GPUs: actor 0-31, rollout 0-31, critic 0-31'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .model import PlanRead, RoleRead

if TYPE_CHECKING:
    from .read import has_roles, read_plan


def __getattr__(name: str) -> object:
    """Imports the readers of texts, which need all of formats/launch, on first use."""
    if name in ("has_roles", "read_plan"):
        return getattr(import_module(".read", __name__), name)
    raise AttributeError(name)
