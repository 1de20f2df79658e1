"""Checks of the verdicts: the same call twice, and slow-downs of known size, many times each."""

from collections import Counter
from statistics import median

import torch

from kernelviz.measure.selftest import kernels
from kernelviz.measure.selftest.workbench import Finding, NotHere, Workbench, probe
from kernelviz.measure.timing.timer import BoundLaunch, Timed
from kernelviz.metrics.verdicts import Verdict
from kernelviz.ops import Launch

A_A, A_A_QUICK = 100, 20
A_A_BUDGET_S = 0.1
"""Seconds for each of the three series of a comparison. Both sides are the same call, so no difference ends a comparison early.
With 0.25 s, a hundred of them took 51 s of a selftest of 165 s (H200), and 97 said "same"."""
FALSE_ALARMS = 1
PLANTED, PLANTED_QUICK = 20, 5
DETECTED_SHARE = 0.95


@probe("How many of the comparisons of a call with itself say faster or slower?", limit=FALSE_ALARMS, unit="count")
def a_a(at: Workbench) -> Finding:
    """Adds of 2^20 (4 us) and 2^24 (44 us) elements alternately, each compared with itself."""
    return _same(at, [at.add(2**20), at.add(2**24)], at.repeats(A_A, A_A_QUICK), A_A_BUDGET_S)


@probe("How many of the comparisons of a call with itself say faster or slower?", limit=FALSE_ALARMS, unit="count")
def a_a_on_processor(at: Workbench) -> Finding:
    """An add of 2^20 elements compared with itself; it has its own name because the GPU's check makes five times as many."""
    return _same(at, [at.add(2**20)], at.repeats(A_A_QUICK, 3), budget_s=0.5)


def _same(at: Workbench, calls: list[Timed], count: int, budget_s: float = 1.0) -> Finding:
    verdicts = [at.compared(one, one, budget_s) for one in (calls[i % len(calls)] for i in range(count))]
    said = Counter(v.kind for v in verdicts)
    wrong = said["faster"] + said["slower"]
    figures = {"comparisons": float(count)} | {
        outcome: float(said[outcome]) for outcome in ("same", "unclear", "faster", "slower")
    }
    figures["largest_difference_fraction"] = max(abs(v.ratio.estimate - 1) for v in verdicts if v.ratio)
    return Finding(float(wrong), figures)


@probe(
    "How often is a copy of 1 % more bytes found slower, at 200 us?",
    limit=DETECTED_SHARE,
    unit="fraction",
    at_most=False,
)
def planted_1_percent_of_200_us(at: Workbench) -> Finding:
    """About a hundred full waves of blocks compared with 1 % more."""
    return _planted_copy(at, 200e-6, 0.01)


@probe(
    "How often is a copy of 1 % more bytes found slower, at 1 ms?", limit=DETECTED_SHARE, unit="fraction", at_most=False
)
def planted_1_percent_of_1_ms(at: Workbench) -> Finding:
    """About five hundred full waves of blocks compared with 1 % more."""
    return _planted_copy(at, 1e-3, 0.01)


@probe(
    "How often is a copy of 2 % more bytes found slower, at 20 us?",
    limit=DETECTED_SHARE,
    unit="fraction",
    at_most=False,
)
def planted_2_percent_of_20_us(at: Workbench) -> Finding:
    """About ten waves of blocks: 2 % more bytes are a fifth of a wave, in the middle of a wave."""
    return _planted_copy(at, 20e-6, 0.02)


