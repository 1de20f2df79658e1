"""The Bench page, run by AppTest from the real entry script over a rehearsed bench."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sample_runs as samples
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core.events import RunEnded
from kernelviz.core.notices import Notice
from kernelviz.core.run import Run
from kernelviz.formats.offline import selection

Open = Callable[..., AppTest]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(bench: RehearsedBench | None = None, **params: str) -> AppTest:
        made = bench or RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
        monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
        return open_page(params)

    return opened


def _words(test: AppTest) -> str:
    return "\n".join(
        str(e.value) for kind in ("markdown", "caption", "warning", "error", "text") for e in getattr(test, kind)
    )


def _finish(bench: RehearsedBench, run_id: str) -> None:
    """Wait for the end of the run as a browser does: by its events."""
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, timeout_s=20))


def test_a_first_visit_explains_and_one_click_gives_results(page: Open) -> None:
    bench = RehearsedBench()
    test = page(bench)
    assert "measures variants of a GPU or CPU kernel on this machine" in _words(test)
    assert test.button_group(key="variants").value == ["composite_eager", "torch_eager", "torch_compile"]
    test.button(key="first_run").click().run()
    run_id = test.query_params["run"]
    _finish(bench, run_id)
    test.run()
    assert not test.exception
    assert [m.label for m in test.metric] == [
        "Best overall",
        "Most wins",
        "Speed-up over torch eager",
        "Share of the measured roof",
        "Worst size",
    ]
    assert [m.value for m in test.metric][:2] == ["torch compile"] * 2
    assert test.metric[2].value.endswith("×")
    assert test.metric[3].value == "unknown"
    assert len(charts(test)) == 3


def test_what_cannot_run_here_is_shown_with_its_reason_and_cannot_be_picked(page: Open) -> None:
    test = page(RehearsedBench())
    assert "triton persistent" not in test.button_group(key="variants").options
    words = _words(test)
    assert "triton persistent" in words
    assert "needs an NVIDIA GPU" in words


def test_a_link_reopens_its_plan_and_the_address_holds_every_field(page: Open) -> None:
    test = page(op="add", variants="torch_eager,cuda_vec16", dtype="bf16", n="2^20,2^21", budget="0.5")
    assert test.selectbox(key="op").value == "add"
    assert test.button_group(key="variants").value == ["torch_eager", "cuda_vec16"]
    assert test.text_input(key="size_add_n").value == "2^20,2^21"
    assert test.number_input(key="budget").value == 0.5
    assert dict(test.query_params) == {
        "op": "add",
        "variants": "torch_eager,cuda_vec16",
        "dtype": "bf16",
        "n": "2^20,2^21",
        "budget": "0.5",
        "clock": "burst",
        "energy": "no",
        "data": "normal",
        "baseline": "torch_eager",
        "device": "cuda:0",
    }
    again = page(**dict(test.query_params))
    assert again.button_group(key="variants").value == ["torch_eager", "cuda_vec16"]
    assert again.text_input(key="size_add_n").value == "2^20,2^21"
    assert dict(again.query_params) == dict(test.query_params)


def test_a_wrong_op_is_named_with_the_nearest_and_the_rest_is_kept(page: Open) -> None:
    test = page(op="rmsnrom", dtype="fp16")
    assert "rmsnrom" in test.warning[0].value
    assert "Using rmsnorm instead" in test.warning[0].value.replace("\\", "")
    assert test.selectbox(key="op").value == "rmsnorm"
    assert test.selectbox(key="dtype").value == "fp16"


def test_another_op_changes_variants_sizes_and_address(page: Open) -> None:
    test = page()
    test.selectbox(key="op").set_value("matmul").run()
    assert not test.exception
    assert test.query_params["op"] == "matmul"
    assert {"m", "n", "k"} <= set(test.query_params)
    test.selectbox(key="dtype").set_value("fp32").run()
    assert test.selectbox(key="compute").value == "ieee"
    assert test.query_params["compute"] == "ieee"


@pytest.mark.parametrize("how", ["values", "preset"])
def test_sizes_by_values_or_by_a_models_preset(page: Open, how: str) -> None:
    test = page(op="matmul")
    test.segmented_control(key="sizes_from").set_value(how).run()
    assert not test.exception
    if how == "preset":
        assert test.query_params["preset"] == test.selectbox(key="preset").value
    else:
        assert test.text_input(key="size_matmul_m").value.isdigit()


def test_a_size_that_cannot_be_read_disables_run_and_says_how_to_write_it(page: Open) -> None:
    test = page(op="add")
    test.text_input(key="size_add_n").set_value("2^^3").run()
    assert test.button(key="run").disabled
    assert test.error[0].value.replace("\\", "") == "Size n: '2^^3' cannot be used"
    # How to write it stands below the field, which a long sentence at the button would cover on a phone.
    (remedy,) = (c.value for c in test.caption if "whole number" in c.value)
    assert "2^10..2^24" in remedy.replace("\\", "")
    test.text_input(key="size_add_n").set_value("4096").run()
    assert not test.button(key="run").disabled


def test_no_variant_disables_run(page: Open) -> None:
    test = page()
    test.button_group(key="variants").set_value([]).run()
    assert not test.exception
    assert test.button(key="run").disabled


def test_the_page_says_how_much_will_be_measured(page: Open) -> None:
    case = {"op": "add", "variants": "torch_eager,cuda_vec16", "n": "1024,2048", "budget": "0.5"}
    cold = "4 cases · up to about 2 s for cold times on a quiet machine, plus"
    assert f"{cold} other times, compiling and checking · next in the queue" in _words(page(**case))
    assert f"{cold} compiling and checking · next in the queue" in _words(page(**case, untrusted="yes"))


def test_a_stored_run_is_shown_with_its_plan_on_the_form(page: Open) -> None:
    test = page(RehearsedBench((samples.H200,), stored=(samples.run(id="kept"),)), run="kept")
    assert [m.value for m in test.metric] == [
        "triton persistent",
        "triton persistent",
        "1.59×",
        "95 %",
        "m = 16,384, n = 8,192",
    ]
    assert test.text_input(key="size_rmsnorm_n").value == "2^10..2^15"
    assert test.query_params["run"] == "kept"


def test_changing_the_plan_keeps_the_run_on_the_page(page: Open) -> None:
    test = page(RehearsedBench((samples.H200,), stored=(samples.run(id="kept"),)), run="kept")
    test.selectbox(key="dtype").set_value("fp32").run()
    assert test.query_params["run"] == "kept"
    assert test.query_params["dtype"] == "fp32"
    assert test.metric[0].value == "triton persistent"


def test_wrong_and_failed_cases_are_marked_and_their_words_are_not_markup(page: Open) -> None:
    test = page(RehearsedBench((samples.H200,), stored=(samples.mixed(),)), run="mixed")
    assert test.metric[0].value == "torch compile"
    words = _words(test)
    assert "triton block per row" in words
    assert "computed a wrong result. It is marked below and excluded" in words
    assert "impossible time" not in words, "this one was not reported"
    assert "<b>too much" not in words
    table = test.dataframe[0].value
    wrong = table[table["Variant"] == "triton block per row"]
    assert wrong["Cold time, µs"].isna().all()
    assert (wrong["Versus torch eager"] == "not compared").all()
    assert wrong["Result"].str.startswith("✕ wrong result").all()
    test.session_state["tables"] = "Failures"  # whose name holds the count, which grows while a run goes
    test.run()
    assert {c.value for c in test.code} >= {"ptxas fatal: <b>too much</b> shared memory"}


def test_every_time_in_the_table_is_the_stored_one(page: Open) -> None:
    run = samples.run(id="kept")
    table = page(RehearsedBench((samples.H200,), stored=(run,)), run="kept").dataframe[0].value
    stored = [r.timing.device_cold_s.estimate * 1e6 for r in run.results if r.timing and r.timing.device_cold_s]
    assert list(table["Cold time, µs"]) == pytest.approx(stored)
    assert (table[table["Variant"] == "torch eager"]["Versus torch eager"] == "baseline").all()
    assert table[table["Variant"] == "composite eager"]["Versus torch eager"].str.startswith("▼").all()


def test_an_unknown_run_gets_a_page_that_says_where_runs_live(page: Open) -> None:
    test = page(run="nope")
    words = _words(test)
    assert "This run is not on this server" in [s.value for s in test.subheader]
    assert "database of the machine that measured it" in words
    assert not test.metric


def test_a_run_in_hand_can_be_cancelled_and_keeps_what_it_has(page: Open) -> None:
    bench = RehearsedBench(compile_s=600.0)
    test = page(bench, op="rmsnorm", m="64", n="64")
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    for _, event in bench.follow(run_id, timeout_s=20):
        if getattr(event, "step", "") == "compiling":
            break
    test.run()
    assert test.metric[0].value == "torch eager"
    test.button(key="cancel").click().run()
    _finish(bench, run_id)
    test.run()
    assert not [b for b in test.button if b.key == "cancel"]
    assert bench.load(run_id).status == "cancelled"
    assert test.metric[0].value == "torch eager"
    bench.compile_s = 0.0
    after = bench.progress(run_id).sequence
    test.button(key="resume").click().run()
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, after, timeout_s=20))
    test.run()
    assert test.metric[0].value == "torch compile"
    assert bench.load(run_id).status == "finished"


def test_a_cancelled_sweep_shows_the_last_size_that_has_a_time(page: Open) -> None:
    whole = samples.run(op="add", sizes=tuple({"n": 2**e} for e in (12, 14, 16)), dtype="fp32")
    *measured, last = whole.plan.problems
    kept = [r for r in whole.results if r.problem != last]
    kept += [samples.failed(last, v, "cancelled") for v in whole.plan.variants]
    run = samples.run(kept, id="kept", op="add", sizes=tuple(p.sizes for p in whole.plan.problems), dtype="fp32")
    test = page(RehearsedBench((samples.H200,), stored=(run,)), run="kept")
    assert test.selectbox(key="at").value == str(measured[-1].sizes["n"])
    assert "at" not in test.query_params


def test_without_event_streams_the_page_asks_instead(page: Open) -> None:
    bench = RehearsedBench(compile_s=600.0)
    test = page(bench, op="rmsnorm", m="64", n="64")
    test.session_state["polling"] = True
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    for _, event in bench.follow(run_id, timeout_s=20):
        if getattr(event, "step", "") == "compiling":
            break
    test.run()
    assert not test.exception
    assert "2 of 3 cases done" in test.get("progress")[0].proto.text
    bench.close()


def test_what_ends_while_the_page_is_drawn_is_still_followed(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else would tell the page to draw what was there a moment later."""
    bench = RehearsedBench(compile_s=600.0)
    test = page(bench, op="rmsnorm", m="64", n="64")
    load = bench.load

    def and_ends(run_id: str) -> Run:
        found = load(run_id)
        bench.cancel(run_id)
        _finish(bench, run_id)
        return found

    monkeypatch.setattr(bench, "load", and_ends)
    test.button(key="run").click().run()
    assert bench.progress(test.query_params["run"]).status == "cancelled"
    assert test.button(key="cancel")  # beside the strip that follows it
    test.run()
    assert not [b for b in test.button if b.key == "cancel"]


