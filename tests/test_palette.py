"""Colours measured, not judged: distance (CIEDE2000), colour blindness (Machado 2009), contrast.

colour-science is the independent measure; the palette's own luminance and contrast are not used
for distances.
"""

from __future__ import annotations

import colorsys
import itertools
import re

import numpy as np
import pytest
from cases import every
from colours import lab, least_apart

from groups import LayoutError, fit, group_index
from groups.group_names import main_axis
from groups.grouping import plain
from groups.megatron.parallel_state import FAMILIES
from render import palette
from render.marks import LOOKS
from render.palette import (
    GROUP_INK,
    GROUPS,
    KIND_COLOURS,
    KIND_MARKS,
    KIND_TINTS,
    PALETTE,
    PLAIN_CELL,
    ROWS,
    contrast,
)
from render.scenes import geometry
from render.scenes import groups as scene
from render.scenes.timeline import PHASES
from request.context import Context
from request.state import State
from views.all import VIEWS

THEMES = ("light", "dark")
DEFICIENCIES = ("Deuteranomaly", "Protanomaly")


def nearest(colours, deficiency=None) -> float:
    """The smallest CIEDE2000 between any two of the colours."""
    one, other = zip(*itertools.combinations(lab(colours, deficiency), 2))
    return least_apart(np.array(one), np.array(other))


def next_to_each_other(colours, deficiency=None) -> float:
    """The smallest CIEDE2000 between a colour and the one after it, the last before the first."""
    seen = lab(colours, deficiency)
    return least_apart(seen, np.roll(seen, -1, axis=0))


# -- the measure itself --------------------------------------------------------------------------


def test_the_measure_knows_red_from_green_and_a_deuteranope_hardly_does():
    red, green = "#d04030", "#508020"
    assert nearest([red, green]) > 40
    assert nearest([red, green], "Deuteranomaly") < 15


def test_tab20_would_fail_where_this_palette_passes():
    """The usual choice: tab20, sampled by the number of groups."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    tab20 = [to_hex(c) for c in colormaps["tab20"](np.linspace(0, 1, 10))]
    assert next_to_each_other(tab20) < 22
    assert all(next_to_each_other(tab20, deficiency) < 11 for deficiency in DEFICIENCIES)


# -- groups --------------------------------------------------------------------------------------


@every("theme", THEMES)
def test_there_are_ten_colours_written_as_six_hex_digits(theme):
    assert len(set(GROUPS[theme])) == 10
    assert all(len(c) == 7 and f"#{int(c[1:], 16):06x}" == c for c in GROUPS[theme])
    assert GROUPS["light"] == PALETTE


@every("theme", THEMES)
def test_groups_next_to_each_other_are_22_apart_and_11_for_colour_blind_eyes(theme):
    assert next_to_each_other(GROUPS[theme]) >= 22
    assert all(next_to_each_other(GROUPS[theme], one) >= 11 for one in DEFICIENCIES)


@every("theme", THEMES)
def test_any_two_group_colours_are_13_apart_and_8_for_colour_blind_eyes(theme):
    assert nearest(GROUPS[theme]) >= 13
    assert all(nearest(GROUPS[theme], deficiency) >= 8 for deficiency in DEFICIENCIES)


def test_no_group_of_the_dark_theme_is_olive():
    """Dark yellows, which read as dirt beside the others; browns and greens may be."""
    for colour in GROUPS["dark"]:
        hue, saturation, _ = colorsys.rgb_to_hsv(*(part / 255 for part in palette.rgb(colour)))
        assert not (40 <= 360 * hue <= 100 and saturation > 0.25), colour


@every("theme", THEMES)
def test_one_ink_reads_on_every_group_tint_and_cell(theme):
    steps = [step for name in palette.SCALE_ENDS[theme] for step in palette.scale_of(name, theme)]
    fills = [*GROUPS[theme], *KIND_TINTS[theme].values(), PLAIN_CELL[theme], *steps]
    assert min(palette.contrast(fill, GROUP_INK[theme]) for fill in fills) >= 4.5


@every(
    "a, b, ratio",
    [("#777777", "#ffffff", 4.48), ("#0000ff", "#ffffff", 8.59), ("#ff0000", "#000000", 5.25)],
)
def test_contrast_is_that_of_wcag(a, b, ratio):
    """Ratios as WebAIM's contrast checker prints them (cut to two decimals)."""
    assert palette.contrast(a, b) == pytest.approx(ratio, abs=0.01)
    assert palette.contrast(b, a) == palette.contrast(a, b)


def test_ink_is_black_or_white_and_never_below_4_5_on_any_colour_at_all():
    for r, g, b in itertools.product(range(0, 256, 15), repeat=3):
        fill = f"#{r:02x}{g:02x}{b:02x}"
        assert palette.ink(fill) in ("#000000", "#ffffff")
        assert palette.contrast(fill, palette.ink(fill)) >= 4.5


