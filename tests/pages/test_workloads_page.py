"""The page Workloads, run by AppTest: empty, results, comparison, failures, a pair of processes, and the page History."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as runs
import sample_workloads as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.core.workload import WorkloadEnded, WorkloadProgress
from kernelviz.store import Store
from kernelviz.text.workloads import describe_progress

PLUGIN = str(Path(__file__).parents[1] / "planted_workload.py")


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The use cases with the planted workloads, as the pages get them."""
    monkeypatch.setenv("KERNELVIZ_WORKLOADS", PLUGIN)
    made = Bench(Store.open(tmp_path), (runs.CPU,), lock_directory=tmp_path)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    yield made
    made.close()


def opened(**params: str) -> AppTest:
    return open_page(params, "workloads")


def said(test: AppTest) -> str:
    texts = (str(e.value) for kind in ("markdown", "caption", "info", "warning", "error") for e in getattr(test, kind))
    return "\n".join(texts).replace("\\", "")


def test_without_a_run_the_form_says_what_can_be_measured(planted: Bench) -> None:
    test = opened(workload="planted", budget="nan")
    assert not test.exception
    assert test.number_input(key="workload_budget_planted").value == 0.05, (
        "an address that says no number changes nothing"
    )
    text = said(test)
    assert "No run of Planted steps yet" in text
    assert "on_gpu: needs CUDA" in text
    assert "It sleeps, so it says nothing about work." in text
    assert not test.button(key="measure_workload").disabled
    test.text_input(key="workload_planted_small_work").set_value("many").run()
    assert not test.exception
    assert "work: 'many' cannot be used" in said(test)
    assert not [b for b in test.button if b.key == "measure_workload"]
    assert test.query_params["set_work"] in ("many", ["many"]), "nothing typed is lost"


def test_a_press_measures_and_the_page_shows_it(planted: Bench) -> None:
    test = opened(workload="planted")
    test.button(key="measure_workload").click().run()
    (run,) = planted.workloads.find()
    assert isinstance([event for _, event in planted.workloads.follow(run.id)][-1], WorkloadEnded)
    test.run()
    assert not test.exception
    assert test.query_params["of_run"] in (run.id, [run.id])
    assert " in Step" in said(test), "on a busy machine the planted gain may not clear the noise floor"


def test_a_run_shows_its_sentence_chart_ladder_and_failures(planted: Bench) -> None:
    planted.workloads.add(samples.run(times_s={"slow": 2e-3, "fast": 1e-3, "raises": 1e-3}, failing=("raises",)))
    test = opened(of_run="w-sample")
    text = said(test)
    assert "fast is best in Step at work 2: 2.00" in text
    assert "2 cases failed" in text
    assert "AMD EPYC 9654, 2 hardware threads" in text
    assert "it is never on a roofline" in text
    table = test.dataframe[0].value
    assert list(table["Variant"]) == ["slow *", "fast", "raises"] * 2
    assert list(table["Verdict"])[1:3] == ["better", "✕ crashed"]
    assert table["Gain"][1].startswith("2.0")
    (chart,) = charts(test)
    assert [trace["name"] for trace in chart.figure["data"]] == ["slow *", "fast", "raises"]
    assert "<b>planted</b> *failure*" in [code.value for code in test.code], (
        "text of another program is not interpreted"
    )
    test.selectbox(key="figure").select("rate").run()
    assert test.query_params["figure"] in ("rate", ["rate"])
    assert "Rate" in charts(test)[0].figure["layout"]["xaxis"]["title"]["text"]


def test_two_processes_are_labelled_and_two_hosts_are_not_simulated(planted: Bench) -> None:
    planted.workloads.add(samples.of_pair())
    text = said(opened(of_run="w-pair"))
    assert text.count("Mechanics only") >= 2
    assert "needs two hosts" in text
    (chart,) = charts(opened(of_run="w-pair"))
    assert chart.figure["layout"]["xaxis"]["ticktext"] == ["1 KiB", "4 KiB", "1 MiB"]


def test_the_figure_of_lines_is_chosen_with_the_headline_among_them(planted: Bench) -> None:
    test = opened(of_run="w-h200-all-reduce")
    box = test.selectbox(key="figure")
    assert "Bus bandwidth" in charts(test)[0].figure["layout"]["yaxis"]["title"]["text"]
    assert box.value == "bus_bytes_per_s"
    box.select("time_s").run()
    assert not test.exception
    assert charts(test)[0].figure["layout"]["yaxis"]["title"]["text"].startswith("Time, ")


def test_two_runs_and_two_variants_are_compared(planted: Bench) -> None:
    planted.workloads.add(samples.run())
    planted.workloads.add(samples.run(id="w-b", seed=5, times_s={"slow": 2e-3, "fast": 2e-3}))
    test = opened(of_run="w-b", view="compare", a="w-sample")
    assert "4 cases: 2 worse, 2 the same" in said(test)
    test.selectbox(key="a").select("w-b").run()
    assert not test.exception
    assert "B compared with A in Step, 2 cases: 2 the same" in said(test)


