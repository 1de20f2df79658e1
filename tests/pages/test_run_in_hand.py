"""One run in hand: the pages follow the same run through the navigation, and the form says whether it shows its plan."""

from __future__ import annotations

import pytest
from open_page import open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench
from kernelviz.ui.shared import callbacks
from kernelviz.ui.shared.site import pages_folder

SOFTMAX, MATMUL, ADD = "h200-softmax", "h200-matmul", "h200-add"
OTHER_CARD = "h100-80gb-hbm3-softmax"


def by_navigation(test: AppTest, name: str) -> AppTest:
    """Open a page as the navigation does: its address has no parameters."""
    test.query_params.clear()
    test.switch_page(str(pages_folder() / f"{name}.py"))
    test.run()
    assert not test.exception, test.exception
    return test


def address(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def words(test: AppTest) -> str:
    return "\n".join(str(e.value) for kind in ("markdown", "caption") for e in getattr(test, kind)).replace("\\", "")


def test_every_page_follows_the_run_that_is_open_and_bench_comes_back_to_it(bench: Bench) -> None:
    test = open_page({"run": SOFTMAX})
    tiles = [m.value for m in test.metric]
    test.text_input(key="size_softmax_n").set_value("64").run()
    assert by_navigation(test, "roofline").multiselect(key="chosen_runs").value == [SOFTMAX]
    by_navigation(test, "compare")
    assert (test.selectbox(key="a").value, test.selectbox(key="b").value) == (OTHER_CARD, SOFTMAX)
    by_navigation(test, "bench")
    assert (address(test, "run"), [m.value for m in test.metric]) == (SOFTMAX, tiles)
    assert test.text_input(key="size_softmax_n").value == "64", "the form is as it was left"


def test_a_run_that_is_chosen_on_another_page_is_the_one_that_bench_opens(bench: Bench) -> None:
    test = open_page({"run": SOFTMAX})
    by_navigation(test, "roofline").multiselect(key="chosen_runs").set_value([MATMUL, ADD]).run()
    by_navigation(test, "bench")
    assert (address(test, "run"), test.selectbox(key="op").value) == (ADD, "add")
    assert by_navigation(test, "roofline").multiselect(key="chosen_runs").value == [MATMUL, ADD]


def test_runs_that_nobody_chose_are_not_opened_by_bench(bench: Bench) -> None:
    test = by_navigation(open_page({}, "roofline"), "bench")
    assert address(test, "run") is None
    assert "an example, not a measurement of this machine" in words(test)


def test_the_boxes_of_compare_and_roofline_follow_the_back_button(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "STALE_S", 0.0)
    test = open_page({"a": MATMUL, "b": ADD}, "compare")
    test.selectbox(key="b").set_value(SOFTMAX).run()
    assert address(test, "b") == SOFTMAX
    test.query_params.update({"a": MATMUL, "b": ADD})
    test.run()
    assert (test.selectbox(key="a").value, test.selectbox(key="b").value) == (MATMUL, ADD)
    assert address(test, "b") == ADD
    test = open_page({"runs": MATMUL}, "roofline")
    test.multiselect(key="chosen_runs").set_value([MATMUL, ADD]).run()
    test.query_params["runs"] = MATMUL
    test.run()
    assert test.multiselect(key="chosen_runs").value == [MATMUL]


def test_the_form_says_in_what_it_differs_from_the_run_and_takes_its_plan_over(bench: Bench) -> None:
    test = open_page({"run": SOFTMAX})
    assert "Differs from the run shown" not in words(test)
    assert f"of its {len(bench.load(SOFTMAX).plan.variants)} variants, which cannot run here" in words(test)
    before = test.text_input(key="size_softmax_n").value
    test.text_input(key="size_softmax_n").set_value("64").run()
    test.button_group(key="variants").set_value(["torch_eager"]).run()
    assert "Differs from the run shown: sizes, variants" in words(test)
    test.button(key="take_over").click().run()
    assert test.text_input(key="size_softmax_n").value == before
    assert "Differs from the run shown" not in words(test)
    test.selectbox(key="op").set_value("add").run()
    assert "Differs from the run shown: op" in words(test)