# -- kinds and stages ----------------------------------------------------------------------------


@every("theme", THEMES)
@every("table", [KIND_COLOURS, KIND_MARKS], ids=["names", "marks"])
def test_kinds_are_15_apart_in_both_themes(table, theme):
    """For normal eyes; others know a kind by its name, and by where it stands in the picture."""
    assert list(table[theme]) == list(palette.TONES) == ["tp", "cp", "dp", "pp", "ep"]
    assert nearest(list(table[theme].values())) >= 15


@every("theme", THEMES)
@every("deficiency", [None, *DEFICIENCIES])
def test_what_is_marked_stands_out_from_what_is_not_whatever_the_kind(theme, deficiency):
    """A tint of a cell with a number by 6 at least, a mark in a raster by 19."""
    for tone in palette.TONES:
        assert nearest([KIND_TINTS[theme][tone], PLAIN_CELL[theme]], deficiency) >= 6
        for row in ROWS[theme]:
            assert nearest([KIND_MARKS[theme][tone], row], deficiency) >= 19


@every("theme", THEMES)
@every("deficiency", [None, *DEFICIENCIES])
def test_no_step_of_time_lost_is_taken_for_one_of_time_that_others_lost(theme, deficiency):
    lost, caused = (
        lab(palette.scale_of(name, theme)[1:], deficiency) for name in ("lost", "caused")
    )
    assert min(least_apart(lost[[at]], caused) for at in range(palette.STEPS)) >= 13


@every("theme", THEMES)
@every("kind", palette.TONES)
@every("deficiency", [None, *DEFICIENCIES])
def test_a_mark_stands_out_from_every_stage_by_its_colour(theme, kind, deficiency):
    """20 apart on both greys. By lightness alone (3:1) some would not: the hue carries it."""
    mark = KIND_COLOURS[theme][kind]
    for shade in palette.ROWS[theme]:
        assert nearest([mark, shade], deficiency) >= 20


@every("theme", THEMES)
def test_the_name_of_a_kind_reads_on_its_colour_and_a_line_of_it_on_the_page(theme):
    """A chip's name is written in the colour of the page."""
    page = {"light": "#ffffff", "dark": "#0b0f19"}[theme]
    assert all(palette.contrast(c, page) >= 4.5 for c in KIND_COLOURS[theme].values())


@every("name", ["dp", "dp-cp", "cp-dp", "tp-dp", "tp-dp-cp", "gtp-dp", "edp"])
def test_every_join_with_dp_wears_the_tone_of_dp(name):
    assert main_axis(name) == "dp"


