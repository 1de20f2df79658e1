"""Notices on the page about conditions that disturb measurements: their severity, their text, and none if there is no problem."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from kernelviz.core.notices import Notice


def shown(*found: Notice) -> AppTest:
    def page(found: object) -> None:  # its source is run elsewhere, where only builtins are known
        from kernelviz.ui.shared import device_strip

        device_strip.notices(found)  # type: ignore[arg-type]

    test = AppTest.from_function(page, args=(found,)).run()
    assert not test.exception
    return test


def boxes(test: AppTest) -> list[str]:
    return [str(e.value) for kind in ("error", "warning", "info") for e in getattr(test, kind)]


def test_each_is_a_sentence_with_its_remedy_by_severity_and_never_markup() -> None:
    test = shown(
        Notice("no_torch", {}, "device", "error"),
        Notice("folder_not_writable", {"folder": "/a_b_c<b>", "variable": "T_DIR", "consequence_of": "TMPDIR"}, "disk"),
        Notice("driver_updated", {}, "mig", "info"),
    )
    remedy = "Install it with pip install -r requirements.txt and restart kernelviz"
    assert [e.value for e in test.error] == [f"PyTorch is not installed. **{remedy}.**"]
    assert [w.value for w in test.warning] == [
        "The folder /a\\_b\\_c\\<b\\> cannot be written\\: compilers cannot write their temporary files. "
        "**Make it writable, or set T\\_DIR to a folder that is.**"
    ]
    assert [i.value for i in test.info] == [
        "The NVIDIA driver was updated while it was in use. **Restart this machine.**"
    ]


def test_compilers_are_said_where_their_variants_are_greyed_out() -> None:
    test = shown(Notice("no_triton", {}, "compiler"))
    assert boxes(test) == []


def test_nothing_to_say_shows_nothing() -> None:
    test = shown()
    assert boxes(test) == []
    assert len(test.main.children) == 0
