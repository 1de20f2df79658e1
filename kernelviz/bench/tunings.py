"""Use case: tuning. The configurations of a variant are measured as the cases of a run, and the best one is stored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from kernelviz.bench.summaries import Devices
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
    UnknownRun,
    timestamps,
)
from kernelviz.core.tuning import tuning_key
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import Tried, best_names, tried, tuning_of
from kernelviz.ops import Op
from kernelviz.ops.catalog.space import draw
from kernelviz.store import Store

EARLY_STOP = 1.5
"""A configuration of which even the fastest call of the first block takes this many times as long as the best beside it gets no
further blocks. Blocks of one configuration differ by a few per cent, so such a configuration is not the best of any group."""
METHOD = Method(budget_s=0.05, half_width=0.005, ratio_half_width=0.005, decided_is_enough=True, early_stop=EARLY_STOP)
"""The method of the sweep: only device cold, until it is decided which is faster than the default, and one block of what is
hopeless. All outputs are checked."""
FINALISTS = 8
"""The number of best configurations that are measured again at the end, because the smallest of many noisy times is too small."""
FINAL_BUDGET = 4
"""The budget of the final measurement, as a multiple of that of the sweep."""


def final_method(method: Method) -> Method:
    """The method by which the best configurations of the sweep are measured again, as precisely as in a usual run."""
    usual = Method()
    return msgspec.structs.replace(
        method,
        budget_s=method.budget_s * FINAL_BUDGET,
        half_width=min(method.half_width, usual.half_width),
        ratio_half_width=min(method.ratio_half_width, usual.ratio_half_width),
        decided_is_enough=False,
        early_stop=msgspec.UNSET,
    )


def tuning_plan(plan: Plan, op: Op, count: int | None, seed: int) -> Plan:
    """The plan of one variant and one problem as a tuning of that variant: its configurations, the default one the baseline.

    Errors: BadField for several problems, for a variant without anything to tune, for too many or too few configurations.
    """
    if len(plan.problems) != 1:
        raise BadField(
            "sizes",
            f"{len(plan.problems)} problems",
            "tune one problem at a time: one number for each axis (--size n=2^26)",
        )
    problem, name = plan.problems[0], plan.variants[0]
    sample = draw(op, name, problem, count, seed)
    variant = op.of(problem).variant_named(name)
    names = tuple(variant.named(configuration).name for configuration in sample.configurations)
    return msgspec.structs.replace(
        plan,
        variants=names,
        baseline=names[0],
        search=Search(
            variant=name,
            space=sample.space,
            admitted=sample.admitted,
            seed=sample.seed,
            parameters=dict(sample.parameters),
        ),
    )


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
    return best_names([row for row in rows(store.runs.load(run_id), ()) if row.result.problem == problem], FINALISTS)


class Chosen:
    """The tuned configurations of the variants of an op on one device, read once for all problems of a run."""

    def __init__(self, store: Store, device: Device, op: Op) -> None:
        tunable = {v.name for v in op.variants if v.space}
        known = store.tunings.find(device.uuid, op.name) if tunable else ()
        self._known = {(t.variant, tuning_key(t.problem)): t.tuned for t in known if t.variant in tunable}

    def of(self, problem: Problem, variants: Sequence[str]) -> dict[str, Tuned]:
        """The configurations by variant. Variants that were not tuned for the problem are left out."""
        key = tuning_key(problem)
        return {name: self._known[name, key] for name in variants if (name, key) in self._known}


@dataclass(frozen=True, slots=True)
class StoredTuning:
    """A stored tuning. `stale`: the reason why it is not used, empty if it is used."""

    tuning: Tuning
    stale: str


@dataclass(frozen=True, slots=True)
class TuningReport:
    """A tuning: its run, the configurations that it tried, the stored result (None: nothing is stored, or a newer tuning has
    replaced it), and the seconds that it took (0: unknown, because it was measured elsewhere)."""

    run: Run
    tried: Tried
    tuning: Tuning | None
    seconds: float


class Tunings:
    """The stored tunings of all devices of a store. Every method may be called from any thread."""

    def __init__(
        self, store: Store, ops: Callable[[], Mapping[str, Op]], devices: Sequence[Device], load: Callable[[str], Run]
    ) -> None:
        self._store, self._ops, self._load = store, ops, load
        self._devices = Devices(devices)

    def find(
        self, op: str | None = None, *, variant: str | None = None, device: str | None = None
    ) -> tuple[StoredTuning, ...]:
        """The stored tunings, by op, variant and problem. Errors: UnknownName for a device."""
        stored = self._store.tunings.find(None if device is None else self._devices[device].uuid, op)
        ops = self._ops()
        return tuple(StoredTuning(t, _stale(t, ops.get(t.problem.op))) for t in stored if variant in (None, t.variant))

    def of(self, problem: Problem, variant: str, device: str) -> StoredTuning | None:
        """The stored tuning of the variant for the problem on that device. None if it was not tuned. Errors: UnknownName."""
        key = tuning_key(problem)
        candidates = self.find(problem.op, variant=variant, device=device)
        return next((t for t in candidates if tuning_key(t.tuning.problem) == key), None)

    def among(self, run_ids: Sequence[str]) -> dict[str, Search]:
        """The searches of those of these runs that are tunings, by the id of the run; also imported ones."""
        return self._store.runs.searches(run_ids)

    def chosen(self, plan: Plan) -> dict[str, Tuned]:
        """The configuration that each variant of a plan uses for its first problem, by variant. Errors: UnknownName for the
        device."""
        known = self._store.tunings.find(self._devices[plan.device].uuid, plan.op)
        key = tuning_key(plan.problems[0])
        return {t.variant: t.tuned for t in known if t.variant in plan.variants and tuning_key(t.problem) == key}

    def forget(self, tunings: Sequence[StoredTuning]) -> None:
        """Remove these tunings, so that the variants use their default configurations for these problems again."""
        self._store.tunings.drop([t.tuning for t in tunings])

    def keep(self, run_id: str) -> Tuning:
        """Store the best configuration so far of a cancelled or interrupted tuning, without finishing it.

        Errors: UnknownRun; BadField for a run that is not a tuning, is in progress, was measured elsewhere, or has no correct
        configuration.
        """
        run = self._load(run_id)
        tried(run)  # raises BadField for a run that is not a tuning
        if run.status in LIVING:
            raise BadField("run", run_id, "it is in progress; wait for its end or cancel it")
        if run.environment.device.uuid not in {device.uuid for device in self._devices.values()}:
            raise BadField("run", run_id, f"it was measured on {run.environment.device.name}, which is not here")
        tuning = conclude(self._store, run_id, finished=run.status == "finished")
        if tuning is None:
            raise BadField("run", run_id, "none of its configurations is correct so far")
        return tuning

    def report(self, run_id: str) -> TuningReport:
        """The result and the cost of a tuning. Errors: UnknownRun; BadField for a run that is not a tuning."""
        run = self._load(run_id)
        tuning = next((t for t in self._store.tunings.find() if t.run_id == run_id), None)
        seconds = 0.0 if tuning is None else tuning.seconds
        with suppress(UnknownRun):  # a run that came with the package
            seconds = self._store.runs.row(run_id).spent_s or seconds
        return TuningReport(run=run, tried=tried(run), tuning=tuning, seconds=seconds)


def _stale(tuning: Tuning, op: Op | None) -> str:
    """The reason why a tuning is not used, as far as this process knows. Empty if it is used."""
    if op is None:
        return f"op {tuning.problem.op!r} is not here"
    variant = next((v for v in op.of(tuning.problem).variants if v.name == tuning.variant), None)
    if variant is None:
        return f"variant {tuning.variant!r} is not here (a plug-in that was not named?)"
    return "" if variant.source_digest() == tuning.source_digest else "its source has changed since: tune it again"
