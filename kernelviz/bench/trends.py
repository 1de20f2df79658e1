"""Use case: how the times of cases on a device change from run to run: levels, changes and regressions. `Bench.trends`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import cast, get_args

from kernelviz.bench.summaries import Devices
from kernelviz.core import Device, Environment, Problem, check_name
from kernelviz.core.problem import case_key
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.trend import Point, Trend, trend
from kernelviz.store import Store
from kernelviz.store.trends import TimeRow

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

    def together(
        self, device_id: str, problem: Problem, digests: Mapping[str, str], *, least: Collection[str]
    ) -> tuple[str, str, dict[str, float]] | None:
        """Of the newest run on the device that planned the problem for all variants of `least`: its id, when it was begun, and
        the cold times in seconds of its right variants. None if there is no such run with a time. `digests`: the sources that
        variants must have, by name; a run in which one of them had another source does not count. Raises UnknownName."""
        uuid = self._devices[device_id].uuid
        rows = [
            row
            for name in digests
            for row in self._store.trends.times(uuid, case_key=case_key(problem, name))
            if row.cold_s is not None
        ]
        by_run = groupby(sorted(rows, key=attrgetter("at", "run_id"), reverse=True), key=attrgetter("run_id", "at"))
        for (run_id, at), group in by_run:
            same = {row.variant: row for row in group}
            as_now = all(row.digest == digests[name] for name, row in same.items())
            if as_now and set(least) <= set(self._store.runs.variants(run_id)):
                return run_id, at, {name: row.cold_s[0] for name, row in same.items() if row.cold_s is not None}
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
