"""Sizes as people write them, and the errors that name the field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelviz.core.errors import BadField, UnknownName, UsageError
from kernelviz.core.sizes import expand, values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", [4096]),
        ("2^10..2^13", [1024, 2048, 4096, 8192]),
        ("100..900", [100, 200, 400, 800]),
        ("1,2,2,3", [1, 2, 3]),
        (" 2**5 ", [32]),
        ("10..30:10", [10, 20, 30]),
        ("3*1024+1", [3073]),
    ],
)
def test_values(text: str, expected: list[int]) -> None:
    assert values("n", text) == expected


@pytest.mark.parametrize(
    "text", ["", "-1", "0", "2^99", "1.5", "4..2", "1/0", "(lambda: 4)()", "9" * 300, "2^10..", "True"]
)
def test_bad_text_names_the_field(text: str) -> None:
    with pytest.raises(BadField, match="size n"):
        expand(("n",), {"n": text})


def test_an_unknown_axis_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no axis 'mm'; did you mean 'm'"):
        expand(("m", "n"), {"mm": "1", "n": "2", "m": "3"})
    with pytest.raises(BadField, match=r"size n: .*'__import__' is not an axis"):
        expand(("n",), {"n": "__import__('os')"})
    with pytest.raises(BadField, match=r"size m: .*'k' is not an axis"):
        expand(("m", "n"), {"m": "8/k", "n": "2"})


def test_axes_that_depend_on_each_other_are_refused() -> None:
    with pytest.raises(BadField, match="depend on itself"):
        expand(("m", "n"), {"m": "n", "n": "m"})


def test_a_plan_has_a_limit() -> None:
    with pytest.raises(BadField, match="at most 2048 problems"):
        expand(("m", "n"), {"m": "1..64:1", "n": "1..64:1"})
    with pytest.raises(BadField, match="at most 2048 problems"):
        expand(("n",), {"n": "1..2^40:1"})


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = expand(("n",), {"n": text})
    except UsageError:
        return
    assert all(sizes["n"] >= 1 for sizes in found)
