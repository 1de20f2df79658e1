"""The Bench page's tab Inspect: a look is asked for, followed, and read."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_inspections as inspections
import sample_runs as samples
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.core.errors import BadField
from kernelviz.core.events import CaseStep
from kernelviz.core.inspection import MemoryState
from kernelviz.core.run import Run
from kernelviz.text.inspection import MOMENTS, describe_unknown_memory
from kernelviz.ui.shared import callbacks

WRONG = "triton_block_per_row"
FAULTS = {WRONG: ("wrong", "4800 elements"), "torch_compile": ("crash", "the worker was ended by SIGSEGV <b>")}
Open = Callable[..., AppTest]


def run_with_a_wrong_one() -> Run:
    made = [r for r in samples.run().results if r.variant != WRONG]
    for problem in samples.run().plan.problems:
        made.append(samples.failed(problem, WRONG, "wrong"))
        made.append(samples.failed(problem, "triton_nowhere", "unavailable"))
    return samples.run(made)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(
        run: Run | None = None, *, devices: tuple[samples.Device, ...] = (samples.H200, samples.CPU), case_s: float = 0.0,
        state: dict[str, object] | None = None, **params: str,
    ) -> AppTest:  # fmt: skip
        found = run or run_with_a_wrong_one()
        made = RehearsedBench(devices, roofs=samples.H200_ROOFS, stored=(found,), faults=FAULTS, case_s=case_s)  # type: ignore[arg-type]
        monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
        return open_page({"run": found.id, **params}, state={"tables": "Inspect", **(state or {})})

    return opened


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "error", "warning", "code")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind)).replace("\\", "")


def chart_keys(test: AppTest) -> list[str]:
    return [c.key for c in charts(test)]


def pressed(test: AppTest) -> AppTest:
    test.button(key="inspect_now").click().run()
    assert not test.exception, test.exception
    return test


def test_nothing_was_looked_at_yet_and_the_wrong_variant_is_the_first_choice(page: Open) -> None:
    test = page()
    assert test.selectbox(key="inspect").value == WRONG
    assert "✕ triton block per row" in test.selectbox(key="inspect").options
    assert "This case was not inspected yet. Press **Inspect**." in words(test)
    assert test.button(key="inspect_now").label == "Inspect"
    assert not any(c.startswith("map_") for c in chart_keys(test))
    assert "inspect" not in test.query_params


def test_a_variant_that_comes_out_wrong_later_is_the_choice_until_somebody_chooses(
    page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "STALE_S", 0.0)
    whole, names = run_with_a_wrong_one(), run_with_a_wrong_one().plan.variants
    early = msgspec.structs.replace(whole, results=tuple(r for r in whole.results if r.variant != WRONG))
    test = page(early)
    assert test.selectbox(key="inspect").value == names[0]
    kernelviz.bench.current()._entry(early.id).document = whole  # type: ignore[attr-defined]
    assert test.run().selectbox(key="inspect").value == WRONG
    test.selectbox(key="inspect").select(names[0]).run()
    assert test.run().selectbox(key="inspect").value == names[0]


def test_a_wrong_variant_shows_where_and_by_how_much(page: Open) -> None:
    test = pressed(page())
    assert "✕ wrong with inputs of fill 2: leaves output unwritten" in words(test)
    assert "every element there is wrong" in words(test)
    assert test.button(key="inspect_now").label == "Inspect again"
    assert [c for c in chart_keys(test) if "y_MN" in c or "inspect" in c] == [
        "map_y_MN",
        "errors_y_MN",
        "inspect_values",
    ]
    tensors = next(d.value for d in test.dataframe if "Strides" in d.value)
    assert list(tensors["Tensor"]) == ["x_MN", "w_N", "y_MN"]
    assert list(tensors["Role"]) == ["input", "input", "output"]
    assert tensors["Min"].iloc[0] == -4.25
    worst = next(d.value for d in test.dataframe if "|Error| / allowed" in d.value)
    assert list(worst["Got"]) == ["never written", "0.25"]
    assert list(worst["|Error| / allowed"]) == ["beyond any bound", "12.5"]


def test_a_right_variant_says_so_and_lists_what_is_nearest_to_the_bound(page: Open) -> None:
    test = pressed(page(inspect="torch_eager"))
    assert "✓ right: every element of every output lies inside the bound" in words(test)
    assert "closest to the tolerance" in words(test)


def test_the_choice_is_kept_in_the_address_and_what_was_found_stays(page: Open) -> None:
    test = page()
    test.selectbox(key="inspect").set_value("torch_eager").run()
    assert test.query_params["inspect"] == "torch_eager"
    pressed(test)
    test.selectbox(key="inspect").set_value(WRONG).run()
    assert "inspect" not in test.query_params
    assert "This case was not inspected yet" in words(test)
    test.selectbox(key="inspect").set_value("torch_eager").run()
    assert "✓ right" in words(test)
    again = page(inspect="torch_egaer")
    assert again.selectbox(key="inspect").value == "torch_eager"
    assert "'torch_egaer' is not among" in words(again)


def test_the_values_of_another_tensor_can_be_seen(page: Open) -> None:
    test = pressed(page(values="x_MN"))
    assert test.segmented_control(key="values").value == "x_MN"
    test.segmented_control(key="values").set_value("w_N").run()
    assert test.query_params["values"] == "w_N"
    assert not test.exception


def test_a_look_that_goes_on_can_be_cancelled(page: Open) -> None:
    test = pressed(page(case_s=30.0))
    assert test.button(key="inspect_now").disabled
    assert "Inspecting triton block per row at" in words(test)
    test.button(key="cancel_inspection").click().run()
    assert not test.exception
    bench: Bench = kernelviz.bench.current()
    job = next(iter(test.session_state["actions"].activities.values()))
    list(bench.follow(job, timeout_s=20))
    test.run()
    assert "The inspection was cancelled." in words(test)
    assert not test.button(key="inspect_now").disabled


def test_a_call_that_breaks_down_shows_its_last_words_as_they_are(page: Open) -> None:
    test = pressed(page(inspect="torch_compile"))
    assert "The inspection failed." in words(test)
    assert any("SIGSEGV <b>" in c.value for c in test.code)


def test_what_cannot_run_here_says_why_and_offers_nothing(page: Open) -> None:
    test = page(inspect="triton_nowhere")
    assert test.button(key="inspect_now").disabled
    assert "This variant cannot run on this machine" in words(test)


def test_a_look_that_cannot_be_begun_says_why(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    test = page()

    def refused(*given: object, **named: object) -> str:
        raise BadField("plug-in", "/gone.py", "there is no such file")

    monkeypatch.setattr(kernelviz.bench.current(), "inspect", refused)
    pressed(test)
    assert "This case could not be inspected:" in words(test)
    assert "there is no such file" in words(test)


def test_a_run_of_another_machine_cannot_be_looked_at(page: Open) -> None:
    test = page(devices=(samples.CPU,))
    assert "measured on NVIDIA H200, which is not in this machine" in words(test)
    assert all(b.key != "inspect_now" for b in test.button)


def test_facts_of_another_source_are_marked(page: Open) -> None:
    said = "source of the variant differs between this inspection and this run"
    assert said not in words(pressed(page(inspect="torch_eager")))
    older = [msgspec.structs.replace(r, source_digest="of last week") for r in samples.run().results]
    assert said in words(pressed(page(samples.run(older), inspect="torch_eager")))


def test_a_step_of_the_look_is_an_event_like_any_other() -> None:
    """What the live line shows while it goes on."""
    bench = RehearsedBench()
    job = bench.inspect(inspections.PROBLEM, "torch_eager", "cpu")
    events = [event for _, event in bench.follow(job, timeout_s=20)]
    assert isinstance(events[0], CaseStep)
    assert events[0].fraction == 0.25


def test_allocated_and_reserved_memory_is_shown_and_unknown_is_said(
    page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = pressed(page())
    memory = next(d.value for d in test.dataframe if "Reserved" in d.value)
    assert list(memory["When"]) == [str(text) for text in MOMENTS.values()]
    assert list(memory["Allocated"]) == ["1.00 GiB", *["1.00 GiB"] * 4]
    assert set(memory["Reserved"]) == {"2.00 GiB"}
    assert "Memory is unknown" not in words(test)
    for memory_of_case, said in (
        ((), "by a version that did not read it"),
        (tuple(MemoryState(moment=moment) for moment in MOMENTS), "on GPUs only"),
    ):
        made = msgspec.structs.replace(inspections.right(), memory=memory_of_case)
        assert said in str(describe_unknown_memory(made))
    monkeypatch.setattr(inspections, "_memory", lambda device: ())
    assert "did not read it" in words(pressed(page()))