def _planted_copy(at: Workbench, time_s: float, more: float) -> Finding:
    """A copy of about `time_s` compared with a copy of `more` (a fraction) vectors, in the same buffers, by the same kernel."""
    wave = kernels.wave_vectors(at.where)
    pilot = 64 * wave
    rate = pilot / at.figure(at.timed(BoundLaunch(_copy(at, pilot)[0])), 0.2).estimate
    few = _whole_waves(time_s * rate, wave, more)
    many = round(few * (1 + more))
    if 2 * many * kernels.VECTOR_BYTES > at.room_bytes:
        raise NotHere(f"a copy of {time_s * 1e6:.0f} us does not fit an eighth of the device's memory")
    greater, source, target = _copy(at, many)
    moved = _moved(source, target, many)
    calls = [at.timed(BoundLaunch(launch)) for launch in (kernels.copy(source, target, few), greater)]
    verdicts = [at.compared(calls[1], calls[0]) for _ in range(at.repeats(PLANTED, PLANTED_QUICK))]
    if moved != many:
        raise RuntimeError(f"the planted copy moves {moved} vectors instead of {many}")
    planted = {"time_s": few / rate, "waves": few / wave, "planted_fraction": moved / few - 1}
    return _slower_share(verdicts, planted)


def _copy(at: Workbench, count: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    source, target = kernels.vectors(count, at.where), torch.zeros(4 * count, dtype=torch.int32, device=at.where)
    return kernels.copy(source, target, count), source, target


def _slower_share(verdicts: list[Verdict], planted: dict[str, float]) -> Finding:
    said = Counter(v.kind for v in verdicts)
    ratios = [v.ratio.estimate for v in verdicts if v.ratio]
    figures = planted | {
        "comparisons": float(len(verdicts)),
        **{outcome: float(said[outcome]) for outcome in ("slower", "unclear", "same", "faster")},
        "measured_fraction": median(ratios) - 1,
        "largest_floor_fraction": max(v.floor or 0.0 for v in verdicts),
        "most_rounds": float(max(v.rounds for v in verdicts)),
    }
    return Finding(said["slower"] / len(verdicts), figures)


@probe(
    "How often is a copy of 20 % more bytes found slower, at 5 ms?",
    limit=DETECTED_SHARE,
    unit="fraction",
    at_most=False,
)
def planted_20_percent_on_processor(at: Workbench) -> Finding:
    """A copy of at least 5 ms: with other processes on a small machine the noise floor is 6 %, so less is not claimed."""
    rate = _processor_rate(at)
    few = int(max(5e-3 * rate, 2**24)) // 4 // 100 * 100
    many = few * 120 // 100
    source, target = torch.randn(many), torch.empty(many)
    less, greater = (at.timed(BoundLaunch(_part(source, target, count))) for count in (few, many))
    verdicts = [at.compared(greater, less, 0.6) for _ in range(at.repeats(8, 2))]
    return _slower_share(verdicts, {"time_s": 4 * few / rate, "planted_fraction": many / few - 1})


def _part(source: torch.Tensor, target: torch.Tensor, count: int) -> Launch:
    read, written = source[:count], target[:count]
    return lambda: written.copy_(read)


def _processor_rate(at: Workbench) -> float:
    """Bytes per second that a copy of 64 MiB reads, the best of five."""
    source, target = torch.randn(2**24), torch.empty(2**24)
    return 4 * 2**24 / min(at.timer.calls(BoundLaunch(lambda: target.copy_(source))).eager(5)[0])


def _whole_waves(count: float, wave: int, more: float) -> int:
    """A number of vectors near `count` for which the share `more` is whole waves too, where the copy is long enough.

    >>> _whole_waves(95 * 64, 64, 0.01) // 64, _whole_waves(9.3 * 64, 64, 0.02) / 64
    (100, 9.5)
    """
    unit = round(1 / more) * wave
    if count > 0.75 * unit:
        return max(1, round(count / unit)) * unit
    return int((int(count / wave) + 0.5) * wave)


def _moved(source: torch.Tensor, target: torch.Tensor, count: int) -> int:
    """The number of vectors that the copy of `count` vectors really writes."""
    target.fill_(-1)
    kernels.copy(source, target, count)()
    equal = (source == target).view(-1, 4).all(dim=1)
    return int(equal.sum())
