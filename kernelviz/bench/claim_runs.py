"""Use case: measure what claims need on a device: a run for each problem, so that its variants share rounds.

The runs are found again by their titles, as recorded runs of the gallery are, so that a second call continues what was cancelled.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernelviz.bench import claim_workloads, recording, titled_runs
from kernelviz.bench.bench import Bench
from kernelviz.bench.claim_workloads import WorkloadClaimRun
from kernelviz.bench.claims import ClaimsOnDevice, claims_on, named, problem_of
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, FigureName, Method, Plan, Problem
from kernelviz.core.claim import ClaimCollection
from kernelviz.core.units import typed_size
from kernelviz.metrics.claim_reasons import NotMeasured

BUDGET_S = 0.5
"""Largest device time for each case, in seconds."""
_TITLE = "Claims:"
_ORDER: tuple[FigureName, ...] = ("cold", "warm", "call", "graph", "loop")


@dataclass(frozen=True, slots=True)
class ClaimRun:
    """One problem with the variants and figures that claims need of it. `claims`: their ids."""

    problem: Problem
    variants: tuple[str, ...]
    figures: tuple[FigureName, ...]
    claims: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title of its run."""
        sizes = " ".join(f"{axis}={typed_size(size)}" for axis, size in self.problem.sizes.items())
        parts = (self.problem.op, self.problem.precision, self.problem.direction, self.problem.data)
        what = " ".join(str(part) for part in parts if part not in (None, "forward", "normal"))
        return f"{_TITLE} {what} {sizes}"

    @property
    def method(self) -> Method:
        """How it is measured."""
        return Method(budget_s=BUDGET_S, figures=self.figures)


_Run = TypeVar("_Run", ClaimRun, WorkloadClaimRun)


@dataclass(frozen=True, slots=True)
class ClaimProgress:
    """Where the measurements of claims on a device are. `current`: a run that is measured now or waits; None without one.

    `runs` and `cases`: of everything that can be tested there; `runs_done`: with results for all their claims. `stopped`: how
    many runs were cancelled or interrupted and can be continued.
    """

    runs: int
    runs_done: int
    cases: int
    current: str | None
    waiting: int
    stopped: int

    @property
    def living(self) -> bool:
        """Whether something is measured now or waits."""
        return self.current is not None


def claim_runs(bench: Bench, of_device: ClaimsOnDevice, claims: Sequence[str] | None = None) -> tuple[ClaimRun, ...]:
    """The runs that test everything that can be tested on the device, or only these claims. Errors: UnknownName."""
    for claim_id in claims or ():
        named(of_device.assessments, claim_id)
    by_problem: dict[str, list[tuple[Problem, str, FigureName, str]]] = {}
    for one in of_device.assessments:
        if not one.measurable or (claims is not None and one.claim.id not in claims):
            continue
        for case in one.claim.cases:
            op = bench.ops()[case.op]
            problem = problem_of(op, case)
            needed = (problem, op.variant_named(case.variant).name, case.figure, one.claim.id)
            by_problem.setdefault(problem.key, []).append(needed)
    return tuple(
        ClaimRun(
            problem=needed[0][0],
            variants=tuple(dict.fromkeys(variant for _, variant, _, _ in needed)),
            figures=tuple(f for f in _ORDER if f == "cold" or f in {figure for _, _, figure, _ in needed}),
            claims=tuple(dict.fromkeys(claim_id for *_, claim_id in needed)),
        )
        for needed in by_problem.values()
    )


def plan_of(bench: Bench, run: ClaimRun, device_id: str) -> Plan:
    """The plan of a run. Its baseline is that of the op if it is among the variants, else the first variant."""
    base = bench.ops()[run.problem.op].baseline
    baseline = base if base in run.variants else run.variants[0]
    return Plan(problems=(run.problem,), variants=run.variants, baseline=baseline, device=device_id)


def unmeasured(of_device: ClaimsOnDevice, runs: Sequence[ClaimRun]) -> tuple[ClaimRun, ...]:
    """Those of the runs for which a claim has no result yet."""
    return _without_result(of_device, runs)


def _without_result(of_device: ClaimsOnDevice, runs: Sequence[_Run]) -> tuple[_Run, ...]:
    open_claims = {a.claim.id for a in of_device.assessments if isinstance(a.reason, NotMeasured)}
    return tuple(run for run in runs if open_claims.intersection(run.claims))


def to_measure(
    bench: Bench, of_device: ClaimsOnDevice, claims: Sequence[str] | None = None, *, again: bool = False
) -> tuple[ClaimRun, ...]:
    """The runs of `claim_runs` for which a claim has no result yet, or (`again`) all of them. Errors: UnknownName."""
    runs = claim_runs(bench, of_device, claims)
    return runs if again else unmeasured(of_device, runs)


def start(bench: Bench, run: ClaimRun, device_id: str, *, owner: str = "") -> str:
    """Measure a run, or the rest of it if it was cancelled or interrupted; returns its id at once. A run that is measured already
    is returned as it is. Errors: UnknownName, BadField, StoreError."""
    return _start(bench, run, device_id, _earlier(bench, device_id).get(run.title), owner)


