# ruff: noqa: RUF001
"""The words of what only programs are told: refusals of the endpoints."""

from __future__ import annotations

from .shapes import Text

API_REFUSALS: dict[str, Text] = {
    "answer-too-large": Text(
        "{count} {what} are more than the {limit} of one answer.",
        "{what}有 {count} 个，超过了一次回答的上限 {limit} 个。",
    ),
    "not-tensors": Text(
        "{value} is not a JSON list with the tensor of each rank.",
        "{value} 不是每个 rank 一个张量的 JSON 列表。",
    ),
    "not-an-object": Text("{value} is not a JSON object.", "{value} 不是 JSON 对象。"),
    "too-large-a-number": Text(
        "The tensor of rank {rank} holds a number beyond {limit}.",
        "rank {rank} 的张量含有超过 {limit} 的数。",
    ),
    "not-one-per-rank": Text(
        "{count} tensors are not one for each of {world} ranks.",
        "{count} 个张量与 {world} 个 rank 不是一一对应。",
    ),
    "tensors-and-shape": Text(
        "Tensors have their own shape: give tensors or a shape, not both.",
        "张量自带形状：请只给出张量或形状之一。",
    ),
    "too-many-members": Text(
        "Steps are listed for groups of up to {limit} ranks, not of {size}.",
        "步骤只列出不超过 {limit} 个 rank 的组，而不是 {size} 个。",
    ),
}
