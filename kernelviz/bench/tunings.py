"""Use case: tuning. The configurations of a variant are measured as the cases of a run, and the best one is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core import (
    LIVING,
    BadField,
    Device,
    Method,
    Plan,
    Problem,
    Run,
    Search,
    Tuned,
    Tuning,
    UnknownName,
    UnknownRun,
    timestamps,
)
from kernelviz.core.tuning import tuning_key
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import Tried, best_names, tried, tuning_of
from kernelviz.ops import Op
from kernelviz.ops.catalog.space import draw
from kernelviz.store import Store

METHOD = Method(budget_s=0.05, half_width=0.005, ratio_half_width=0.005, decided_is_enough=True)
"""Of the sweep: device cold only, until it is decided who is faster than the default. The gate is as always."""
FINALISTS = 8
"""So many of the best are measured again at the end, together: of a hundred noisy times the smallest is smaller than it is."""
FINAL_BUDGET = 4
"""Times the budget of the sweep."""


def final_method(method: Method) -> Method:
    """The method by which the best of the sweep are measured again: as precise as a usual run."""
    usual = Method()
    return msgspec.structs.replace(
        method,
        budget_s=method.budget_s * FINAL_BUDGET,
        half_width=min(method.half_width, usual.half_width),
        ratio_half_width=min(method.ratio_half_width, usual.ratio_half_width),
        decided_is_enough=False,
    )


def tuning_plan(plan: Plan, op: Op, count: int | None, seed: int) -> Plan:
    """The plan of one variant and one problem as a tuning of that variant: its configurations, the default one the baseline.

    Errors: BadField for several problems, for a variant without anything to tune, for too many or too few configurations.
    """
    if len(plan.problems) != 1:
        remedy = "tune one problem at a time: one number for each axis (--size n=2^26)"
        raise BadField("sizes", f"{len(plan.problems)} problems", remedy)
    problem, name = plan.problems[0], plan.variants[0]
    sample = draw(op, name, problem, count, seed)
    variant = op.of(problem).variant_named(name)
    names = tuple(variant.named(configuration).name for configuration in sample.configurations)
    search = Search(variant=name, space=sample.space, admitted=sample.admitted, seed=sample.seed)
    return msgspec.structs.replace(plan, variants=names, baseline=names[0], search=search)


def conclude(store: Store, run_id: str, *, finished: bool = True) -> Tuning | None:
    """Store the result of a tuning, which the variant uses from then on. None if no configuration is correct. Raises
    UnknownRun."""
    run = store.runs.load(run_id)
    tuning = tuning_of(
        run, tried(run, finished=finished), created_at=timestamps.now(), seconds=store.runs.row(run_id).spent_s
    )
    if tuning is not None:
        store.tunings.put(tuning)
    return tuning


def finalists(store: Store, run_id: str, problem: Problem) -> tuple[str, ...]:
    """The best of the sweep so far, without the default, which is always measured with them."""
    run = store.runs.load(run_id)
    return best_names([row for row in rows(run, ()) if row.result.problem == problem], FINALISTS)


class Chosen:
    """Which configuration each variant has on one device, as tunings found it; asked once for all problems of a run."""

    def __init__(self, store: Store, device: Device, op: Op) -> None:
        tunable = {v.name for v in op.variants if v.space}
        known = store.tunings.find(device.uuid, op.name) if tunable else ()
        self._known = {(t.variant, tuning_key(t.problem)): t.tuned for t in known if t.variant in tunable}

    def of(self, problem: Problem, variants: Sequence[str]) -> dict[str, Tuned]:
        """By variant; those that were not tuned for the problem are not in it."""
        key = tuning_key(problem)
        return {name: self._known[name, key] for name in variants if (name, key) in self._known}


@dataclass(frozen=True, slots=True)
class StoredTuning:
    """What is kept of a tuning, and whether it is used: `stale` says why not, and is empty where it is."""

    tuning: Tuning
    stale: str


class Tunings:
    """The stored tunings of all devices of a store. Every method may be called from any thread."""

    def __init__(
        self, store: Store, ops: Callable[[], Mapping[str, Op]], devices: Sequence[Device], load: Callable[[str], Run]
    ) -> None:
        self._store, self._ops, self._load = store, ops, load
        self._uuids = {d.id: d.uuid for d in devices}

    def find(
        self, op: str | None = None, *, variant: str | None = None, device: str | None = None
    ) -> tuple[StoredTuning, ...]:
        """The stored tunings, by op, variant and problem. Errors: UnknownName for a device."""
        if device is not None and device not in self._uuids:
            raise UnknownName("device", device, self._uuids)
        stored = self._store.tunings.find(None if device is None else self._uuids[device], op)
        ops = self._ops()
        return tuple(StoredTuning(t, _stale(t, ops.get(t.problem.op))) for t in stored if variant in (None, t.variant))

    def of(self, problem: Problem, variant: str, device: str) -> StoredTuning | None:
        """What is kept for that variant and problem on that device; None where it was not tuned. Errors: UnknownName."""
        key = tuning_key(problem)
        stored = self.find(problem.op, variant=variant, device=device)
        return next((s for s in stored if tuning_key(s.tuning.problem) == key), None)

    def chosen(self, plan: Plan) -> dict[str, Tuned]:
        """The configuration that each variant of a plan uses for its first problem, by variant. Errors: UnknownName for the
        device."""
        if plan.device not in self._uuids:
            raise UnknownName("device", plan.device, self._uuids)
        known = self._store.tunings.find(self._uuids[plan.device], plan.op)
        key = tuning_key(plan.problems[0])
        return {t.variant: t.tuned for t in known if t.variant in plan.variants and tuning_key(t.problem) == key}

    def of_run(self, run_id: str) -> Tuning | None:
        """What the run of a tuning left, if it is still what is used."""
        return next((t for t in self._store.tunings.find() if t.run_id == run_id), None)

    def forget(self, tunings: Sequence[StoredTuning]) -> None:
        """Remove these tunings: the variants use their default configurations for these problems again."""
        self._store.tunings.drop([t.tuning for t in tunings])

    def keep(self, run_id: str) -> Tuning:
        """Store the best configuration so far of a cancelled or interrupted tuning, without finishing it.

        Errors: UnknownRun; BadField for a run that is not a tuning, is in progress, was measured elsewhere, or has no correct
        configuration.
        """
        run = self._load(run_id)
        tried(run)  # raises for a run that is none
        if run.status in LIVING:
            raise BadField("run", run_id, "it goes on; wait for its end or cancel it")
        if run.environment.device.uuid not in self._uuids.values():
            raise BadField("run", run_id, f"it was measured on {run.environment.device.name}, which is not here")
        tuning = conclude(self._store, run_id, finished=run.status == "finished")
        if tuning is None:
            raise BadField("run", run_id, "none of its configurations is correct so far")
        return tuning

    def report(self, run_id: str) -> TuningReport:
        """The result and the cost of a tuning. Errors: UnknownRun; BadField for a run that is not a tuning."""
        run = self._load(run_id)
        tuning = self.of_run(run_id)
        seconds = self._spent_s(run_id) or (tuning.seconds if tuning is not None else 0.0)
        return TuningReport(run=run, tried=tried(run), tuning=tuning, seconds=seconds)

    def _spent_s(self, run_id: str) -> float:
        try:
            return self._store.runs.row(run_id).spent_s
        except UnknownRun:  # one that came with the package
            return 0.0


@dataclass(frozen=True, slots=True)
class TuningReport:
    """A tuning: its run, what it tried, what is kept of it (None: nothing, or a newer one replaced it), the seconds that it took
    (0: nobody here knows, since it was measured elsewhere)."""

    run: Run
    tried: Tried
    tuning: Tuning | None
    seconds: float


def _stale(tuning: Tuning, op: Op | None) -> str:
    """Why it is not used, as far as this process knows; empty where it is."""
    if op is None:
        return f"op {tuning.problem.op!r} is not here"
    variant = next((v for v in op.of(tuning.problem).variants if v.name == tuning.variant), None)
    if variant is None:
        return f"variant {tuning.variant!r} is not here (a plug-in that was not named?)"
    if variant.source_digest() != tuning.source_digest:
        return "its source has changed since: tune it again"
    return ""