def _start(bench: Bench, run: ClaimRun, device_id: str, earlier: RunSummary | None, owner: str) -> str:
    return titled_runs.start(bench, plan_of(bench, run, device_id), run.method, run.title, earlier, owner)


def start_all(
    bench: Bench,
    device_id: str,
    *,
    claims: Sequence[str] | None = None,
    again: bool = False,
    owner: str = "",
    collection: ClaimCollection | None = None,
) -> tuple[str, ...]:
    """Queue everything that has no result yet on the device, or (`again`) everything that can be tested; returns the ids of the
    runs. `claims`: only these. `collection`: as in `claims_on`. Errors: UnknownName, BadField, StoreError."""
    of_device = claims_on(bench, device_id, collection)
    runs = to_measure(bench, of_device, claims, again=again)
    earlier = _earlier(bench, device_id)
    of_ops = tuple(_start(bench, run, device_id, earlier.get(run.title), owner) for run in runs)
    of_workloads = workloads_to_measure(of_device, claims, again=again)
    return (*of_ops, *(claim_workloads.start(bench, run, device_id, owner=owner) for run in of_workloads))


def workloads_to_measure(
    of_device: ClaimsOnDevice, claims: Sequence[str] | None = None, *, again: bool = False
) -> tuple[WorkloadClaimRun, ...]:
    """The runs of workloads for which a claim has no result yet, or (`again`) all of them."""
    runs = claim_workloads.workload_runs(of_device.assessments, claims)
    return runs if again else _without_result(of_device, runs)


def cancel_all(
    bench: Bench,
    device_id: str,
    runs: Sequence[ClaimRun] | None = None,
    workloads: Sequence[WorkloadClaimRun] | None = None,
) -> None:
    """Cancel every run of claims that is measured or waits on the device, or only these runs of ops and of workloads; results so
    far stay. Errors: BadField for one that another process measures."""
    titled_runs.cancel(bench, _TITLE, device_id, None if runs is None else {run.title for run in runs})
    of_workloads = None if workloads is None else {run.title for run in workloads}
    for title, of_workload in claim_workloads.earlier(bench, device_id).items():
        if of_workload.status in LIVING and (of_workloads is None or title in of_workloads):
            bench.workloads.cancel(of_workload.id)


def progress(bench: Bench, of_device: ClaimsOnDevice, claims: Sequence[str] | None = None) -> ClaimProgress:
    """Where the measurements of claims are on that device, or only of these claims. Errors: UnknownName."""
    runs = claim_runs(bench, of_device, claims)
    titles = {run.title for run in runs}
    missing = unmeasured(of_device, runs)
    earlier = _earlier(bench, of_device.device.id)
    every = titled_runs.living(bench, _TITLE, of_device.device.id)
    living = [run for run in every if claims is None or run.title in titles]
    of_workloads = claim_workloads.workload_runs(of_device.assessments, claims)
    named_workloads = {run.title for run in of_workloads}
    missing_workloads = _without_result(of_device, of_workloads)
    stored = claim_workloads.earlier(bench, of_device.device.id)
    living_workloads = [
        run.id for title, run in stored.items() if run.status in LIVING and (claims is None or title in named_workloads)
    ]
    stopped = sum(run.title in earlier and earlier[run.title].status in ("cancelled", "interrupted") for run in missing)
    halted = {title for title, one in stored.items() if one.status in ("cancelled", "interrupted")}
    stopped += sum(one.title in halted for one in missing_workloads)
    current = [*(run.id for run in living), *living_workloads]
    return ClaimProgress(
        runs=len(runs) + len(of_workloads),
        runs_done=len(runs) + len(of_workloads) - len(missing) - len(missing_workloads),
        cases=sum(len(run.variants) for run in runs) + sum(len(one.variants) for one in of_workloads),
        current=current[0] if current else None,
        waiting=max(0, len(current) - 1),
        stopped=stopped,
    )


def _earlier(bench: Bench, device_id: str) -> dict[str, RunSummary]:
    """The newest stored run of claims of each title on that device."""
    return titled_runs.newest_by_title(bench, _TITLE, device_id)


def record(bench: Bench, of_device: ClaimsOnDevice, folder: Path) -> tuple[str, ...]:
    """Write the runs behind the verdicts on a device to a folder, in the compact form of recorded runs, and return their names.

    Samples are kept by block and code is left out. `kernelviz/shipped/claims/NAME` is where the package looks for them.
    """
    used = dict.fromkeys(run_id for a in of_device.assessments for run_id in a.run_ids)
    # Runs of workloads are shipped with the workloads (tests/gpu/workload_runs.py), for their own page.
    run_ids = [run_id for run_id in used if not bench.workloads.is_known(run_id)]
    names = []
    for run_id in run_ids:
        run = bench.load(run_id)
        name = re.sub(r"[^a-z0-9]+", "-", run.title.lower()).strip("-")[:70] + f"-{run_id[-6:]}"
        recording.write(run, name, folder)
        names.append(name)
    return tuple(names)
