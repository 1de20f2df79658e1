"""The page Autotune by AppTest: its empty state, the form, each part of a tuning, a running and a cancelled one, and other
tools."""

from __future__ import annotations

from pathlib import Path

import msgspec
import peers
import pytest
import sample_runs as samples
import sample_tunings as tunings
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.core.events import RunEnded
from kernelviz.ops import with_plugins

PLUGIN = str(Path(__file__).parents[1] / "planted_tuning.py")
PARTS = ("overview", "parameters", "registers", "configurations", "shapes")


def opened(**params: str) -> AppTest:
    return open_page(params, "autotune")


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info", "success", "text")
    said = (str(e.value) for kind in kinds for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


@pytest.fixture
def stored(bench: Bench) -> Bench:
    """A store with a tuning of 144 configurations and three tuned shapes."""
    bench.history.add(tunings.run())
    made, runs = tunings.shapes()
    for run in runs.values():
        bench.history.add(run)
    for tuning in made:
        bench._store.tunings.put(tuning)
    return bench


def test_a_first_visit_without_a_gpu_shows_a_recorded_tuning(bench: Bench) -> None:
    test = opened()
    assert test.segmented_control(key="autotune_mode").value == "results"
    assert "A recorded tuning, to show the page without a GPU. Measured by kernelviz on NVIDIA H200" in words(test)
    assert "500 of 500 planned configurations have a result" in words(test)
    assert [c.key for c in charts(test)] == ["autotune_scatter", "autotune_progress_chart"]
    assert "Stored tunings (0)" in [e.label for e in test.expander]
    for part in PARTS:
        assert not opened(run=bench.tunings.shipped()[0], autotune_view=part).exception
    test = opened(run=bench.tunings.shipped()[0])
    test.segmented_control(key="autotune_mode").set_value("new").run()
    assert not test.exception
    said = words(test)
    assert "Nothing can be tuned on" in said
    assert "matmul" in said.split("Nothing can be tuned on")[1].split("\n")[0], "the ops are named"
    assert "cannot run on" in said, "every variant with parameters needs a GPU"
    assert not [b for b in test.button if b.key == "autotune_start"]
    assert (param(test, "op"), param(test, "variant")) == ("add", "triton_tuned")
    (recorded,) = (b for b in test.button if (b.key or "").startswith("autotune_recorded"))
    recorded.click().run()
    assert param(test, "run") == bench.tunings.shipped()[0]
    assert bench.tunings.shipped()[0] not in [run.id for run in bench.history.shipped()], "no run of the gallery"


def test_every_part_of_a_tuning_can_be_opened_by_its_address(stored: Bench) -> None:
    drawn = {}
    for part in PARTS:
        test = opened(run="tuning-1", autotune_view=part)
        said = words(test)
        assert "**Best: block=2048, warps=2, parts=1, 206.4 µs, 1.786× faster than the default (1.785–1.787)." in said
        assert "30 have no time, 6 of them wrong." in said
        drawn[part] = [c.key for c in charts(test)]
        assert param(test, "run") == "tuning-1"
    assert drawn == {
        "overview": ["autotune_scatter", "autotune_progress_chart", "autotune_reasons"],
        "parameters": ["autotune_shares", "autotune_parallel"],
        "registers": ["autotune_registers"],
        "configurations": [],
        "shapes": ["autotune_matrix"],
    }


def test_the_overview_shows_failures_as_text_and_another_parameter(stored: Bench) -> None:
    test = opened(run="tuning-1", parameter="warps")
    scatter = next(c for c in charts(test) if c.key == "autotune_scatter")
    assert scatter.figure["layout"]["xaxis"]["ticktext"] == ["1", "2", "4", "8", "16", "32"]
    assert "OutOfResources: out of resource: shared memory" in words(test)
    test.segmented_control(key="along").set_value("time").run()
    assert not test.exception
    assert param(test, "along") == "time"


def test_all_configurations_are_in_the_table_the_best_first(stored: Bench) -> None:
    test = opened(run="tuning-1", autotune_view="configurations")
    table = test.dataframe[0].value
    assert len(table) == 144
    assert table["Result"][0] == "correct, best"
    assert table["Time"].str.startswith("–").sum() == 30
    assert "kernelviz tunings show tuning-1" in words(test)


def test_the_matrix_of_shapes_says_what_nobody_measured(stored: Bench) -> None:
    test = opened(run="tuned-67108864", autotune_view="shapes")
    said = words(test)
    assert "takes 1.50× the time at n = 67,108,864, the worst transfer. 1 of 6 pairs is not measured." in said
    assert "Missing pairs can be measured on NVIDIA H200, which is not here." in said
    assert [c.key for c in charts(test)] == ["autotune_matrix"]


def test_a_stored_tuning_opens_its_run_and_can_be_forgotten(stored: Bench) -> None:
    test = opened()
    assert len(stored.tunings.find()) == 3
    assert "Stored tunings (3)" in [e.label for e in test.expander]
    key = "|".join(stored.tunings.find()[1].tuning.key)
    test.selectbox(key="autotune_stored_one").set_value(key).run()
    test.button(key="autotune_open_stored").click().run()
    assert not test.exception
    assert param(test, "run") == stored.tunings.find()[1].tuning.run_id
    test.button(key="autotune_forget").click().run()
    assert len(stored.tunings.find()) == 2


def test_an_imported_cache_is_shown_as_not_checked(bench: Bench) -> None:
    (run_id,) = bench.history.take_in_all(peers.kernel_tuner("mixed"))
    for part in PARTS:
        test = opened(run=run_id, autotune_view=part)
        assert "nobody checked the results here" in words(test)
        assert not [b for b in test.button if b.key in ("autotune_resume", "autotune_keep")]
    on_bench = open_page({"run": run_id})
    assert "Open on Autotune" in [link.proto.label for link in on_bench.get("page_link")]
    assert "its file does not say which code was measured" in words(test)
    assert "is not compared" in words(test)


def test_what_is_no_tuning_or_not_here_is_named(bench: Bench) -> None:
    assert "No run **nosuch** on this server" in words(opened(run="nosuch"))
    bench.history.add(samples.run(id="plain", title="no tuning"))
    said = words(opened(run="plain"))
    assert "The run **no tuning** is no tuning" in said
    test = opened(op="nosuch")
    assert "op 'nosuch' is not known here: showing add" in words(test)


def test_a_tuning_is_started_followed_cancelled_and_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a bench that plays results: what the page does, not what a worker does."""
    planted = with_plugins((PLUGIN,))

    class Tuning(RehearsedBench):
        def tuning(self, request, *, configurations=None, seed=0):  # type: ignore[no-untyped-def]
            from kernelviz.bench.tunings import tuning_plan

            return tuning_plan(self.plan(request), planted[request.op], configurations, seed)

    faults = {"in_blocks[block=32,way=0]": ("crash", "<b>gone</b>")}
    bench = Tuning((samples.CPU,), case_s=0.15, ops=lambda: planted, faults=faults)  # type: ignore[arg-type]
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    test = opened(op="add", variant="in_blocks", size_n="2048", configurations="8", seed="3", early_stop="no")
    assert "8 of 28 configurations that make sense at this size, drawn with seed 3" in words(test)
    assert "--configurations 8 --seed 3 --budget-s 0.05 --no-early-stop" in test.code[0].value
    test.button(key="autotune_start").click().run()
    assert not test.exception
    run_id = param(test, "run")
    assert run_id is not None
    assert param(test, "op") is None, "the address names the run now"
    assert [b for b in test.button if b.key == "cancel_autotune"]
    assert bench.load(run_id).method.stop_factor is None
    test.button(key="cancel_autotune").click().run()
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, timeout_s=20))
    test.run()
    assert "This tuning was cancelled" in words(test)
    test.button(key="autotune_resume").click().run()
    for _ in range(2):
        assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, timeout_s=20))
    bench.close()


def test_a_cancelled_tuning_can_store_its_best_so_far(bench: Bench) -> None:
    run = tunings.run()
    device = bench.device("cpu")
    environment = msgspec.structs.replace(run.environment, device=device)
    cancelled = msgspec.structs.replace(
        run, id="cut", status="cancelled", results=run.results[:60], environment=environment,
        plan=msgspec.structs.replace(run.plan, device="cpu"),
    )  # fmt: skip
    bench.history.add(cancelled)
    test = opened(run="cut")
    assert "60 of 144 configurations have a result, and none is stored for later runs yet" in words(test)
    test.button(key="autotune_keep").click().run()
    assert not test.exception
    assert "uses block=" in words(test)
    assert "the best so far is stored for later runs" in words(test), "no two sentences contradict each other"
    (kept,) = bench.tunings.find()
    assert kept.tuning.run_id == "cut"
