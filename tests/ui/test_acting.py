"""Buttons whose action is carried out although their redraw is interrupted, and values that a browser sends too late."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from kernelviz.core.errors import UnknownRun
from kernelviz.ui.shared import callbacks


def page() -> None:
    import streamlit as st

    from kernelviz.ui.shared import callbacks

    if st.session_state.get("ended_early"):
        st.stop()

    def act() -> None:
        st.session_state["done"] = st.session_state.get("done", 0) + 1

    callbacks.button("Do it", act, key="do")


def test_what_a_button_does_is_done_though_the_redraw_ends_before_it_is_reached() -> None:
    test = AppTest.from_function(page).run()
    test.session_state["ended_early"] = True
    test.button(key="do").click().run()
    assert test.session_state["done"] == 1
    test.session_state["ended_early"] = False
    assert test.run().session_state["done"] == 1


def failing_page() -> None:
    import streamlit as st

    from kernelviz.core.errors import UnknownRun
    from kernelviz.ui.shared import callbacks

    def act() -> None:
        if not st.session_state.get("there"):
            raise UnknownRun("r<1>")

    callbacks.button("Do it", act, key="do", about=st.session_state.get("about", "this"))


def test_what_cannot_be_done_is_said_until_it_can() -> None:
    test = AppTest.from_function(failing_page).run()
    assert not test.error
    test.button(key="do").click().run()
    assert str(UnknownRun("r1")).split("r1")[0] in test.run().error[0].value
    test.session_state["about"] = "another"
    assert not test.run().error
    test.session_state["about"] = "this"
    assert test.run().error
    test.session_state["there"] = True
    assert not test.button(key="do").click().run().error


def following_page() -> None:
    import streamlit as st

    from kernelviz.ui.shared import view_filters

    options = ["small", "middle", "large"]
    default = st.session_state["newest"]
    view_filters.seed("at", options, default)
    view_filters.keep("at", st.selectbox("At", options, key="at"), default)


@pytest.mark.parametrize(("stale_s", "shown"), [(60.0, "large"), (0.0, "small")])
def test_a_default_that_the_browser_did_not_know_yet_is_no_choice(
    monkeypatch: pytest.MonkeyPatch, stale_s: float, shown: str
) -> None:
    monkeypatch.setattr(callbacks, "STALE_S", stale_s)
    test = AppTest.from_function(following_page)
    for newest in ("small", "middle"):
        test.session_state["newest"] = newest
        assert test.run().selectbox(key="at").value == newest
    test.session_state["newest"] = "large"
    # A redraw that comes with the value from before the last: too late within moments, a choice after them.
    assert test.selectbox(key="at").select("small").run().selectbox(key="at").value == shown
    assert ("at" in test.query_params) == (shown == "small")
