"""The Bench page with a tuning of 144 configurations, with a tuned variant, and with an op that has a backward pass."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
import sample_runs as samples
import sample_tunings as tunings
from op_with_backward import ops
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.core.configuration import configuration_text, parted
from kernelviz.core.events import RunEnded

Open = Callable[..., AppTest]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(bench: RehearsedBench, **params: str) -> AppTest:
        monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
        return open_page(params)

    return opened


def _words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def test_a_tuning_of_144_configurations_can_be_read(page: Open) -> None:
    bench = RehearsedBench((samples.H200,), stored=(tunings.run(),), roofs=samples.H200_ROOFS, ops=ops)
    test = page(bench, run="tuning-1")
    assert not test.exception
    words = _words(test)
    assert "Charts show the best 10 of 144 variants and the baseline" in words
    table = test.dataframe[0].value
    assert len(table) == 144
    assert table["Configuration"].notna().sum() == 114
    bars = next(c for c in charts(test) if c.key == "bars")
    assert json.dumps(bars.figure).count("triton tuned[block=") < 60, "eleven variants, not 144"
    listed = [line for line in words.splitlines() if "triton tuned[" in line and "µs" in line]
    assert 0 < len(listed) <= 11
    assert "hide" not in test.query_params
    tiles = {m.label: m.value for m in test.metric}
    assert tiles["Best configuration"] == "block=2048, warps=2, parts=1", "as Autotune says"
    assert tiles["Speed-up over the default"] == "1.786×"
    assert "**6 configurations**" not in words, "so few are named"


def test_of_many_wrong_configurations_only_the_number_is_above_the_tiles(page: Open) -> None:
    """And of a tuning in which a single time of the sweep is shorter than the default's, the default stays the best."""
    run = tunings.run()
    names = [r.variant for r in run.results]
    results = [tunings.figure_result(name, 2e-4 * (1.0 if n == 0 else 0.999)) for n, name in enumerate(names)]
    for n in range(20, 53):
        results[n] = samples.failed(tunings.ADD, names[n], "wrong", "the largest error is 4e9 times the allowed one")
    stored = msgspec.structs.replace(run, results=tuple(results))
    test = page(RehearsedBench((samples.H200,), stored=(stored,), ops=ops), run="tuning-1")
    assert not test.exception
    words = _words(test)
    assert "✕ **33 configurations**" in words
    assert "The tab **Failures** names them" in words
    tiles = {m.label: m.value for m in test.metric}
    assert tiles["Best configuration"] == str(configuration_text(parted(names[0])[1] or {}))
    assert tiles["Speed-up over the default"] == "1.00×"


def test_a_result_says_its_configuration(page: Open) -> None:
    run = samples.run(op="add", sizes=({"n": 2**26},), dtype="fp32", shares={"torch_eager": 0.8, "triton_block": 0.9})
    results = tuple(
        msgspec.structs.replace(r, configuration={"block": 256}, tuned_by="r7") if r.variant == "triton_block" else r
        for r in run.results
    )
    stored = msgspec.structs.replace(run, id="tuned", results=results)
    test = page(RehearsedBench((samples.H200,), stored=(stored,), ops=ops), run="tuned")
    assert not test.exception
    assert "tuned: block=256 (run r7)" in _words(test)
    assert test.dataframe[0].value["Configuration"].dropna().tolist() == ["tuned: block=256 (run r7)"]
    plain = page(RehearsedBench((samples.H200,), stored=(samples.run(id="plain"),)), run="plain")
    assert "Configuration" not in plain.dataframe[0].value.columns


def test_the_backward_pass_is_chosen_measured_and_named(page: Open) -> None:
    bench = RehearsedBench((samples.CPU,), ops=ops)
    test = page(bench, op="add")
    assert not test.exception
    assert test.button_group(key="direction").value == "forward"
    test.button_group(key="direction").set_value("backward").run()
    assert test.query_params["direction"] == "backward"
    test.button(key="run").click().run()
    run_id = test.query_params["run"]
    assert any(isinstance(event, RunEnded) for _, event in bench.follow(run_id, timeout_s=20))
    test.run()
    assert not test.exception
    assert "backward" in _words(test)
    assert {p.direction for p in bench.load(run_id).plan.problems} == {"backward"}
    other = page(bench, op="copy")
    assert not [b for b in other.get("button_group") if b.key == "direction"]
