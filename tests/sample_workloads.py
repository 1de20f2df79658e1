"""Runs of the planted workloads with known values, without measuring."""

from __future__ import annotations

import msgspec
import numpy as np
import sample_runs as samples
from planted_workload import PAIRED, PLANTED

from kernelviz.core.reasons import Raised
from kernelviz.core.result import Failure
from kernelviz.core.run import Device, Environment, Status
from kernelviz.core.workload import (
    Counted,
    Measured,
    Span,
    Timeline,
    Workload,
    WorkloadCase,
    WorkloadMethod,
    WorkloadPlan,
    WorkloadResult,
    WorkloadRun,
)
from kernelviz.metrics.statistics import median_interval

ROUNDS = 30
FAILURE = Failure(stage="crash", reasons=(Raised(type="RuntimeError"),), message="<b>planted</b> *failure*")


def measured(value: float, *, seed: int, noise: float = 0.002, again: bool = False, rounds: int = ROUNDS) -> Measured:
    """A value with its interval from so many rounds of that relative noise."""
    drawn = np.random.default_rng(seed).normal(1.0, noise, (2, rounds)) * value
    interval = median_interval(drawn[0])
    return Measured(
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        samples=tuple(map(float, drawn[0])),
        rounds=tuple(range(rounds)),
        again=tuple(map(float, drawn[1])) if again else (),
    )


def timeline() -> Timeline:
    """A step of 3 ms that computes for 2 ms and communicates for 2 ms, half of it at the same time."""
    return Timeline(
        spans=(
            Span(lane="compute", start_s=0.0, end_s=2e-3, name="<i>step</i>"),
            Span(lane="communication", start_s=1e-3, end_s=3e-3, name="reduce"),
        ),
        clock="cupti",
    )


def run(
    *,
    times_s: dict[str, float] | None = None,
    works: tuple[int, ...] = (1, 2),
    failing: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
    id: str = "w-sample",
    device: Device = samples.CPU,
    status: Status = "finished",
    seed: int = 1,
    workload: Workload = PLANTED,
    mechanics_only: bool = False,
) -> WorkloadRun:
    """A run in which each variant takes its time for each unit of work."""
    times = times_s or {"slow": 2e-3, "fast": 1e-3}
    cases = tuple(
        WorkloadCase(workload=workload.name, values={"work": work, "kind": "plain"}, variant=variant)
        for work in works
        for variant in times
    )
    results = []
    for number, case in enumerate(cases):
        if case.variant in missing:
            continue
        step_s = times[case.variant] * int(case.values["work"])
        values = {
            "step_s": measured(step_s, seed=1000 * seed + number, again=case.variant == workload.baseline),
            "rate": measured(1 / step_s, seed=2000 * seed + number),
            "loss": Counted(value=0.25),
            "sent": Counted(value=1024.0 * int(case.values["work"])),
        }
        failed = case.variant in failing
        results.append(
            WorkloadResult(
                case=case,
                values={} if failed else values,
                timeline=None if failed else timeline(),
                failure=FAILURE if failed else None,
                measured_at="2026-11-27T10:00:00+00:00",
                mechanics_only=mechanics_only,
                source_digest="0123456789abcdef",
            )
        )
    plan = WorkloadPlan(
        workload=workload.name, cases=cases, baseline=workload.baseline, devices=(device.id,), method=WorkloadMethod()
    )
    environment = Environment(
        device=device, host="lab", platform="Linux", python="3.12", kernelviz="0.1.0", versions={"torch": "2.11.0"}
    )
    return WorkloadRun(
        id=id,
        title="Planted <b>steps</b>",
        created_at="2026-11-27T10:00:00+00:00",
        status=status,
        environment=environment,
        devices=(device,),
        declared=workload,
        plan=plan,
        results=tuple(results),
    )


def of_pair(*, id: str = "w-pair") -> WorkloadRun:
    """A run of two processes with gloo on a processor."""
    cases = tuple(
        WorkloadCase(workload="paired", values={"size": size}, variant="both") for size in (1024, 4096, 2**20)
    )
    one = run(id=id, works=(1,))
    results = tuple(
        WorkloadResult(
            case=case, values={"time_s": measured(1e-6 * int(case.values["size"]), seed=i)}, mechanics_only=True
        )
        for i, case in enumerate(cases)
    )
    plan = WorkloadPlan(workload="paired", cases=cases, baseline="both", devices=("cpu",))
    return msgspec.structs.replace(one, declared=PAIRED, plan=plan, results=results)
