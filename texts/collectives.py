# ruff: noqa: RUF001
"""The words of the collectives: refusals, operations, algorithms, and the view that shows them."""

from __future__ import annotations

from .shapes import Text

COLLECTIVES_REFUSALS: dict[str, Text] = {
    "not-bytes": Text("{value} is not a number of bytes.", "{value} 不是字节数。"),
    "not-a-bandwidth": Text(
        "{value} is not a bandwidth in bytes per second.", "{value} 不是以字节每秒计的带宽。"
    ),
    "not-receivers": Text(
        "{value} does not name a receiver for each of {members} members.",
        "{value} 没有为 {members} 个成员各指定一个接收者。",
    ),
    "sends-to-itself": Text(
        "The member at place {place} would send to itself.", "位置 {place} 的成员会发给自己。"
    ),
    "receives-twice": Text(
        "The member at place {place} would receive twice.", "位置 {place} 的成员会接收两次。"
    ),
    "not-splits": Text(
        "{value} is not {members} × {members} numbers of rows.",
        "{value} 不是 {members} × {members} 个行数。",
    ),
    "splits-do-not-add-up": Text(
        "Member {place} has {rows} rows, and its splits add up to {sum}.",
        "成员 {place} 有 {rows} 行，而它的各份加起来是 {sum} 行。",
    ),
    "rows-differ": Text(
        "A row of member {place} has shape {shape}, and one of member 0 {other_shape}.",
        "成员 {place} 的一行形状为 {shape}，而成员 0 的为 {other_shape}。",
    ),
    "not-in-batch": Text(
        "Rank {rank} has read no tensor {value}.", "rank {rank} 没有读到张量 {value}。"
    ),
    "does-not-pack": Text(
        "{value} has the shape {shape}: the broadcast of shapes holds fewer than {limit} dims, "
        "none of them 0.",
        "{value} 的形状为 {shape}：形状的广播只容纳少于 {limit} 维的张量，且各维不为 0。",
    ),
    "types-differ": Text(
        "{value} is {type}, and {other} is {other_type}: all elements travel in one flat tensor.",
        "{value} 是 {type}，而 {other} 是 {other_type}：所有元素放在一个平坦的张量里传送。",
    ),
    "nothing-to-send": Text(
        "Member {place} has nothing in slot {slot} at step {step}.",
        "成员 {place} 在第 {step} 步时槽 {slot} 中没有内容。",
    ),
    "not-in-vocabulary": Text(
        "{value} is no word: words go from 0 to {last}.", "{value} 不是词：词从 0 到 {last}。"
    ),
}
