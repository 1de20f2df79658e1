"""The use case of fusions: plans, runs that show one, rows of files and runs, and what predictions are based on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
import sample_fusions as plant
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench import fusion as use_case
from kernelviz.cli.commands import invoke as main
from kernelviz.core import BadField, Run, UnknownName
from kernelviz.formats import document
from kernelviz.metrics.fusion import launch_slope_s
from kernelviz.metrics.fusion_prediction import PredictionB
from kernelviz.store import Store

L2_BYTES = 60 * 2**20


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The use cases over an empty store of a machine with an H200, as the command gets them."""
    made = Bench(Store.open(tmp_path / "store"), (samples.H200, samples.CPU))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_every_family_has_ops(bench: Bench) -> None:
    assert all(use_case.fused_ops(bench).values())


@pytest.mark.parametrize("family", use_case.FAMILIES)
def test_a_plan_on_a_gpu_is_around_four_times_its_cache(bench: Bench, family: str) -> None:
    op = use_case.fused_ops(bench)[family][0]  # type: ignore[index]
    assert op.fusion is not None
    offers = {o.variant.name for o in bench.offers(op.name, "cuda:0") if o.available}
    if not offers & set(op.fusion.unfused) or not offers & set(op.fusion.fused):
        pytest.skip("this machine lacks what its variants need")
    plan = use_case.plan_of(bench, op.name, "cuda:0")
    itemsize = 2
    large = [p for p in plan.problems if op.fusion.intermediate_bytes(p.sizes, itemsize) >= 4 * L2_BYTES]
    small = [p for p in plan.problems if op.fusion.intermediate_bytes(p.sizes, itemsize) <= L2_BYTES // 4]
    assert large
    assert small
    assert set(plan.variants) <= {*op.fusion.unfused, *op.fusion.fused}
    assert len(plan.problems) == len({p.key for p in plan.problems})
    if op.fusion.work is not None:
        assert len({p.sizes[op.fusion.work.axis] for p in plan.problems}) > 1


def test_a_plan_on_a_cpu_has_small_sizes_and_what_can_run_there(bench: Bench) -> None:
    plan = use_case.plan_of(bench, "reshape_elementwise", "cpu")
    assert {"contiguous_then_op", "torch_eager"} <= set(plan.variants)
    assert "cuda_squares" not in plan.variants
    assert max(p.sizes["m"] for p in plan.problems) <= 4096
    one = use_case.plan_of(bench, "reshape_elementwise", "cpu", sizes={"m": "64", "n": "32"}, dtype="fp16")
    assert [(p.sizes, p.dtype) for p in one.problems] == [({"m": 64, "n": 32}, "fp16")]


def test_bad_requests_name_the_field_and_the_remedy(bench: Bench) -> None:
    with pytest.raises(UnknownName, match="reshape_elementwise"):
        use_case.plan_of(bench, "reshape_elementwis", "cpu")
    with pytest.raises(UnknownName, match="op"):
        use_case.plan_of(bench, "add", "cpu")
    with pytest.raises(BadField, match="no fused variant of it can run on AMD EPYC 9654"):
        use_case.plan_of(bench, "linear_gelu", "cpu")
    with pytest.raises(UnknownName, match="axis"):
        use_case.plan_of(bench, "reshape_elementwise", "cpu", sizes={"m": "64", "n": "32", "k": "1"})


def test_runs_are_found_by_their_op_and_variants(bench: Bench) -> None:
    bench.history.add(plant.run("reshape_elementwise", {"cuda_stepwise": 2e-4, "triton_fused": 1e-4}))
    other = plant.run("reshape_elementwise", {"triton_fused": 1e-4, "cuda_tile": 1e-4})
    bench.history.add(msgspec.structs.replace(other, id="fused-only"))
    own = [r.id for r in use_case.offered(bench, "reshape_elementwise") if not r.shipped]
    assert own == ["fusion-reshape_elementwise"]
    newest = use_case.newest_of(bench, "reshape_elementwise")
    assert newest is not None
    assert newest.id == "fusion-reshape_elementwise"
    (row,) = use_case.rows_of(bench, newest.id)
    assert isinstance(row.b, PredictionB)
    assert use_case.newest_of(bench, "linear_activation") is not None, "one came with the package"


def test_a_run_without_roofs_uses_those_of_a_shipped_run_of_the_model_and_says_which(bench: Bench) -> None:
    run = bench.load("h200-linear_gelu-code")
    assert not run.environment.roofs
    basis = use_case.basis_of(bench, run)
    assert basis.same_model is not None
    assert bench.load(basis.same_model).environment.device.name == run.environment.device.name
    assert basis.launch is not None
    own = use_case.basis_of(bench, plant.run("reshape_elementwise", {"cuda_stepwise": 2e-4, "triton_fused": 1e-4}))
    assert own.same_model is None


def test_the_cost_of_a_launch_does_not_depend_on_the_runs_of_this_machine(bench: Bench) -> None:
    before = use_case.launch_cost(bench, samples.H200, plant.ROOFS)
    bench.history.add(launches({1: 1e-6, 101: 81e-6}))
    assert use_case.launch_cost(bench, samples.H200, plant.ROOFS) == before
    assert use_case.launch_cost(bench, samples.CPU, plant.ROOFS) is None


def test_the_slope_of_launches() -> None:
    assert launch_slope_s(launches({1: 1e-6, 51: 50e-6, 101: 81e-6})) == pytest.approx(0.8e-6, rel=0.02)
    assert launch_slope_s(launches({1: 1e-6})) is None
    assert launch_slope_s(launches({1: 2e-6, 101: 1e-6})) is None, "noise"


def launches(times_s: Mapping[int, float]) -> Run:
    """A run of `empty_launch` with these times by number of launches."""
    sizes = [{"k": k} for k in times_s]
    problems = samples.problems("empty_launch", sizes, "fp32")
    made = samples.run([], id="launches", op="empty_launch", sizes=sizes, dtype="fp32")
    results = tuple(plant.result(p, "cuda_launches", times_s[p.sizes["k"]]) for p in problems)
    plan = msgspec.structs.replace(made.plan, problems=problems, variants=("cuda_launches",), baseline="cuda_launches")
    return msgspec.structs.replace(made, results=results, plan=plan)


def test_the_recorded_linear_layer_is_predicted_within_15_percent_from_twice_the_cache_on(bench: Bench) -> None:
    rows = [r for r in use_case.rows_of(bench, "h200-linear_gelu") if r.fastest]
    large = [r for r in rows if r.cache_bytes and r.intermediate_bytes > 2 * r.cache_bytes]
    assert large
    assert all(abs(r.error_b) <= 0.14 for r in large if r.error_b is not None)
    assert all(r.error_b is not None for r in large)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "fusion.json"
    path.write_bytes(document.encode(plant.run("reshape_elementwise", {"cuda_stepwise": 2e-4, "triton_fused": 1e-4})))
    return path


def test_the_command_reads_files_and_prints_json_markdown_and_a_table(
    bench: Bench, stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["fusion", str(stored), "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["unfused"], record["fused"], record["verdict"]) == ("cuda_stepwise", "triton_fused", "faster")
    assert record["speed_up_low"] < record["speed_up"] < record["speed_up_high"]
    assert record["saved_bytes"] == 2 * 16384 * 8192 * 2
    assert main(["fusion", str(stored), "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert "| reshape_elementwise bf16 m = 16,384, n = 8,192 | `cuda_stepwise` |" in printed
    assert f"Measured on {samples.H200.name}:" in printed
    assert "prediction B is within" in printed
    assert main(["fusion", str(stored)]) == 0
    table = capsys.readouterr().out
    assert "triton_fused" in table
    assert f"reshape_elementwise bf16, {samples.H200.name}, run fusion-reshape_elementwise" in table
    (row,) = kv.fusion(str(stored)).to_dict("records")
    assert (row["fused"], row["ln_error_b"]) == (record["fused"], record["ln_error_b"])


def test_a_recorded_run_shows_the_same_rows(bench: Bench, tmp_path: Path) -> None:
    run_id = bench.history.add(plant.run("reshape_elementwise", {"cuda_stepwise": 2e-4, "triton_fused": 1e-4}))
    path = use_case.record(bench, run_id, tmp_path / "runs")
    assert path.name == "h200-fusion-reshape_elementwise.kvz"
    (stored,), (read,) = use_case.rows_of(bench, run_id), use_case.rows_of_sources(bench, [str(path)])
    assert (read.a, read.saved) == (stored.a, stored.saved)
    assert read.predicted_b == pytest.approx(stored.predicted_b, rel=1e-6)
    assert read.speed_up is not None
    assert stored.speed_up is not None
    assert read.speed_up.estimate == pytest.approx(stored.speed_up.estimate, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fusion", "--family", "pointwis"], "pointwise"),
        (["fusion", "no-such-run"], "no-such-run"),
        (["fusion", "linear_gelu"], "--measure linear_gelu"),
        (["fusion", "--size", "m=4"], "--size: 'm=4' cannot be used; it is about what is measured; add `--measure OP`"),
        (["fusion", "--device", "cpu"], "--device: 'cpu' cannot be used"),
        (["fusion", "no-such-run"], "`kernelviz gallery`"),
        (["fusion", "--measure", "linear_gelu", "--device", "cpu"], "cannot be used"),
        (["fusion", "h200-linear_gelu", "--measure", "all"], "leave out the runs"),
        (["fusion", "--measure", "linear_gelu", "--device", "cpu"], "no fused variant"),
        (["fusion", "--measure", "all", "--size", "m=4"], "name one op"),
        (["fusion", "h200-add"], "it is a run of add, which declares no fusion"),
        (["fusion", "h200-linear_relu-backward"], "it is a run of a backward pass"),
    ],
)
def test_bad_arguments_are_refused(
    bench: Bench, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert "not calibrated" not in printed, "nothing is said about a measurement that cannot begin"


def test_the_saved_json_is_a_list_of_the_records(bench: Bench) -> None:
    rows = plant.rows()
    saved = json.loads(use_case.as_json(rows))
    assert [r["unfused"] for r in saved] == [r.unfused.variant for r in rows]
    assert saved == json.loads(json.dumps(use_case.records(rows)))
