"""Use case: tuning. The configurations of a variant are measured as the cases of a run, and the best one is stored."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

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
from kernelviz.formats import shipped_runs
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
    names = [variant.named(configuration).name for configuration in sample.configurations]
    if sample.seed is not None:
        names = in_random_order(names, sample.seed)
    return msgspec.structs.replace(
        plan,
        variants=tuple(names),
        baseline=names[0],
        search=Search(
            variant=name,
            space=sample.space,
            admitted=sample.admitted,
            seed=sample.seed,
            parameters=dict(sample.parameters),
        ),
    )


def in_random_order(names: Sequence[str], seed: int) -> list[str]:
    """The first, which is the default, then the others in an order that the seed decides. The plan stores the order, so a
    resumed run continues it.

    In the order of the space, the first part of a sample has few values of the first parameter, so that a cancelled search
    would say nothing about the others.

    >>> in_random_order(["d", "a", "b", "c", "e"], 1), in_random_order(["d", "a", "b", "c", "e"], 2)
    (['d', 'b', 'c', 'a', 'e'], ['d', 'a', 'e', 'c', 'b'])
    """
    first, *rest = names
    return [first, *random.Random(seed).sample(rest, len(rest))]


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


@dataclass(frozen=True, slots=True)
class Example:
    """A stored tuning by which the cost of another one is estimated. `budget_s`: of each of its configurations, None if its run
    is gone. `same`: what it has in common with the new one."""

    tuning: Tuning
    same: Literal["problem", "variant", "op", "device"]
    budget_s: float | None

    @property
    def each_s(self) -> float:
        """Seconds of the device for each configuration: binding, compilation, checks, measuring, and its part of the final."""
        return self.tuning.seconds / self.tuning.tried


@dataclass(frozen=True, slots=True)
class TuningCost:
    """What a tuning takes of the device. `sweep_s` and `final_s`: of measuring at most, by the budgets, without binding,
    compilation and checks. `example`: the stored tuning of the same device that is closest to it, None if there is none."""

    configurations: int
    budget_s: float
    sweep_s: float
    final_s: float
    example: Example | None = None

    @property
    def expected_s(self) -> float | None:
        """As long as the example for each configuration, and longer by what its budget was smaller. None without an example."""
        if self.example is None:
            return None
        more_s = 0.0 if self.example.budget_s is None else max(0.0, self.budget_s - self.example.budget_s)
        return self.configurations * (self.example.each_s + more_s)


def cost_of(plan: Plan, method: Method, example: Example | None = None) -> TuningCost:
    """The cost of a tuning: its sweep, and the final of the best ones with the default.

    >>> p = Problem(op="add", sizes={"n": 8}, dtype="fp32")
    >>> plan = Plan(problems=(p,), variants=tuple(f"t[b={n}]" for n in range(100)), baseline="t[b=0]", device="cpu")
    >>> cost = cost_of(plan, Method(budget_s=0.05))
    >>> round(cost.sweep_s, 3), round(cost.final_s, 3), cost.expected_s
    (5.0, 1.8, None)
    """
    count = len(plan.variants)
    in_final = min(count, FINALISTS + 1)
    return TuningCost(
        configurations=count,
        budget_s=method.budget_s,
        sweep_s=method.budget_s * count,
        final_s=final_method(method).budget_s * in_final,
        example=example,
    )


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

    def shipped(self) -> tuple[str, ...]:
        """The ids of the recorded tunings that came with the package."""
        return shipped_runs.tunings()

    def chosen(self, plan: Plan) -> dict[str, Tuned]:
        """The configuration that each variant of a plan uses for its first problem, by variant. Errors: UnknownName for the
        device."""
        known = self._store.tunings.find(self._devices[plan.device].uuid, plan.op)
        key = tuning_key(plan.problems[0])
        return {t.variant: t.tuned for t in known if t.variant in plan.variants and tuning_key(t.problem) == key}

    def cost(self, plan: Plan, method: Method) -> TuningCost:
        """What a tuning would take, estimated by the closest stored tuning of the device: of the same problem, else the same
        variant, op or device; of several, the newest. Errors: UnknownName for the device."""
        known = [t for t in self._store.tunings.find(self._devices[plan.device].uuid) if t.seconds > 0 and t.tried > 0]
        variant = plan.search.variant if plan.search is not None else ""
        problem = plan.problems[0]
        likeness: dict[Literal["problem", "variant", "op", "device"], Callable[[Tuning], bool]] = {
            "problem": lambda t: t.variant == variant and tuning_key(t.problem) == tuning_key(problem),
            "variant": lambda t: t.variant == variant and t.problem.op == problem.op,
            "op": lambda t: t.problem.op == problem.op,
            "device": lambda t: True,
        }
        for same, alike in likeness.items():
            newest = max((t for t in known if alike(t)), key=lambda t: t.created_at, default=None)
            if newest is not None:
                return cost_of(plan, method, Example(newest, same, self._budget_s(newest.run_id)))
        return cost_of(plan, method)

    def _budget_s(self, run_id: str) -> float | None:
        with suppress(UnknownRun):
            return self._load(run_id).method.budget_s
        return None

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
