"""Use case: how the times of cases on a device change from run to run: levels, changes and regressions. `Bench.trends`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import cast, get_args

from kernelviz.bench.summaries import Devices
from kernelviz.core import Device, Environment, Failure, Problem, Result, Stage, check_name
from kernelviz.core.problem import case_key
from kernelviz.hardware.toolchain import installed_versions
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.trend import Point, Trend, trend
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
        keys = {case_key(wanted.problem, name): name for name in wanted.digests}
        rows = [row for key in keys for row in self._store.trends.times(device.uuid, case_key=key) if row.cold_s]
        newest = sorted({(row.at, row.run_id) for row in rows if row.setup.startswith("burst")}, reverse=True)
        for at, run_id in newest:
            if not self._as_now(run_id, device):
                continue
            results = {r.variant: r for r in self._store.results.of_cases(run_id, list(keys)).values()}
            if all(_counts(results.get(name), wanted.digests[name]) for name in wanted.least):
                same = {row.variant: row for row in rows if row.run_id == run_id}
                setup = _commonest([row.setup for row in same.values()])
                compared = {
                    name: row
                    for name, row in same.items()
                    if row.setup == setup and _counts(results.get(name), wanted.digests[name])
                }
                return Together(
                    run_id,
                    at,
                    {name: row.cold_s[0] for name, row in compared.items() if row.cold_s is not None},
                    {name: c for name in compared if (c := results[name].configuration) is not None},
                )
        return None

    def _as_now(self, run_id: str, device: Device) -> bool:
        """Whether the run has finished, with the driver of now and with these versions of what compiles kernels."""
        if self._store.runs.row(run_id).status != "finished":
            return False
        there = self._store.runs.environments([run_id]).get(run_id)
        here = installed_versions(COMPILERS)
        return (
            there is not None
            and there.device.driver == device.driver
            and all(there.versions.get(name, version) == version for name, version in here.items())
        )

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


def _counts(result: Result | None, digest: str) -> bool:
    """Whether a variant with this source has a time, or failed in a way that it would fail again."""
    if result is None or result.source_digest != digest:
        return False
    return not isinstance(result.outcome, Failure) or result.outcome.stage not in PASSING_STAGES


def _commonest(values: Sequence[str]) -> str:
    return max(dict.fromkeys(values), key=values.count, default="")
