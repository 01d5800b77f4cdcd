"""Of what a request may ask for too much: words for the counts of groups.budget and of answers."""

from __future__ import annotations

from .shapes import Text

WORK: dict[str, Text] = {
    "characters": Text("characters", "字符"),
    "drawn-marks": Text("marks to draw", "要绘制的图形"),
    "hosts": Text("hosts", "主机"),
    "keys": Text("keys", "键"),
    "layouts": Text("layouts to try", "要尝试的布局"),
    "listed-ranks": Text("ranks in the groups to list", "要列出的组内 rank"),
    "numbers": Text("numbers of tensors", "张量中的数"),
    "ops": Text("ops of pipelines", "流水线操作"),
    "pipeline-ranks": Text("pipeline ranks", "流水线 rank"),
    "pipeline-stages": Text("stages to work out", "要计算的流水线阶段"),
    "pixels": Text("pixels to paint", "要绘制的像素"),
    "ranks": Text("ranks", "rank"),
    "statements": Text("statements", "语句"),
    "table-cells": Text("cells of a table", "表格单元"),
    "values": Text("values", "值"),
    "words": Text("words", "词"),
}
