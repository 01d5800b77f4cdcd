"""The picture of the job -> inline SVG for the page.

What the page's script needs to mark the groups of the chosen GPU stands in ``data-known``: where
each rank is (folds), and how lines run.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ..draw.job import draw_job
from ..scenes.job import JobPicture
from .marks import known_svg, marks_svg


def job_svg(
    picture: JobPicture,
    description: str,
    kinds: Sequence[int] = (),
    *,
    is_still: bool = False,
    outlined: np.ndarray | None = None,
) -> str:
    """One mesh; ``description`` is the text for screen readers.

    kinds: the numbers under which the page's script knows the groups that it marks here, in the
    order of their lines. is_still: whether the script marks nothing here. outlined: which ranks of
    numbered cells have a dashed frame.
    """
    width, height = picture.width + 2, picture.height + 2
    look = "numbered" if picture.is_numbered else "plain"
    return (
        f'<svg class="job {look}" {_data(picture, kinds)} tabindex="0" role="group" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" style="{letters(picture)}" '
        f'aria-label="{escape(description)}">'
        f"{marks_svg(draw_job(picture, 'page', is_still, outlined))}</svg>"
    )


def _data(picture: JobPicture, kinds: Sequence[int]) -> str:
    plan, metrics = picture.plan, picture.plan.metrics
    return known_svg(
        folds=plan.folds,
        left=plan.left + plan.origin[0],
        top=plan.top + plan.origin[1],
        sides=picture.sides,
        scale=plan.scale,
        pad=metrics.pad,
        gap=metrics.gap,
        frame=(metrics.frame, metrics.ends),
        outside=[name in (*plan.columns, "pp") for name in picture.mesh.names],
        boxes=[name not in plan.box for name in picture.mesh.names],
        deep=plan.sizes.replica_height,
        staged=_place(picture.mesh.names, "pp"),
        kinds=kinds,
        levels=[*picture.levels.values()],
        boxed=_place([*picture.levels], picture.box_kind),
    )


def _place(names: Sequence[str], name: str) -> int:
    return [*names].index(name) if name in names else -1


def letters(picture: JobPicture) -> str:
    """For the style sheet: the picture's width and shape, and the drawn and largest size of a
    cell's number, in pixels."""
    wide, tall = picture.sides
    digits = len(str(picture.mesh.world_size - 1))
    most = min(wide * 1.4 / digits, tall * 0.78)
    width, aspect = picture.width + 2, (picture.width + 2) / (picture.height + 2)
    shape = f"--width:{width:.0f}px;--aspect:{aspect:.2f};--w:{width:.0f}"
    return f"{shape};--size:{picture.number_size:.1f}px;--most:{most:.1f}px"