@every(
    "name, tone",
    [
        ("tp", "tp"), ("etp", "tp"), ("gtp", "tp"), ("egtp", "tp"),
        ("cp", "cp"), ("tp-cp", "cp"), ("hcp-l0", "cp"), ("hcp-l1", "cp"),
        ("pp", "pp"), ("mp", "pp"), ("embd", "pp"), ("pos-embd", "pp"),
        ("ep", "ep"), ("tp-ep", "ep"), ("tp-ep-pp", "ep"), ("tp-ep-egtp-pp", "ep"),
        ("intra-dp-cp", "dp"), ("inter-edp", "dp"), ("hybrid-dp-cp-4", "dp"),
        ("intra-dist-opt", ""), ("slice", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_name_wears_the_tone_of_what_it_is_mostly_made_of(name, tone):
    assert main_axis(name) == tone


def test_groups_of_one_picture_have_different_tones_as_long_as_there_are_any():
    names = [*FAMILIES, "hcp-l0", "hcp-l1", "slice"]
    for few in (1, 2, 3, 4, 5):
        for shown in itertools.islice(itertools.combinations(names, few), 0, None, 7**few // 4 + 1):
            tones = palette.tones(shown)
            assert list(tones) == list(shown)
            assert len(set(tones.values())) == few, tones
            assert set(tones.values()) <= set(palette.TONES)
            first = shown[0]
            assert tones[first] == main_axis(first) or not main_axis(first)


def test_more_groups_than_tones_share_them():
    tones = palette.tones(["dp", "dp-cp", "tp-dp", "tp-dp-cp", "edp", "tp", "slice"])
    assert set(tones.values()) == set(palette.TONES)
    assert tones["dp"] == "dp"
    assert len(tones) == 7


@every("theme", THEMES)
def test_a_gpu_in_no_group_reads_as_one_and_is_no_group_s_colour(theme):
    """It is told by its dash too."""
    grey = palette.NO_GROUP[theme]
    assert palette.contrast(grey, GROUP_INK[theme]) >= 4.5
    assert max(palette.rgb(grey)) - min(palette.rgb(grey)) <= 32  # no hue to speak of
    for fill in GROUPS[theme]:
        assert nearest([grey, fill]) >= 15
        assert all(nearest([grey, fill], deficiency) >= 6 for deficiency in DEFICIENCIES)


def test_cells_in_no_group_part_no_colours():
    """-1 is no group 9: a row of 9, -1, 19, -1 keeps the colours of 9 and 19."""
    group = np.array([9, -1, 19, -1])
    row = np.stack([np.arange(3), np.arange(1, 4)], axis=-1)
    assert palette.colour_indices(group, row)[[0, 2]].tolist() == [9, 9]


def test_a_ramp_is_even_and_keeps_its_ends():
    assert palette.ramp("#000000", "#ff8000", 3) == [(0, 0, 0), (128, 64, 0), (255, 128, 0)]
    assert palette.ramp("#102030", "#ffffff", 1) == [(16, 32, 48)]
    darker = [sum(c) for c in palette.ramp("#ffffff", "#808080", 16)]
    assert darker == sorted(darker, reverse=True)
    assert len(set(darker)) == 16


# -- which group gets which colour ---------------------------------------------------------------


def neighbours(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pairs next to each other in a row or a column, from positions alone: shape (pairs, 2)."""
    pairs = []
    for along, across in ((x, y), (y, x)):
        order = np.lexsort((along, across))
        same = np.isclose(across[order][1:], across[order][:-1])
        pairs.append(np.stack([order[:-1], order[1:]], axis=-1)[same])
    return np.concatenate(pairs)


def test_neighbours_are_those_of_the_picture():
    """0 1
    2 3"""
    pairs = neighbours(np.array([0.0, 9.0, 0.0, 9.0]), np.array([0.0, 0.0, 9.0, 9.0]))
    assert sorted(map(tuple, pairs.tolist())) == [(0, 1), (0, 2), (1, 3), (2, 3)]


WORLDS = [(g, nodes) for g in (1, 2, 4, 8, 16, 32, 72) for nodes in range(1, 256 // g + 1)]


def layouts(world):
    for tp, cp, pp in itertools.product((1, 2, 3, 4, 6, 8, 16, 64), (1, 2), (1, 2, 3, 4, 8, 12)):
        if world % (tp * cp * pp) == 0:
            yield fit(world, tp=tp, cp=cp, pp=pp)


def test_no_two_touching_cells_of_different_groups_share_a_colour():
    checked = 0
    for gpus_per_node, nodes in WORLDS:
        world = gpus_per_node * nodes
        tiles = geometry.node_tiles(world, gpus_per_node)
        grid = geometry.physical_grid(world, gpus_per_node, tiles.across).grid
        drawn, mine = geometry.touching(grid, world), neighbours(tiles.x, tiles.y)
        indices = {
            group.tobytes(): group
            for mesh in layouts(world)
            for kind in ("tp", "cp", "dp", "pp", "dp-cp")
            for group in [group_index(mesh, kind)]
        }
        for group in indices.values():
            colours = palette.colour_indices(group, drawn)
            one, other = mine.T
            clash = (group[one] != group[other]) & (colours[one] == colours[other])
            assert not clash.any(), (world, gpus_per_node, mine[clash][:3].tolist())
            checked += 1
    assert checked > 4000


def test_groups_0_to_9_have_their_own_colour_in_every_world():
    for gpus_per_node, nodes in WORLDS[::20]:
        for mesh in layouts(gpus_per_node * nodes):
            for kind in ("tp", "dp", "pp"):
                shown = scene.panel(plain(mesh, kind), gpus_per_node)
                first = shown.group < 10
                assert np.array_equal(shown.colour[first], shown.group[first])


def test_all_members_of_a_group_have_one_colour():
    for world, gpus_per_node in ((16, 8), (72, 72), (240, 8), (256, 4)):
        for mesh in layouts(world):
            shown = scene.panel(plain(mesh, "dp"), gpus_per_node)
            pairs = set(zip(shown.group.tolist(), shown.colour.tolist()))
            assert len(pairs) == shown.grouping.num_groups


def test_without_a_clash_the_colour_is_the_group_modulo_10():
    group = np.arange(30)
    row = np.stack([group[:-1], group[1:]], axis=-1)
    assert palette.colour_indices(group, row).tolist() == [*range(10)] * 3


def test_groups_10_apart_that_touch_get_different_colours():
    group = np.array([0, 10, 20])
    index = palette.colour_indices(group, np.array([[0, 1], [1, 2]]))
    assert index[0] == 0
    assert len({*index[:2].tolist()}) == len({*index[1:].tolist()}) == 2


def test_more_groups_side_by_side_than_there_are_colours_keep_their_own():
    group = np.arange(11)
    all_pairs = np.stack(np.triu_indices(11, 1), axis=-1)
    assert palette.colour_indices(group, all_pairs).tolist() == [*range(10), 0]


def test_an_unknown_kind_is_refused():
    with pytest.raises(LayoutError):
        scene.panel(plain(fit(16), "xp"), 8)


# -- one meaning a hue -----------------------------------------------------------------------------


def hue_and_strength(colour: str) -> tuple[float, float]:
    """Hue in degrees and saturation of a colour (HLS)."""
    hue, _, strength = colorsys.rgb_to_hls(*(channel / 255 for channel in palette.rgb(colour)))
    return 360 * hue, strength


KIND_HUES = [hue_and_strength(colour)[0] for colour in KIND_COLOURS["light"].values()]


@every("theme", THEMES)
def test_the_hues_of_kinds_are_for_kinds_roles_are_greys_and_the_scale_has_one_of_its_own(theme):
    for colour in (*palette.ROLE_CELLS[theme], *palette.STEP_MARKS[theme], *PHASES.values()):
        assert hue_and_strength(colour)[1] < 0.45 or contrast(colour, "#ffffff") > 12
        assert nearest([colour, *palette.KIND_TINTS[theme].values()]) >= 6
    for name in palette.HEAT_SHADES[1:-1]:
        hue, _ = hue_and_strength(palette.SHADES[theme][name])
        assert min(abs(hue - other) for other in KIND_HUES) > 25, name


@every("theme", THEMES)
def test_maps_have_colours_of_their_own_theme_with_an_ink_on_each(theme):
    page = LOOKS[theme].page
    shades = palette.SHADES[theme]
    assert palette.SHADES["light"].keys() == shades.keys()
    for name, colour in shades.items():
        assert contrast(colour, palette.SHADE_INKS[theme][name]) >= 4.5
    assert len({shades[name] for name in palette.HEAT_SHADES}) == palette.HEAT + 1
    # The more there is, the further from the page: in the dark theme brighter, not darker.
    away = [contrast(shades[name], page) for name in palette.HEAT_SHADES[:-1]]
    assert away == sorted(away)
    blame = [contrast(shades[name], page) for name in ("end", "later", "hop2", "hop1")]
    assert blame == sorted(blame)
    assert contrast(shades["culprit"], page) > 6


def test_the_most_bytes_have_the_strongest_shade_whoever_sends_them():
    shades = [palette.shade_of(share) for share in (0.0, 0.2, 0.5, 1.0)]
    assert shades == sorted(shades)
    assert len({*shades}) == 4


@every("theme", THEMES)
def test_what_fills_a_gpu_has_colours_of_its_own_that_lightness_tells_apart(theme):
    """Inks and shades of the one scale: no hue of a kind, no group's colour, nor that of waiting;
    neighbours 8 apart to any eye, and in grey by 10 of lightness."""
    fills = [*palette.FILLS[theme].values()]
    assert len({*fills}) == len(fills) == 10
    others = [*GROUPS[theme], *KIND_TINTS[theme].values(), palette.WAITING[theme]]
    for fill, (_, a, b) in zip(fills, lab(fills)):
        is_grey, (hue, _) = np.hypot(a, b) < 16, hue_and_strength(fill)
        assert is_grey or min(abs(hue - other) for other in KIND_HUES) > 25
        assert fill not in others
    for deficiency in (None, *DEFICIENCIES):
        seen = lab(fills, deficiency)
        assert least_apart(seen[:-1], seen[1:]) >= 8
        assert nearest(fills, deficiency) >= (9 if deficiency is None else 4.5)
    assert np.abs(np.diff(lab(fills)[:, 0])).min() >= 10


PAGES = (
    {"view": "memory", "model": "llama3-8b", "tp": 2, "pp": 4},
    {"view": "memory", "model": "deepseek-v3", "nodes": 32, "tp": 1, "pp": 16, "ep": 16},
    {"view": "memory", "framework": "vllm", "model": "llama3-8b", "nodes": 1, "tp": 8, "pp": 1},
    {"view": "estimate", "framework": "vllm", "model": "llama3-8b", "nodes": 1, "tp": 8, "pp": 1},
    {"view": "moves", "nodes": 2, "tp": 2, "pp": 2},
)


@every("fields", PAGES)
def test_no_view_of_amounts_paints_in_the_colours_of_groups(fields):
    """But for who holds which share (`svg.shards`), where a colour is a rank of one group."""
    page = str(VIEWS[fields["view"]].html(Context.of(State(**fields))))
    shares = re.compile(r'<svg class="shards".*?</svg>', re.DOTALL)
    assert not re.findall(r"var\(--g\d\)", shares.sub("", page))
    assert re.search(r"--(kept|step)\d", page)
