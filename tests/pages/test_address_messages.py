"""What a page says of a value in its address that it cannot use stays until the user chooses something."""

from __future__ import annotations

import pytest
from open_page import open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench

PAGES = {
    "workload of Workloads": ("workloads", {"workload": "nope"}, "workload 'nope' is not among"),
    "family of Gallery": ("gallery", {"family": "nope"}, "family 'nope' is not among"),
    "results of Claims": ("claims", {"results": "nope"}, "results 'nope' is not among"),
    "tab of Bench": ("bench", {"run": "h200-add", "tab": "nope"}, "tab 'nope' is not among"),
    "text of Code": ("code", {"run": "h200-linear_gelu", "kind": "nope"}, "kind 'nope' is not there: showing"),
    "op of Autotune": ("autotune", {"op": "nope", "first": "1"}, "op 'nope' is not known here: showing"),
    "op of Ladder": ("ladder", {"op": "matmol"}, "the op 'matmol' has no ladder: showing matmul"),
    "metric of Ladder": ("ladder", {"metric": "nope"}, "metric 'nope' is unknown: showing rate"),
    "batch of Model": ("model", {"batch": "many"}, "batch 'many' is not from 1 to"),
    "threshold of Device": ("device", {"busy": "often"}, "busy 'often' is not a number from 0 to 100: showing 60"),
}


def said(test: AppTest) -> str:
    assert not test.exception
    return " ".join(caption.value for caption in test.caption).replace("\\", "")


@pytest.mark.parametrize("place", PAGES)
def test_a_value_that_is_unknown_is_named_after_the_next_redraw_too(bench: Bench, place: str) -> None:
    name, params, message = PAGES[place]
    test = open_page(params, name)
    assert f"In the address, {message}" in said(test)
    assert "nope" not in str(test.query_params)
    assert f"In the address, {message}" in said(test.run())
    assert f"In the address, {message}" in said(test.run())


def page() -> None:
    import streamlit as st

    from kernelviz.ui.shared import view_filters

    sizes, default = ["small", "middle", "large"], st.session_state.get("newest", "small")
    named = st.session_state["always_named"]
    view_filters.choose(st.selectbox, "Size", sizes, default, key="size", always_named=named)
    view_filters.choose(st.segmented_control, "Colour", ["red", "blue"], "red", key="colour", always_named=named)
    st.button("Not a choice", key="other")


MESSAGE = "In the address, size 'nope' is not among small, middle, large: showing "


@pytest.fixture(params=[True, False], ids=["always named", "named unless it is the default"])
def opened(request: pytest.FixtureRequest) -> AppTest:
    test = AppTest.from_function(page)
    test.session_state["always_named"] = request.param
    test.query_params["size"] = "nope"
    assert f"{MESSAGE}small" in said(test.run())
    return test


def test_a_button_is_no_choice(opened: AppTest) -> None:
    assert f"{MESSAGE}small" in said(opened.button(key="other").click().run())
    assert f"{MESSAGE}small" in said(opened.run())


def test_a_choice_ends_the_message(opened: AppTest) -> None:
    assert not said(opened.selectbox(key="size").select("large").run())
    assert not said(opened.selectbox(key="size").select("small").run())


def test_a_choice_in_another_box_ends_the_message(opened: AppTest) -> None:
    assert not said(opened.button_group(key="colour").set_value("blue").run())


def test_the_message_names_the_default_that_is_shown_now(opened: AppTest) -> None:
    opened.session_state["newest"] = "middle"
    assert f"{MESSAGE}middle" in said(opened.run())


def test_what_the_page_sets_itself_ends_the_message(opened: AppTest) -> None:
    opened.session_state["size"] = "large"
    assert not said(opened.run())


@pytest.mark.parametrize(("address", "message"), [("large", ""), ("big", "size 'big' is not among")])
def test_another_address_has_its_own_message(opened: AppTest, address: str, message: str) -> None:
    opened.query_params["size"] = address
    assert "nope" not in said(opened.run())
    assert message in said(opened.run())
