"""Workloads from plan to history, with planted ones in real worker processes on this machine's processor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as runs
import sample_workloads as samples
from planted_workload import PAIRED, PLANTED

from kernelviz.bench import Bench
from kernelviz.bench.workload_comparison import compared
from kernelviz.bench.workload_plan import WorkloadRequest, chosen_devices, plan_of
from kernelviz.bench.workloads import Workloads
from kernelviz.core import BadField, UnknownName, UnknownRun
from kernelviz.core.reasons import Raised, WorkerEnded
from kernelviz.core.run import Device
from kernelviz.core.workload import WorkloadCaseDone, WorkloadRun
from kernelviz.formats import workload_document
from kernelviz.hardware.cpu import cpu
from kernelviz.metrics.workloads import rows
from kernelviz.store import Store, StoreError
from kernelviz.text.workload_insight import describe_insight

PLUGIN = str(Path(__file__).parents[1] / "planted_workload.py")
GPUS = (runs.H200, msgspec.structs.replace(runs.H200, id="cuda:1", uuid="GPU-0"))
"""The second one has the smaller UUID."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workloads]:
    """Workloads over a store of this module, with the planted ones."""
    folder = tmp_path_factory.mktemp("workloads")
    made = Bench(Store.open(folder), (cpu(),), lock_directory=folder)
    yield made.workloads
    made.close()


def measured(bench: Workloads, **request: object) -> WorkloadRun:
    plan = bench.plan(WorkloadRequest(plugins=(PLUGIN,), **request))  # type: ignore[arg-type]
    run_id = bench.run(plan)
    for _ in bench.follow(run_id):
        pass
    return bench.load(run_id)


@pytest.fixture(scope="module")
def mixed(bench: Workloads) -> WorkloadRun:
    """A run with good cases, and one of each way to fail."""
    variants = ("fast", "raises", "dies", "greedy", "silent", "no_number", "apart", "on_gpu")
    return measured(bench, workload="planted", variants=variants, values={"work": "2"})


def test_what_breaks_costs_its_case_and_nothing_else(bench: Workloads, mixed: WorkloadRun) -> None:
    assert mixed.status == "finished"
    failures = {r.case.variant: r.failure for r in mixed.results}
    stages = {variant: failure.stage for variant, failure in failures.items() if failure is not None}
    assert stages == {
        "raises": "crash", "dies": "crash", "greedy": "out_of_memory", "silent": "crash", "on_gpu": "unavailable",
    }  # fmt: skip
    assert failures["raises"] is not None
    assert failures["raises"].reasons == (Raised(type="RuntimeError"),)
    assert "planted: this variant raises" in failures["raises"].message
    assert failures["dies"] is not None
    assert failures["dies"].reasons == (WorkerEnded(exit_code=7),)
    assert str(describe_insight(mixed)).endswith("4 cases failed. Not supported: 1 case.")
    assert bench.summary(mixed.id).failed == sum(r.failed for r in mixed.results) == 4
    (lost,) = (r for r in mixed.results if r.case.variant == "no_number")
    assert "loss" not in lost.values
    assert ("not_finite", "loss") in [(note.kind, note.text) for note in lost.notes]


def test_the_planted_gain_is_measured_in_shared_rounds(mixed: WorkloadRun) -> None:
    by_variant = {row.case.variant: row for row in rows(mixed)}
    found = by_variant["fast"].gains["step_s"]
    assert 1.3 < found.ratio.estimate < 2.5, "it sleeps half as long"
    slow, fast = (by_variant[v].value("step_s") for v in ("slow", "fast"))
    assert slow.rounds == fast.rounds  # type: ignore[union-attr]
    assert len(slow.again) == slow.n  # type: ignore[union-attr]
    assert by_variant["fast"].result is not None
    assert by_variant["fast"].result.source_digest
    assert not by_variant["fast"].result.mechanics_only
    assert by_variant["fast"].result.conditions


def test_two_processes_on_a_processor_are_mechanics_only_and_a_rank_that_dies_costs_its_case(bench: Workloads) -> None:
    run = measured(bench, workload="paired", variants=("one_dies",), values={"size": "1k"})
    both, died = run.results
    assert both.failure is None
    assert both.mechanics_only
    assert died.failure is not None
    assert died.failure.reasons == (WorkerEnded(exit_code=9),)
    assert died.failure.message.startswith("rank 1")


def test_a_cancelled_run_keeps_its_results_and_goes_on(bench: Workloads) -> None:
    plan = bench.plan(WorkloadRequest(workload="planted", values={"work": "0,30"}, plugins=(PLUGIN,)))
    run_id = bench.run(plan)
    for _, event in bench.follow(run_id):
        if isinstance(event, WorkloadCaseDone):
            bench.cancel(run_id)
    run = bench.load(run_id)
    assert run.status == "cancelled"
    assert [r.given_up for r in run.results] == [False, False, True, True]
    kept = run.results[:2]
    bench.resume(run_id)
    assert bench.progress(run_id).status in ("queued", "running")
    with pytest.raises(StoreError, match="being measured"):
        bench.delete(run_id)
    for _ in bench.follow(run_id):
        pass
    run = bench.load(run_id)
    assert run.status == "finished"
    assert run.results[:2] == kept
    assert not any(r.given_up or r.failure for r in run.results)


