"""A variant's marker as a picture: there for every marker, inside its frame, and as the charts colour it."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import pytest

from kernelviz.ops import catalogue
from kernelviz.plots.marker_images import mark, svg
from kernelviz.plots.variant_styles import MARKERS, Style, style_of


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
