"""Cases that two processes measured, as figures: what intervals and quality levels are judged by.

``python tests/repeats.py`` prints the rates that docs/measuring.md states.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernelviz.core import Accuracy, Block, Conditions, Figure, Problem, Result, Timing
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.quality import QualityLevel, quality
from kernelviz.metrics.statistics import block_means, figure_interval

RECORDED = Path(__file__).with_name("h200_repeats.json.gz")
"""566 cases of add, rmsnorm and matmul on one H200 (2026-11-23), each in two processes that took turns with others. `means` are
5000 times the logarithm of a block's mean over the estimate, `slow` the numbers of blocks with a clock 1 % below the first."""
HZ, LOW_HZ = 1.98e9, 1.95e9
PASSED = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.1, seeds=3)
QUIET = Conditions(sm_clock_hz=HZ, power_w=120.0, temperature_c=36.0, other_processes=0)


def figure(means: Any, clocks_hz: Any = None, *, like: Figure | None = None, **named: Any) -> Figure:
    """A figure whose blocks have these means. A block is one sample here; `size` calls of it are kept in `buffers`."""
    clocks = [HZ] * len(means) if clocks_hz is None else clocks_hz
    size = like.blocks[0].size if like and like.blocks else named.pop("size", 1)
    samples = tuple(float(m) for m in means for _ in range(size))
    blocks = tuple(
        Block(size=size, started_s=float(i), clock_hz=hz, round=i)
        for i, hz in zip(range(len(means)), clocks, strict=True)
    )
    interval = figure_interval(samples, blocks)
    base = like or Figure(estimate=1.0, timer="cupti", launch="graph", **named)
    return msgspec.structs.replace(
        base, estimate=interval.estimate, low=interval.low, high=interval.high, samples=samples, blocks=blocks
    )


def result(cold: Figure) -> Result:
    return Result(
        problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"),
        variant="v",
        outcome=Timing(device_cold_s=cold),
        accuracy=PASSED,
        conditions=QUIET,
    )


def level(cold: Figure) -> QualityLevel:
    rated = quality(result(cold), clock="burst")
    assert rated is not None
    return rated.level


def shown(cold: Figure) -> Figure:
    """The figure with the interval that pages show."""
    found = figure_of(Timing(device_cold_s=cold), "cold")
    assert found is not None
    return found


@dataclass(frozen=True)
class Repeated:
    """A case and its figures in two processes."""

    name: str
    first: Figure
    second: Figure


@cache
def repeated() -> tuple[Repeated, ...]:
    cases = json.loads(gzip.decompress(RECORDED.read_bytes()))["cases"]
    return tuple(
        Repeated(f"{c['op']} {c['variant']} {c['sizes']}", *(_recorded(one) for one in c["processes"])) for c in cases
    )


def _recorded(one: dict[str, Any]) -> Figure:
    means = one["estimate_s"] * np.exp(np.array(one["means"]) / 5000)
    slow = set(one["slow"])
    return figure(
        means,
        [LOW_HZ if i in slow else HZ for i in range(len(means))],
        size=one["size"],
        buffers=one["buffers"],
        correction_s=one["correction_s"],
    )


def half(one: Figure) -> float:
    width = one.half_width
    assert width is not None
    return width


def inside(first: Figure, second: Figure) -> bool:
    """Whether the two estimates differ by no more than the interval of their difference."""
    return abs(math.log(second.estimate / first.estimate)) <= math.hypot(half(first), half(second))


def good_pairs() -> Iterator[Repeated]:
    return (r for r in repeated() if "suspect" not in (level(r.first), level(r.second)))


def planted() -> Iterator[tuple[str, bool, bool]]:
    """Causes planted in recorded series: the cause, whether it moved the time by more than its interval, and whether it was
    missed (it did, no interval contains the true time, and the level is not suspect).

    A change in time makes 20 to 65 % of the blocks slower, before or after it; a second group is mixed in (35 to 65 %, 1.3 times
    and more); the clock is lower in 20 to 65 % of the blocks, which are slower in proportion.
    """
    chosen = np.random.default_rng(5)
    for true in [f for r in repeated() for f in (r.first, r.second) if level(f) == "good"][::11]:
        means = block_means(true.samples or (), true.blocks or ())
        count = len(means)
        for share in (0.2, 0.35, 0.5, 0.65):
            for more in (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 1.0, 10.0):
                number = max(1, round(count * share))
                some = chosen.permutation(count)[:number]
                clocks = np.full(count, HZ)
                clocks[some[some > 0]] = HZ / (1 + more)
                cases = {"late": (slice(count - number, None), None), "early": (slice(number), None)}
                if more >= 0.3 and share > 0.3:
                    cases["mixed"] = (some, None)
                if 0.02 <= more <= 0.3:
                    cases["clock"] = (some, clocks)
                for cause, (where, hz) in cases.items():
                    slowed = means.copy()
                    slowed[where] *= 1 + more
                    made = figure(slowed, hz, like=true)
                    bias = abs(math.log(made.estimate / true.estimate))
                    counts = bias > half(shown(true))
                    yield cause, counts, counts and bias > half(shown(made)) and level(made) != "suspect"


def report() -> Iterator[str]:
    every, good = repeated(), list(good_pairs())
    levels = [level(f) for r in every for f in (r.first, r.second)]
    yield f"{len(every)} cases in two processes each; suspect: {levels.count('suspect')} of {len(levels)} times"
    yield f"bootstrap alone: {np.mean([inside(r.first, r.second) for r in good]):.3f} inside"
    both = [inside(shown(r.first), shown(r.second)) for r in good]
    yield f"as shown: {sum(both)} of {len(both)} = {np.mean(both):.3f} inside"
    for number, name in enumerate(("cases of even number", "cases of odd number")):
        yield f"  {name}: {np.mean(both[number::2]):.3f}"
    for least_s, most_s in ((0, 5e-6), (5e-6, 20e-6), (20e-6, 120e-6), (120e-6, 1e-3), (1e-3, 1)):
        some = [ok for ok, r in zip(both, good, strict=True) if least_s <= r.first.estimate < most_s]
        yield f"  {least_s * 1e6:.0f} to {most_s * 1e6:.0f} us: {sum(some)} of {len(some)}"
    wider = [half(shown(f)) / half(f) for r in good for f in (r.first, r.second) if half(f)]
    yield f"interval as shown over the bootstrap's: median {np.median(wider):.2f}"
    found = list(planted())
    for cause in ("late", "early", "mixed", "clock"):
        missed = [miss for of, counts, miss in found if of == cause and counts]
        yield f"planted, {cause}: {sum(missed)} of {len(missed)} missed"
    missed = [miss for _, counts, miss in found if counts]
    yield f"planted: {sum(missed)} of {len(missed)} = {np.mean(missed):.3f} missed"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
