"""Tuning on a GPU: more than a hundred configurations, cancelled and resumed once, the best used afterwards; failures kept."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from figures import known, record
from parts import part

from kernelviz.bench import Bench
from kernelviz.bench.tunings import TuningReport
from kernelviz.core.events import CaseDone, RunEnded
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Timing
from kernelviz.hardware.discovery import discover
from kernelviz.store import Store
from kernelviz.text.tuning import record as as_record

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]

PLUGIN = str(Path(__file__).parents[1] / "planted_tuning_cuda.py")
SIZES = {"n": "2^26"}
CONFIGURATIONS = 108


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), discover(), lock_directory=tmp_path)
    yield made
    made.close()


def follow(bench: Bench, run_id: str, *, cancel_after: int | None = None) -> str:
    """Until the run ends, or cancel it when so many cases have a result; its status."""
    done: set[str] = set()
    for _, event in bench.follow(run_id, timeout_s=300):
        if isinstance(event, CaseDone):
            done.add(event.result.variant)
            if cancel_after is not None and len(done) >= cancel_after:
                bench.cancel(run_id)
                cancel_after = None
        if isinstance(event, RunEnded):
            return event.status
    raise AssertionError("nothing was heard for five minutes")


def kept_of(report: TuningReport) -> dict[str, object]:
    figures = as_record(report.run, report.tried, report.tuning, report.seconds)
    figures["configurations"] = figures["configurations"][:10]
    return figures


@part("product")
def test_a_hundred_configurations_cancelled_and_resumed_and_the_best_used_afterwards(bench: Bench) -> None:
    plan = bench.tuning(
        RunRequest(op="add", variants=("triton_tuned",), sizes=SIZES, dtype="fp32", device="cuda:0"),
        configurations=CONFIGURATIONS,
        seed=1,
    )
    assert len(plan.variants) == CONFIGURATIONS >= 100
    run_id = bench.run(plan)
    assert follow(bench, run_id, cancel_after=CONFIGURATIONS // 2) == "cancelled"
    half = bench.tunings.report(run_id)
    assert CONFIGURATIONS // 2 <= half.tried.tried < CONFIGURATIONS
    assert bench.tunings.find() == ()
    before = {r.variant: r.measured_at for r in half.run.results if isinstance(r.outcome, Timing)}

    bench.resume(run_id)
    assert follow(bench, run_id) == "finished"
    report = bench.tunings.report(run_id)
    kept, best = report.tuning, report.tried.best
    assert kept is not None
    assert best is not None
    assert report.tried.tried == CONFIGURATIONS
    assert report.seconds > half.seconds > 0
    again = {r.variant for r in report.run.results if before.get(r.variant) not in (None, r.measured_at)}
    assert len(again) <= 9, "what has a time is not measured again, but for the finalists and the default"

    usual = bench.plan(
        RunRequest(
            op="add",
            sizes=SIZES,
            dtype="fp32",
            variants=("torch_eager", "triton_block", "triton_tuned"),
            device="cuda:0",
        )
    )
    after = bench.run(usual, Method(budget_s=0.3))
    assert follow(bench, after) == "finished"
    found = {r.variant: r for r in bench.load(after).results}
    tuned = found["triton_tuned"]
    assert (tuned.configuration, tuned.tuned_by) == (kept.configuration, run_id)
    assert isinstance(tuned.outcome, Timing)
    cold = tuned.outcome.device_cold_s
    assert cold is not None
    record(
        "tuning_add",
        {
            "before_cancel": {"tried": half.tried.tried, "seconds": half.seconds},
            "after": kept_of(report),
            "used_s": {name: known(r.timing.device_cold_s).estimate for name, r in found.items() if r.timing},
            "tuned": msgspec.to_builtins(tuned.configuration),
        },
    )
    # Another minute, other rounds: within 3 % of what the tuning found.
    assert cold.estimate == pytest.approx(kept.time_s.estimate, rel=0.03)


@part("smoke")
def test_failures_are_kept_with_their_reasons_and_cost_nobody_else(bench: Bench) -> None:
    plan = bench.tuning(
        RunRequest(
            op="add",
            variants=("through_shared",),
            sizes={"n": "2^24"},
            dtype="fp32",
            device="cuda:0",
            plugins=(PLUGIN,),
        )
    )
    assert len(plan.variants) == 48
    run_id = bench.run(plan)
    assert follow(bench, run_id) == "finished"
    report = bench.tunings.report(run_id)
    by_stage = Counter(r.failure.stage for r in report.tried.failures for _ in r.variants)
    record("tuning_failures", kept_of(report))
    assert by_stage == {"compile": 8, "wrong": 2}
    refused = next(r for r in report.tried.failures if r.failure.stage == "compile")
    assert "shared memory" in refused.failure.message
    assert all("shared_kib=256" in name for name in refused.variants)
    assert len(report.tried.ranked) == 38
    assert report.tuning is not None
    assert report.tuning.configuration["shared_kib"] <= 128
