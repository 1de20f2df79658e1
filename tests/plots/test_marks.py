"""The styles of variants: unique within a run and visible in both themes; and the marker as a picture."""

from __future__ import annotations

import base64
import re
import tomllib
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelviz.ops import catalogue
from kernelviz.plots.marker_images import mark, svg
from kernelviz.plots.variant_styles import COLOURS, MARKERS, NEUTRAL, Style, style_of, styles_of, with_filling

OPS = tuple(catalogue().values())
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.sampled_from(["by_norm", "cuda_vec16"])
THEME = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
BACKGROUNDS = tuple(THEME[name]["backgroundColor"] for name in ("light", "dark"))


LADDERS = [(op.name, dtype, direction) for op in OPS for dtype in op.dtypes for direction in op.directions]


def ladder_of(op_name: str, dtype: str, direction: str) -> list[str]:
    """The variants that a run in this format and direction can have."""
    variants = [v for o in OPS for v in o.variants if o.name == op_name and direction in v.directions]
    return [v.name for v in variants if v.dtypes is None or dtype in v.dtypes]


@given(run=st.sampled_from([*LADDERS, ("no_such_op", "fp32", "forward")]), data=st.data())
def test_no_two_variants_of_a_run_look_alike(run: tuple[str, str, str], data: st.DataObject) -> None:
    """Up to 30 variants of the op, of plug-ins and of other tools, in any order."""
    op, ladder = run[0], ladder_of(*run)
    own = data.draw(st.permutations(ladder))[: data.draw(st.integers(0, len(ladder)))]
    others = data.draw(st.lists(NAMES, unique=True, max_size=30 - len(own)))
    names = list(dict.fromkeys((*own, *others)))
    styles = styles_of(op, names)
    assert len(set(styles.values())) == len(names)
    assert styles == styles_of(op, names[::-1]), "the order of the variants changes nothing"
    foreign = [n for n in names if n not in ladder]
    for name in own:
        assert styles[name] == style_of(op, name), "a variant of the catalogue looks the same in every run"
    reserved = {style_of(op, name) for name in ladder}
    assert reserved.isdisjoint(styles[n] for n in foreign), (
        "no plug-in looks like a variant of the op that is not in this run"
    )
    # As long as there are enough, each variant has a colour and a marker that no other has.
    all_names = {*(v.name for o in OPS if o.name == op for v in o.variants), *foreign}
    together = styles_of(op, all_names).values()
    if len(all_names) <= len(COLOURS):
        assert len({s.colour for s in together}) == len({s.marker for s in together}) == len(all_names)


def test_every_op_has_a_marker_for_each_variant_and_a_plug_in_and_as_many_colours_as_there_are() -> None:
    for name, dtype, direction in LADDERS:
        styles = [style_of(name, variant) for variant in (*ladder_of(name, dtype, direction), "by_norm")]
        assert len({s.marker for s in styles}) == len(styles), (name, dtype, direction)
        if len(next(op for op in OPS if op.name == name).variants) < len(MARKERS):
            assert len({s.colour for s in styles}) == min(len(styles), len(COLOURS)), (name, dtype, direction)


def _linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _contrast(a: str, b: str) -> float:
    """The contrast of WCAG 2.2."""
    lighter, darker = sorted((float(_linear(c) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (a, b)), reverse=True)
    return lighter / darker


def _oklab(colour: str) -> np.ndarray:
    """Björn Ottosson: A perceptual color space for image processing (2020)."""
    cones = np.cbrt(
        np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]) @ _linear(colour)
    )
    return np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]) @ cones


def test_colours_are_visible_in_both_themes_and_differ_from_each_other_and_from_the_roofs() -> None:
    """WCAG 2.2, 1.4.11: graphics need 3:1. A difference of 0.02 in OKLab is just noticeable."""
    for colour in (*COLOURS, NEUTRAL):
        assert min(_contrast(colour, background) for background in BACKGROUNDS) >= 3, colour
    for one, other in combinations((*COLOURS, NEUTRAL), 2):
        assert np.linalg.norm(_oklab(one) - _oklab(other)) >= 0.08, (one, other)


def test_plotly_draws_every_marker_with_every_filling() -> None:
    """Six runs on one roofline have four fillings, and the largest op has markers far down the list."""
    symbols = [with_filling(marker, filling) for marker in MARKERS for filling in ("", "-open", "-dot", "-open-dot")]
    figure = go.Figure(go.Scatter(x=[0] * len(symbols), y=[0] * len(symbols), marker={"symbol": symbols}))
    assert list(figure.data[0].marker.symbol) == symbols


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_has_a_shape_of_its_own_inside_its_frame(marker: str) -> None:
    picture = svg(Style(colour="#123456", marker=marker))
    shape = ElementTree.fromstring(picture)[0]
    assert shape.get("fill") == "#123456"
    corners = [float(v) for v in re.findall(r"-?\d+\.\d+", shape.get("points") or shape.get("r") or "")]
    assert corners
    assert all(-8 <= v <= 8 for v in corners)
    assert max(map(abs, corners)) > 5, "too small to be told apart"
    others = {svg(Style(colour="#123456", marker=m)) for m in MARKERS if m != marker}
    assert picture not in others


def test_a_mark_is_the_charts_colour_and_nothing_but_a_picture() -> None:
    for op in catalogue().values():
        for variant in op.variants:
            data = re.fullmatch(r"!\[\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", mark(op.name, variant.name))
            assert data
            assert style_of(op.name, variant.name).colour in base64.b64decode(data[1]).decode()


def test_a_name_from_elsewhere_cannot_write_into_the_picture() -> None:
    made = mark("no_such_op", '"/><script>alert(1)</script>')
    assert "script" not in base64.b64decode(made.partition("base64,")[2].rstrip(")")).decode()
