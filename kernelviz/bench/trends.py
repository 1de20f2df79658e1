"""Use case: how the times of cases on a device change from run to run: levels, changes and regressions. `Bench.trends`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from statistics import mode
from typing import cast, get_args

from kernelviz.bench.summaries import Devices
from kernelviz.core import Device, Environment, Failure, Problem, Result, Run, Stage, check_name
from kernelviz.core.problem import case_key
from kernelviz.hardware.toolchain import installed_versions
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.trend import Point, Trend, trend
from kernelviz.metrics.uncertainty import ON_DEVICE
from kernelviz.store import Store
from kernelviz.store.trends import TimeRow

COMPILERS = ("triton", "cuda-core", "nvidia-cuda-nvrtc")
"""The packages whose version decides what machine code a kernel has."""
PASSING_STAGES: frozenset[Stage] = frozenset({"cancelled", "timeout", "out_of_memory"})
"""Failures that another attempt may not have."""
MOST_RUNS = 200
"""The number of newest runs of a case that its trend includes."""


@dataclass(frozen=True, slots=True)
class CaseTrend:
    """A case on one device. `setup`: clock mode, timer and launch of its newest run; runs of another setup are `left_out`.
    `beside`: the variants of the newest run, if they are known."""

    problem: Problem
    variant: str
    setup: str
    trend: Trend
    left_out: int = 0
    beside: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return case_key(self.problem, self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A problem and variants to be compared. `digests`: the sources that they must have, by name; `least`: those that a run must
    have."""

    problem: Problem
    digests: Mapping[str, str]
    least: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Variants of one run and problem that were measured alike: cold times in seconds, and configurations of tunable ones."""

    run_id: str
    at: str
    seconds: Mapping[str, float]
    configurations: Mapping[str, Mapping[str, int]]


class Trends:
    """Every method may be called from any thread."""

    def __init__(self, store: Store, devices: Sequence[Device]) -> None:
        self._store, self._devices = store, Devices(devices)

    def cases(self, device_id: str, *, op: str | None = None, l2: str = "cold") -> tuple[CaseTrend, ...]:
        """The trend of every case that was measured on the device, in the order of their names. Raises UnknownName.

        `l2`: ``cold`` or ``warm`` times. The possible causes of changes are not included; `case` gives them.
        """
        rows = self._store.trends.times(self._devices[device_id].uuid, op=op)
        grouped = (_case(list(group), _headline(l2)) for _, group in groupby(rows, key=attrgetter("case_key")))
        return tuple(c for c in grouped if c is not None)

    def case(self, device_id: str, problem: Problem, variant: str, *, l2: str = "cold") -> CaseTrend | None:
        """The trend of one case, with what differs between the runs on both sides of each change, and with the variants of its
        newest run. None if it was never measured there. Raises UnknownName."""
        key = case_key(problem, variant)
        case = _case(self._store.trends.times(self._devices[device_id].uuid, case_key=key), _headline(l2))
        if case is None:
            return None
        return replace(self._explained(case), beside=self._store.runs.variants(case.trend.points[-1].run_id))

    def together(self, device: Device, wanted: Wanted) -> Together | None:
        """The newest finished burst run on the device that has, for the problem, each variant of `wanted.least` right, or failed
        for good, with its present source, with the present driver and compilers. None if there is none. Raises UnknownName."""
        times = self._store.trends.times
        keys = (case_key(wanted.problem, name) for name in wanted.digests)
        runs = {(row.at, row.run_id) for key in keys for row in times(device.uuid, case_key=key) if row.cold_s}
        versions = installed_versions(COMPILERS)
        for at, run_id in sorted(runs, reverse=True):
            run = self._store.runs.load(run_id)
            results = {r.variant: r for r in run.results if r.problem == wanted.problem and _counts(r, wanted.digests)}
            if _is_comparable(run, device, versions) and results.keys() >= set(wanted.least):
                seconds = _alike_s(results.values())
                configurations = {name: c for name in seconds if (c := results[name].configuration) is not None}
                return Together(run_id, at, seconds, configurations)
        return None

    def slower(self, cases: Sequence[CaseTrend]) -> tuple[CaseTrend, ...]:
        """Those of the cases that are slower than at their best level, the largest slow-down first, with what changed at the same
        time."""
        slower = [(case.trend.regression.ratio, case) for case in cases if case.trend.regression is not None]
        return tuple(self._explained(case) for _, case in sorted(slower, key=itemgetter(0), reverse=True))

    def _explained(self, case: CaseTrend) -> CaseTrend:
        """The case with the machines and versions of the runs on both sides of its changes."""
        indices = [change.index for change in (*case.trend.changes, case.trend.unconfirmed) if change is not None]
        points = case.trend.points
        run_ids = {points[i].run_id for index in indices for i in (index - 1, index)}
        machines = self._store.runs.environments(sorted(run_ids))
        explained = [replace(p, provenance=(*p.provenance, *_components(machines.get(p.run_id)))) for p in points]
        return replace(case, trend=trend(explained))


def _headline(l2: str) -> Headline:
    check_name("L2 mode", l2, get_args(Headline))
    return cast(Headline, l2)


def _case(rows: Sequence[TimeRow], headline: Headline) -> CaseTrend | None:
    timed = [(row, time) for row in rows if (time := row.cold_s if headline == "cold" else row.warm_s) is not None]
    if not timed:
        return None
    newest = timed[-1][0]
    alike = [(row, time) for row, time in timed if row.setup == newest.setup]
    points = [
        Point(
            row.run_id,
            row.at,
            *time,
            provenance=(("source", row.digest[:8] or "–"), ("configuration", row.configuration or "–")),
        )
        for row, time in alike[-MOST_RUNS:]
    ]
    return CaseTrend(newest.problem, newest.variant, newest.setup, trend(points), len(timed) - len(alike))


def _components(machine: Environment | None) -> tuple[tuple[str, str], ...]:
    if machine is None:
        return ()
    return (
        ("driver", machine.device.driver or "–"),
        ("kernelviz", machine.kernelviz),
        *sorted(machine.versions.items()),
        ("python", machine.python),
        ("host", machine.host),
    )


def _counts(result: Result, digests: Mapping[str, str]) -> bool:
    """Whether a variant with its present source has a time, or failed in a way that it would fail again."""
    if result.source_digest is None or result.source_digest != digests.get(result.variant):
        return False
    return not isinstance(result.outcome, Failure) or result.outcome.stage not in PASSING_STAGES


def _is_comparable(run: Run, device: Device, versions: Mapping[str, str]) -> bool:
    """Whether the run has finished, in bursts, with the present driver and with these versions of what compiles kernels."""
    there = run.environment
    same = all(there.versions.get(name, version) == version for name, version in versions.items())
    return run.status == "finished" and run.method.clock == "burst" and there.device.driver == device.driver and same


def _alike_s(results: Iterable[Result]) -> dict[str, float]:
    """The cold times in seconds of those that were timed on the device, or on the host, as most of them were.

    Of one run, all times on the device count. The tracer times most calls, and events those that it changes. Calls of one kernel
    are launched alike (in graphs, or all into the stream if one has to be); only a call of several kernels may be in a graph
    beside them, where it takes up to `metrics.verdicts.LAUNCHES_APART_S` longer."""
    figures = {r.variant: cold for r in results if (cold := figure_of(r.timing, "cold")) is not None}
    on_device = {name: cold.timer in ON_DEVICE for name, cold in figures.items()}
    usual = mode(on_device.values()) if on_device else None
    return {name: cold.estimate for name, cold in figures.items() if on_device[name] == usual}
