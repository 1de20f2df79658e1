"""Configured names: written and read in one place; what is no such name says how to write one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelviz.core.configuration import base_name, configured_name, parted, split_names
from kernelviz.core.errors import BadField

KEYS = st.text("abcdefghij_", min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(KEYS, st.integers(-(10**9), 10**9), min_size=1, max_size=5))
def test_what_is_written_is_read_as_it_was(values: dict[str, int]) -> None:
    name = configured_name("triton_tuned", values)
    assert parted(name) == ("triton_tuned", values)
    assert base_name(name) == "triton_tuned"
    assert split_names(f"torch_eager,{name} , {name}") == ["torch_eager", name, name]


@pytest.mark.parametrize(
    "name", ["a[", "a]", "[b=1]", "a[b]", "a[b=]", "a[b=x]", "a[b=1,b=2]", "a[b=1]c", "a[b=1][c=2]", "a[]", "a[b=1.5]"]
)
def test_what_is_no_configuration_is_refused_with_the_form(name: str) -> None:
    with pytest.raises(BadField, match="triton_tuned\\[block=256,warps=4\\]"):
        parted(name)


def test_spaces_and_names_of_other_tools_do_no_harm() -> None:
    assert parted(" a[ b = 1 , c=2 ] ") == ("a", {"b": 1, "c": 2})
    assert base_name("kernel<int>[") == "kernel<int>["