def test_a_run_whose_server_stops_is_interrupted(tmp_path: Path) -> None:
    made = Bench(Store.open(tmp_path), (cpu(),), lock_directory=tmp_path)
    plan = made.workloads.plan(WorkloadRequest(workload="planted", variants=("hangs",), plugins=(PLUGIN,)))
    run_id = made.workloads.run(plan)
    next(event for _, event in made.workloads.follow(run_id))
    made.close()
    again = Bench(Store.open(tmp_path), (cpu(),), lock_directory=tmp_path)
    assert again.workloads.load(run_id).status == "interrupted"
    assert again.workloads.load(run_id).results == ()
    again.close()


def test_history_names_deletes_restores_and_imports(bench: Workloads, mixed: WorkloadRun, tmp_path: Path) -> None:
    bench.rename(mixed.id, "  my   run ")
    bench.annotate(mixed.id, "seen")
    assert [run.title for run in bench.find("my run planted")] == ["my run"]
    bench.delete(mixed.id)
    with pytest.raises(UnknownRun):
        bench.load(mixed.id)
    assert mixed.id in [run.id for run in bench.deleted()]
    data = workload_document.encode(mixed)
    assert bench.take_in(data) == mixed.id, "the same facts restore it"
    assert bench.load(mixed.id).title == "my run"
    other = samples.run(id=mixed.id)
    assert bench.add(other) != mixed.id, "other facts get another id"
    hostile = msgspec.structs.replace(
        samples.run(id="../x", status="running"),
        plan=msgspec.structs.replace(samples.run().plan, plugins=("/etc/x.py",)),
    )
    taken = bench.load(bench.add(hostile))
    assert taken.status == "interrupted"
    assert taken.plan.plugins == ()
    of = compared(bench, mixed.id, mixed.id, variant_a="slow", variant_b="fast")
    assert of.counts["faster"] == 1
    with pytest.raises(BadField, match="compare runs of one workload"):
        compared(bench, mixed.id, bench.add(samples.of_pair()))
    with pytest.raises(UnknownName):
        compared(bench, mixed.id, mixed.id, variant_b="fats")


def test_a_backup_holds_runs_of_workloads(tmp_path: Path) -> None:
    there, here = (Bench(Store.open(tmp_path / name), (cpu(),)) for name in ("there", "here"))
    there.workloads.add(samples.run(failing=("fast",)))
    there.workloads.delete("w-sample")
    there.workloads.add(samples.of_pair())
    assert there.history.back_up(tmp_path / "b").counts.endswith("2 workloads")
    assert here.history.take_in_backup(tmp_path / "b").ids == ("w-pair", "w-sample")
    assert here.workloads.load("w-pair") == samples.of_pair()
    assert [run.id for run in here.workloads.deleted()] == ["w-sample"]
    there.close()
    here.close()


def test_devices_of_a_plan_are_in_the_order_of_their_uuids() -> None:
    devices = (*GPUS, cpu())
    plan = plan_of(PAIRED, WorkloadRequest(workload="paired"), devices)
    assert plan.devices == ("cuda:1", "cuda:0")
    assert [d.id for d in chosen_devices(PAIRED, devices, ("cpu",))] == ["cpu"]
    with pytest.raises(BadField, match="two GPUs of this machine"):
        chosen_devices(PAIRED, devices, ("cuda:0",))
    assert plan_of(PLANTED, WorkloadRequest(workload="planted"), devices).devices == ("cuda:0",)


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "axis": ({"values": {"wrok": "1"}}, "wrok"),
    "choice": ({"values": {"kind": "even"}}, "choose one of plain, odd"),
    "size": ({"values": {"work": "many"}}, "work"),
    "variant": ({"variants": ("fats",)}, "fast"),
    "preset": ({"preset": "tiny"}, "tiny"),
    "device": ({"devices": ("cuda:7",)}, "cuda:7"),
    "budget": ({"budget_s": float("nan")}, "budget"),
    "many": ({"values": {"work": "1..400:1"}}, "at most 512"),
    "baseline": ({"baseline": "none"}, "none"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_names_the_field_and_the_remedy(what: str) -> None:
    request, message = WRONG[what]
    device: Device = cpu()
    with pytest.raises((BadField, UnknownName), match=message):
        plan_of(PLANTED, WorkloadRequest(workload="planted", **request), (device,))  # type: ignore[arg-type]


def test_a_broken_plugin_is_named(bench: Workloads, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    with pytest.raises(BadField, match="no_such_module"):
        bench.declared((str(tmp_path / "broken.py"),))
    with pytest.raises(BadField, match="no such file"):
        bench.declared((str(tmp_path / "none.py"),))