def test_calibrate_gives_the_roofs_and_the_share(page: Open) -> None:
    bench = RehearsedBench(stored=(samples.run(id="kept", device=samples.CPU, roofs=()),))
    test = page(bench, run="kept")
    assert test.metric[3].value == "unknown"
    test.button(key="calibrate").click().run()
    _finish(bench, "calibration")
    test.run()
    assert test.metric[3].value.endswith("%")
    assert "roofs measured" in _words(test)


def test_a_filter_of_the_view_comes_back_from_the_address(page: Open) -> None:
    stored = RehearsedBench((samples.H200,), stored=(samples.run(id="kept"),))
    test = page(stored, run="kept", show="time", at="65536x2048")
    assert test.segmented_control(key="show").value == "time"
    assert test.selectbox(key="at").value == "65536x2048"
    assert test.query_params["show"] == "time"
    wrong = page(stored, run="kept", show="tiem")
    assert "tiem" in _words(wrong)
    assert wrong.segmented_control(key="show").value == "time"


def test_two_browsers_do_not_share_a_form(page: Open) -> None:
    bench = RehearsedBench()
    tests = [page(bench), page(bench)]
    tests[0].selectbox(key="op").set_value("matmul").run()
    tests[1].run()
    assert tests[1].selectbox(key="op").value == "rmsnorm"


