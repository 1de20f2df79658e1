"""Error map and histograms of an inspection: what they show, also of nothing, one element, and everything wrong."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import sample_inspections as inspections

from kernelviz import plots
from kernelviz.core.inspection import OCTAVES, ErrorCounts, ErrorMap, Histogram, OutputErrors
from kernelviz.core.problem import Problem
from kernelviz.text.inspection import describe_cell, describe_map, describe_output

VECTOR = Problem(op="add", sizes={"n": 100_000}, dtype="fp32")
ONE = Problem(op="add", sizes={"n": 1}, dtype="fp32")
CASES: dict[str, OutputErrors | None] = {
    "none": None,
    "right": inspections.right().errors[0],
    "wrong": inspections.wrong_tile().errors[0],
    "vector": inspections.wrong_tile(VECTOR).errors[0],
    "one element": inspections.right(ONE).errors[0],
    "hostile": msgspec.structs.replace(inspections.wrong_tile().errors[0], name="<b>y", axes=("<i>m", "<i>n")),
    "exact": msgspec.structs.replace(
        inspections.right().errors[0], counts=ErrorCounts(exact=7, octaves=(0,) * (2 * OCTAVES + 2), beyond=0)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_output_is_drawn_or_says_why_not(name: str) -> None:
    for draw in (plots.share_by_element, plots.elements_by_error):
        figure = draw(CASES[name])
        text = figure.to_json()
        assert "<b>y" not in text
        assert "<i>" not in text
        assert figure.data or any(a.text for a in figure.layout.annotations)


def test_the_map_has_a_cell_for_each_block_coloured_by_powers_of_ten() -> None:
    errors = inspections.wrong_tile().errors[0]
    figure = plots.share_by_element(errors)
    z = np.array(figure.data[0].z)
    assert z.shape == (errors.map.rows, errors.map.columns) == (50, 64)
    assert z[0, 0] == pytest.approx(math.log10(0.5))
    assert z[0, 60] == pytest.approx(math.log10(12.5))
    assert z[0, 63] == 3  # never written: at the end of the colours
    told = np.array(figure.data[0].customdata)
    assert list(told[0, 63]) == [64 * 4, 64 * 4, math.inf, 0, 3, 4032, 4095]
    assert list(figure.layout.yaxis.range) == [49.5, -0.5]  # the first row on top
    assert list(figure.layout.xaxis.ticktext)[:3] == ["0", "512", "1024"]
    signs = {t.name: t for t in figure.data[1:] if t.name}
    assert list(signs) == ["wrong elements in the block", "never written elements in the block"]
    drawn = [t for t in figure.data[1:] if not t.name]
    assert set(zip(drawn[0].x, drawn[0].y, strict=True)) == {(x, y) for x in (60, 61, 62) for y in range(50)}
    assert set(drawn[1].x) == {63}


def test_a_right_output_has_no_signs() -> None:
    assert len(plots.share_by_element(inspections.right().errors[0]).data) == 1


def test_a_vector_is_laid_out_like_text_and_ends_where_it_ends() -> None:
    errors = inspections.wrong_tile(VECTOR).errors[0]
    figure = plots.share_by_element(errors)
    z = np.array(figure.data[0].z)
    assert z.shape == (49, 64)
    cells = len(errors.map.shares)
    assert cells == 3125 < 49 * 64
    assert np.isnan(z.reshape(-1)[cells:]).all()
    assert not np.isnan(z.reshape(-1)[:cells]).any()
    assert list(figure.layout.yaxis.ticktext)[:2] == ["0", str(8 * 64 * 32)]
    assert str(describe_cell(errors, cells - 1)) == "n 99968 to 99999"


def test_every_element_is_in_a_bar_and_those_outside_the_bound_are_hatched() -> None:
    errors = inspections.wrong_tile().errors[0]
    inside, outside = plots.elements_by_error(errors).data
    assert sum(y for y in inside.y if y) + sum(y for y in outside.y if y) == errors.elements
    assert sum(y for y in outside.y if y) == errors.wrong
    assert max(inside.x) < 0 < min(outside.x)
    assert outside.marker.pattern.shape == "/"
    assert not inside.marker.pattern.shape
    assert outside.hovertext[-1].startswith("beyond any tolerance<br>12,800 of 819,200 elements")


def test_values_stand_where_they_are() -> None:
    tensor = inspections.right().tensors[0]
    figure = plots.elements_by_value(tensor)
    (bars,) = figure.data
    assert sum(y for y in bars.y if y) == tensor.elements
    width = (4.5 + 4.25) / 64
    assert bars.x[31] == pytest.approx(-4.25 + 31.5 * width)
    same = msgspec.structs.replace(tensor, histogram=Histogram(low=2.0, high=2.0, counts=(9,)))
    assert list(plots.elements_by_value(same).data[0].x) == [2.0]
    bare = msgspec.structs.replace(tensor, histogram=None)
    for nothing in (bare, None):
        assert "no finite value" in plots.elements_by_value(nothing).layout.annotations[0].text


def test_words_say_where_the_trouble_lies() -> None:
    errors = inspections.wrong_tile().errors[0]
    assert list(map(str, describe_output(errors))) == [
        "y_MN: 51,200 of 819,200 elements outside the bound, 6.2 % (12,800 never written, 38,400 too far off)",
        "y_MN: they lie within all m, n 3840 to 4095 (the last 256 of 4096): every element there is wrong",
        "y_MN: of the others, largest error 0.0125; relative L2 error 0.01",
    ]
    assert "200 of 3200 hold wrong elements, the first at m 0 to 3, n 3840 to 3903" in str(describe_map(errors))
    scattered = msgspec.structs.replace(errors, first_wrong=(0, 0), last_wrong=(199, 4095))
    assert "they lie all over the output" in str(describe_output(scattered)[1])
    every = msgspec.structs.replace(scattered, wrong=819_200)
    assert "every element is wrong" in str(describe_output(every)[1])
    sparse = msgspec.structs.replace(errors, wrong=20, first_wrong=(3, 0), last_wrong=(3, 4095))
    assert str(describe_output(sparse)[1]) == "y_MN: they lie within m 3, all n: 20 of 4,096 elements there"
    folded = msgspec.structs.replace(
        errors, axes=("b", "m", "n"), shape=(2, 200, 4096), map=msgspec.structs.replace(errors.map)
    )
    assert str(describe_cell(folded, 1)) == "any b, m 0 to 3, n 64 to 127"
    single = ErrorMap(rows=1, columns=1, block=(1, 1), wraps=True, shares=(0.5,), wrong=(0,), unwritten=(0,))
    one = msgspec.structs.replace(errors, axes=(), shape=(), map=single, wrong=0)
    assert "no block holds a wrong element" in str(describe_map(one))
