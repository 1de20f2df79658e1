"""What hampers measuring, as the page shows it: by its severity, as text, and nothing where there is nothing to say."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from kernelviz.hardware.notice import Notice


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
        Notice("device", "driver 535 is too old", "update it", "error"),
        Notice("disk", "the disk of /a_b_c is full <b>", "set TRITON_CACHE_DIR"),
        Notice("mig", "this is a slice", "calibrate", "info"),
    )
    assert [e.value for e in test.error] == ["driver 535 is too old. **update it**"]
    assert [w.value for w in test.warning] == ["the disk of /a\\_b\\_c is full \\<b\\>. **set TRITON\\_CACHE\\_DIR**"]
    assert [i.value for i in test.info] == ["this is a slice. **calibrate**"]


def test_compilers_are_said_where_their_variants_are_greyed_out() -> None:
    test = shown(Notice("compiler", "Triton variants need a C compiler", "install one"))
    assert boxes(test) == []


def test_nothing_to_say_shows_nothing() -> None:
    test = shown()
    assert boxes(test) == []
    assert len(test.main.children) == 0
