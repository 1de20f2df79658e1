"""What the clock of the judge says about the time by an untrusted worker.

A judge cannot see when a kernel begins and ends. It sees how long it takes until the outputs for inputs that nobody knew before
are there: the launch, the call, and the copy of the outputs. So the call took at most that, less the copy, and a time by the
worker that is much shorter is false. What lies in between may be the launch."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from kernelviz.core import (
    Accuracy,
    ClockConfirmed,
    ClockUnverified,
    Conditions,
    Cost,
    DeviceKind,
    Failure,
    Note,
    Result,
)
from kernelviz.core.reasons import ClockContradicted, NotJudged

CONFIRMED_SHARE = 0.1
"""A time is confirmed if the judge's is longer by at most this share of it."""
EXCHANGE_S: Mapping[DeviceKind, float] = MappingProxyType({"cuda": 300e-6, "cpu": 300e-6})
"""What a launch from Python, the wait for the device, changes from one process to the other and the signals between them may take
on any machine. Hosts of one H200 mostly need less than 300 µs; one of them needed 417, and a host of two 335."""
EXCHANGES, MOST_EXCHANGE_S = 1.5, 1.2e-3
"""Where an honest worker needed more on this machine, EXCHANGES times that is allowed, at most MOST_EXCHANGE_S, because a judge
that allows everything finds nothing."""
VARIES: Mapping[DeviceKind, float] = MappingProxyType({"cuda": 0.15, "cpu": 1.0})
"""The share by which the shortest of the judge's calls may be longer than the worker's time for other reasons: caches, other
load."""


def measured_apart(first: Result, second: Result) -> bool:
    """Whether both results are of untrusted variants, which are measured in processes of their own."""
    return all(any(isinstance(n, ClockConfirmed | ClockUnverified) for n in _notes(one)) for one in (first, second))


def _notes(result: Result) -> tuple[Note, ...]:
    return result.conditions.notes if result.conditions else ()


def is_contradicted(result: Result) -> bool:
    """Whether the judge contradicts the time of this result."""
    outcome = result.outcome
    return isinstance(outcome, Failure) and any(isinstance(r, ClockContradicted) for r in outcome.reasons)


def clock_finding(
    time_s: float, times_s: Sequence[float], copy_s: float, kind: DeviceKind, exchange_s: float | None = None
) -> ClockConfirmed | ClockUnverified | ClockContradicted:
    """Compare a time by the worker with the judge's `times_s` of calls, whose outputs take `copy_s` to copy.

    `exchange_s`: what a call of an honest worker cost by the judge's clock beyond the call itself; None where that is not known.

    >>> clock_finding(1e-3, [1.3e-3, 1.25e-3], 0.2e-3, "cuda").at_most_s
    0.00105
    >>> type(clock_finding(10e-6, [60e-6], 5e-6, "cuda")).__name__, type(clock_finding(10e-6, [1e-3], 5e-6, "cuda")).__name__
    ('ClockUnverified', 'ClockContradicted')
    """
    at_most_s = max(time_s, min(times_s) - copy_s)
    hidden_s = at_most_s - time_s
    if hidden_s <= CONFIRMED_SHARE * time_s:
        return ClockConfirmed(at_most_s=at_most_s, trials=len(times_s))
    if hidden_s > VARIES[kind] * time_s + _allowed_s(kind, exchange_s):
        return ClockContradicted(time_s=time_s, judged_s=min(times_s) - copy_s, copy_s=copy_s, trials=len(times_s))
    return ClockUnverified(at_most_s=at_most_s, trials=len(times_s))


def _allowed_s(kind: DeviceKind, exchange_s: float | None) -> float:
    return max(EXCHANGE_S[kind], min(MOST_EXCHANGE_S, EXCHANGES * (exchange_s or 0.0)))


def judged_result(
    result: Result,
    times_s: Sequence[float],
    copy_s: float,
    accuracy: Accuracy | None,
    error: str,
    kind: DeviceKind,
    cost: Cost | None,
    exchange_s: float | None = None,
) -> Result:
    """The result of an untrusted worker with what the judge found in place of what the worker said about itself.

    `accuracy`: of the outputs for the judge's inputs. `error`: why the case could not be judged. `cost`: of the problem.
    `exchange_s`: as in `clock_finding`.
    """
    result = msgspec.structs.replace(result, cost=cost)
    timing = result.timing
    if timing is None or timing.device_cold_s is None:
        return result  # failed already
    if error or accuracy is None or not times_s:
        failure = Failure(stage="wrong", reasons=(NotJudged(),), message=error, timing=timing)
        return msgspec.structs.replace(result, outcome=failure, accuracy=None)
    if not accuracy.passed:
        failure = Failure(stage="wrong", reasons=accuracy.reasons, timing=timing)
        return msgspec.structs.replace(result, outcome=failure, accuracy=accuracy)
    finding = clock_finding(timing.device_cold_s.estimate, times_s, copy_s, kind, exchange_s)
    if isinstance(finding, ClockContradicted) and result.problem.direction == "backward":
        # A backward pass may read what the forward pass left, which is computed again for the judge's inputs and in its time.
        finding = ClockUnverified(at_most_s=finding.judged_s, trials=finding.trials)
    if isinstance(finding, ClockContradicted):
        failure = Failure(stage="impossible", reasons=(finding,), timing=timing)
        return msgspec.structs.replace(result, outcome=failure, accuracy=accuracy)
    conditions = result.conditions or Conditions()
    conditions = msgspec.structs.replace(conditions, notes=(*conditions.notes, finding))
    return msgspec.structs.replace(result, accuracy=accuracy, conditions=conditions)