def test_a_cancelled_run_can_be_resumed_and_a_missing_one_is_named(planted: Bench) -> None:
    planted.workloads.add(samples.run(missing=("fast",), status="cancelled"))
    test = opened(of_run="w-sample")
    assert "This run was **cancelled**; 2 of 4 cases are left" in said(test)
    test.button(key="resume_workload").click().run()
    assert not test.exception
    assert not test.error
    for _ in planted.workloads.follow("w-sample"):
        pass
    run = planted.workloads.load("w-sample")
    assert run.status == "finished"
    assert not any(result.failure for result in run.results)
    assert "No run **w-none** of a workload on this server" in said(opened(of_run="w-none"))


@pytest.mark.parametrize("parameter", ["of_run", "run"])
def test_an_unknown_run_shows_no_other_run_and_keeps_the_address(planted: Bench, parameter: str) -> None:
    planted.workloads.add(samples.run())
    test = opened(**{parameter: "w-none"})
    text = said(test)
    assert "No run **w-none** of a workload on this server" in text
    assert "kernelviz workloads export RUN -o FILE" in text
    assert "fast is best" not in text
    assert not test.dataframe
    assert test.query_params["of_run"] in ("w-none", ["w-none"])
    test.selectbox(key="workload_run_instead").select("w-sample").run()
    assert not test.exception
    assert "fast is best" in said(test)
    assert test.query_params["of_run"] in ("w-sample", ["w-sample"])


def test_lists_say_mechanics_only_and_the_form_how_long_the_last_run_took(
    planted: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.workloads.add(samples.of_pair())
    planted.workloads.add(samples.run())
    found = {run.id: run.mechanics_only for run in planted.workloads.find()}
    assert found == {"w-pair": True, "w-sample": False}
    assert "mechanics only" in said(open_page({"lists": "workloads"}, "history"))
    assert planted.workloads.last_duration("planted", ("cpu",)) is None, "its results have the moment of its beginning"
    run = samples.run(id="w-later")
    later = tuple(msgspec.structs.replace(r, measured_at="2026-11-27T10:00:42+00:00") for r in run.results)
    planted.workloads.add(msgspec.structs.replace(run, results=later))
    took = planted.workloads.last_duration("planted", ("cpu",))
    assert took is not None
    assert (took.seconds, took.cases) == (42.0, 4)
    with monkeypatch.context() as patch:
        patch.setattr(planted.workloads, "load", lambda run_id: pytest.fail("a redraw of the form reads no run again"))
        assert planted.workloads.last_duration("planted", ("cpu",)) == took
    planted.workloads.delete("w-later")
    assert planted.workloads.last_duration("planted", ("cpu",)) is None
    planted.workloads.restore("w-later")
    assert "The last run here took 42 s for 4 cases" in said(opened(workload="planted"))


def test_an_unknown_parameter_is_named_and_axes_of_another_workload_are_removed(planted: Bench) -> None:
    planted.workloads.add(samples.run())
    test = opened(of_run="w-sample", foo="1", set_bytes="1024", set_work="7")
    assert "In the address, 'foo' is ignored: this page knows workload, of_run, view, " in said(test)
    assert "set_work" in test.query_params
    assert "set_bytes" not in test.query_params
    assert "is ignored" not in said(opened(of_run="w-sample", view="compare"))


def test_progress_names_axes_as_the_form_does() -> None:
    run = samples.run()
    now = WorkloadProgress(step="measuring", variant="fast", point=run.plan.cases[0].point)
    assert str(describe_progress(now, run)) == "measuring fast (work 1)"


def test_history_lists_names_deletes_and_restores(planted: Bench) -> None:
    planted.workloads.add(samples.run())
    test = open_page({"lists": "workloads", "run": "w-sample"}, "history")
    assert "4 of 4 cases" in said(test)
    test.text_input(key="title_w-sample").set_value("another title")
    next(b for b in test.button if b.label == "Save").click().run()
    assert planted.workloads.summary("w-sample").title == "another title"
    test.button(key="delete_w-sample").click().run()
    assert not planted.workloads.count()
    test.run()
    test.button(key="restore_w-sample").click().run()
    assert planted.workloads.count() == 1
    assert not test.exception


def test_without_any_workload_the_page_says_what_to_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(bench.workloads), "declared", lambda self, plugins=(): {})
    assert "No workload is installed" in said(opened())
    bench.workloads.add(samples.run())
    assert "not installed here" in said(opened(of_run="w-sample"))


def test_the_bars_are_those_of_the_point_that_the_sentence_names(bench: Bench) -> None:
    test = opened(workload="gradient_sync", of_run="w-h200-gradient-sync")
    assert "at planted delay 0 µs" in said(test)
    assert test.selectbox(key="at").value == "gradient_sync blocks=32 width=1024 batch=4096 delay_us=0"