class Hampered(RehearsedBench):
    """A machine that is found wanting."""

    def notices(self, device_id: str) -> tuple[Notice, ...]:
        data = {"folders": ("/cache",), "left_bytes": 5 * 2**20, "variables": ("TRITON_CACHE_DIR",)}
        return (Notice("disk_full", data, "disk"),)


def test_what_hampers_the_device_is_said_with_its_remedy(page: Open) -> None:
    words = _words(page(Hampered()))
    assert "The disk of /cache has 5.00 MiB left" in words
    assert "TRITON\\_CACHE\\_DIR" in words


def test_a_page_of_very_many_cases_shows_a_part_and_says_so(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MOST_ON_BENCH", 10)
    test = page(RehearsedBench((samples.H200,), stored=(samples.mixed(),)), run="mixed")
    assert test.info[0].value.startswith("This page shows 10 of 30 cases: 2 sizes")
    assert len(test.dataframe[0].value) == 10


def test_the_form_chooses_input_data_and_the_length_of_a_sustained_load(page: Open) -> None:
    bench = RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
    test = page(bench, op="matmul", variants="torch_eager", n="256", m="256", k="256", data="outliers", budget="0.05")
    assert test.selectbox(key="data").value == "outliers"
    assert not [n for n in test.number_input if n.key == "load"]
    test.segmented_control(key="clock").set_value("sustained").run()
    assert test.number_input(key="load").value == 1.0
    test.number_input(key="load").set_value(10.0).run()
    test.selectbox(key="data").set_value("zeros").run()
    assert (test.query_params["load"], test.query_params["data"]) == ("10", "zeros")
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    _finish(bench, run_id)
    run = bench.load(run_id)
    assert (run.method.clock, run.method.steady_s) == ("sustained", 10.0)
    assert {p.data for p in run.plan.problems} == {"zeros"}
    test.run()
    assert "zeros data · sustained load, 10 s before each time" in _words(test)
    assert not test.exception
