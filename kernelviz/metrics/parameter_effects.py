"""What each parameter of a tuning is worth: the share of the spread of times that its values explain alone.

Main effects, one parameter at a time, over the configurations that are correct and have a time: the variance between the mean
logarithms of the groups with one value, as a share of the whole variance. A parameter with many values explains some of any
spread by chance, so the share is corrected for that (epsilon squared, Kelley 1935): what as many groups would explain of the
variance that all parameters leave is subtracted. What parameters do together (interactions) and noise are not in any share, so
the shares need not add up to 1; with a random sample of the space, the groups are not balanced either, and shares may overlap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median, pvariance
from typing import Literal

from kernelviz.core.configuration import Value
from kernelviz.metrics.configurations import Configuration, ConfigurationSpace

FEWEST_EACH = 5
"""With fewer configurations for each planned value on the average, the share of a parameter is not reliable."""
ALIKE = 0.01
"""If all times are within this fraction of their median, there is nothing to explain."""
EffectLimit = Literal["early", "few", "alike", "one_value"]
"""Why a parameter has no share: the search is far from its end; too few configurations; all times are alike; the configurations
have one value of it."""


@dataclass(frozen=True, slots=True)
class ValueEffect:
    """The configurations with one value of a parameter. `best_s`: the shortest time with it; `mean_s`: the geometric mean."""

    value: Value
    count: int
    best_s: float
    mean_s: float


@dataclass(frozen=True, slots=True)
class ParameterEffect:
    """A parameter. `share`: of the variance of log time that it explains, at least 0 and corrected for chance; None for `limit`.
    `spread`: the largest mean time of its values over the smallest one. `values`: in their order."""

    name: str
    share: float | None
    limit: EffectLimit | None
    spread: float
    values: tuple[ValueEffect, ...]


@dataclass(frozen=True, slots=True)
class ParameterEffects:
    """All parameters, the one that explains most first. `count`: the configurations with a time. `estimated`: those of them
    that were stopped after one block. `factor`: the longest time over the shortest. `rest`: the share that no parameter
    explains alone: interactions and noise; None where the shares add up to more than 1 or are not known. `noise`: the share of
    the spread that the intervals of the times explain, at most 1; None if too few have one."""

    parameters: tuple[ParameterEffect, ...]
    count: int
    estimated: int
    factor: float | None
    rest: float | None
    noise: float | None = None


def parameter_effects(space: ConfigurationSpace) -> ParameterEffects:
    """What each parameter explains of the spread of times."""
    timed = [c for c in space.timed if c.time_s is not None and c.time_s > 0]
    groups = {name: _groups(name, timed) for name in space.parameters}
    logs = {name: [[log(c.time_s or 1.0) for c in group] for group in some] for name, some in groups.items()}
    limits = {name: _limit(some, space, name) for name, some in logs.items()}
    shares = _shares({name: some for name, some in logs.items() if limits[name] is None})
    effects = sorted(
        (_effect(name, some, shares.get(name), limits[name]) for name, some in groups.items()),
        key=lambda e: (-(e.share or 0.0), -e.spread, e.name),
    )
    unknown = any(e.limit in ("early", "few", "alike") for e in effects)
    rest = 1.0 - sum(shares.values())
    times = [c.time_s or 0.0 for c in timed]
    return ParameterEffects(
        parameters=tuple(effects),
        count=len(timed),
        estimated=sum(c.state == "stopped" for c in timed),
        factor=max(times) / min(times) if times else None,
        rest=rest if shares and not unknown and rest >= 0 else None,
        noise=_noise(timed),
    )


def _noise(timed: Sequence[Configuration]) -> float | None:
    """The mean variance of a log time by its interval, over the variance of all log times. A 95 % interval is 3.92 standard
    errors wide."""
    known = [log(c.high_s / c.low_s) / 3.92 for c in timed if c.low_s and c.high_s]
    logs = [log(c.time_s or 1.0) for c in timed]
    if len(known) < FEWEST_EACH or 2 * len(known) < len(timed) or (spread := pvariance(logs)) <= 0:
        return None
    return min(1.0, fmean(error**2 for error in known) / spread)


def _groups(name: str, timed: Sequence[Configuration]) -> list[list[Configuration]]:
    """The configurations by their value of a parameter."""
    groups: dict[str, list[Configuration]] = {}
    for configuration in timed:
        if name in configuration.values:
            groups.setdefault(repr(configuration.values[name]), []).append(configuration)
    return list(groups.values())


def _effect(
    name: str, groups: Sequence[Sequence[Configuration]], share: float | None, limit: EffectLimit | None
) -> ParameterEffect:
    values = tuple(_value(name, group) for group in groups)
    means = [v.mean_s for v in values] or [1.0]
    return ParameterEffect(name, share, limit, max(means) / min(means), _in_order(values))


def _value(name: str, group: Sequence[Configuration]) -> ValueEffect:
    times_s = [c.time_s or 1.0 for c in group]
    return ValueEffect(group[0].values[name], len(group), min(times_s), exp(fmean(map(log, times_s))))


def _in_order(values: tuple[ValueEffect, ...]) -> tuple[ValueEffect, ...]:
    numbers = all(isinstance(v.value, int | float) and not isinstance(v.value, bool) for v in values)
    return tuple(sorted(values, key=lambda v: float(v.value))) if numbers else values


def _limit(logs: Sequence[Sequence[float]], space: ConfigurationSpace, name: str) -> EffectLimit | None:
    every = [value for group in logs for value in group]
    planned = max(len(logs), space.planned_values.get(name, 0))
    if planned < 2 or (len(logs) < 2 and space.is_nearly_complete):
        return "one_value"
    if not space.is_nearly_complete:
        return "early"
    if len(every) < FEWEST_EACH * planned:
        return "few"
    middle = median(every)
    return "alike" if max(abs(value - middle) for value in every) <= ALIKE else None


def _shares(logs: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, float]:
    """Epsilon squared of each parameter, at least 0. The mean square of the error is that of what all parameters leave
    together; of a sample in which they overlap so much that nothing is left, what the parameter itself leaves.

    >>> shares = _shares({"a": [[0.0, 0.0], [1.0, 1.0]], "b": [[0.0, 1.0], [0.0, 1.0]]})
    >>> {name: round(share, 2) for name, share in shares.items()}
    {'a': 1.0, 'b': 0.0}
    """
    between: dict[str, float] = {}
    total, count = 0.0, 0
    for name, groups in logs.items():
        every = [value for group in groups for value in group]
        mean = fmean(every)
        total, count = sum((value - mean) ** 2 for value in every), len(every)
        between[name] = sum(len(group) * (fmean(group) - mean) ** 2 for group in groups)
    if total <= 0:
        return dict.fromkeys(logs, 0.0)
    left, freedom = total - sum(between.values()), count - 1 - sum(len(groups) - 1 for groups in logs.values())
    shares = {}
    for name, groups in logs.items():
        own = (total - between[name]) / max(1, count - len(groups))
        error = left / freedom if left >= 0 and freedom > 0 else own
        shares[name] = max(0.0, (between[name] - (len(groups) - 1) * error) / total)
    return shares
