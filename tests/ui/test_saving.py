"""A file is made of what the boxes say when Save is pressed, once a press, and given to the browser."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from kernelviz.core.errors import UnknownRun
    from kernelviz.ui.shared import download_button

    title = st.text_input("Title", "old", key="title")
    if st.session_state.get("ended_early"):
        st.stop()

    def make() -> bytes:
        st.session_state["times"] = st.session_state.get("times", 0) + 1
        if title == "gone":
            raise UnknownRun("r<1>")
        return title.encode()

    download_button.button(
        make, f"{title}_1_.txt", "text/plain", choice=title, key="save", icon=":material/save:", caption="2 cases"
    )


def given(test: AppTest) -> list[tuple[str, str]]:
    """What the page offers to fetch, and the presses for which the browser fetches it by itself."""
    assert not test.exception, test.exception
    offered = [b.proto.label for b in test.get("download_button")]
    presses = [c.proto.json for c in test.get("bidi_component")]
    assert len(offered) == len(presses)
    return list(zip(offered, presses, strict=True))


def test_nothing_is_made_before_save_is_pressed() -> None:
    test = AppTest.from_function(page).run()
    assert given(test) == []
    assert "times" not in test.session_state
    assert [c.value for c in test.caption] == ["2 cases"]


def test_a_title_typed_last_is_in_the_file_though_save_was_pressed_at_once() -> None:
    test = AppTest.from_function(page).run()
    test.text_input(key="title").set_value("new *one*")
    test.button(key="save").click()
    ((label, _),) = given(test.run())
    assert label == r"new \*one\*\_1\_.txt · 9 B"
    assert test.session_state["save_saving"].data == b"new *one*"


def test_a_press_makes_one_file_and_has_it_fetched_once() -> None:
    test = AppTest.from_function(page).run()
    first = given(test.button(key="save").click().run())
    assert given(test.run()) == first
    assert test.session_state["times"] == 1
    ((label, press),) = given(test.button(key="save").click().run())
    assert label == first[0][0]
    assert press != first[0][1]
    assert test.session_state["times"] == 2


def test_another_choice_takes_the_file_away() -> None:
    test = AppTest.from_function(page).run()
    test.button(key="save").click().run()
    assert given(test.text_input(key="title").set_value("b").run()) == []
    assert given(test.text_input(key="title").set_value("old").run()) == []
    assert test.session_state["times"] == 1


def test_a_press_is_kept_though_its_redraw_ends_before_the_button_is_reached() -> None:
    test = AppTest.from_function(page).run()
    test.session_state["ended_early"] = True
    test.button(key="save").click().run()
    assert "times" not in test.session_state
    test.session_state["ended_early"] = False
    assert len(given(test.run())) == 1


def test_what_cannot_be_made_is_said_and_not_tried_again_by_itself() -> None:
    test = AppTest.from_function(page).run()
    test.text_input(key="title").set_value("gone")
    test.button(key="save").click().run()
    assert given(test) == []
    assert r"no run 'r\<1\>' here" in test.error[0].value
    assert len(test.run().error) == 1
    assert test.session_state["times"] == 1
    test.text_input(key="title").set_value("there").run()
    assert not test.error
    assert len(given(test.button(key="save").click().run())) == 1


def two_runs() -> None:
    from kernelviz.ui.shared import download_button

    for name in ("a", "b"):
        download_button.button(name.encode, name, "text/plain", choice=name, key=name, icon=":material/save:")


def test_a_session_holds_one_file() -> None:
    test = AppTest.from_function(two_runs).run()
    assert [label for label, _ in given(test.button(key="a").click().run())] == ["a · 1 B"]
    test.button(key="b").click().run()
    assert test.session_state["a_saving"].data == b""
    assert [label for label, _ in given(test.run())] == ["b · 1 B"]
