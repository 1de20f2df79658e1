"""Cases that two processes measured, as figures: what intervals and quality levels are judged by.

    python tests/repeats.py                                       prints the rates that docs/measuring.md states, of each card
    python tests/repeats.py FIRST SECOND                          prints those of two folders of `kernelviz record`
    python tests/repeats.py FIRST SECOND --write FILE --about ... keeps their block means

The folders hold runs of the same ops that two processes measured on one card (KERNELVIZ_HOME differs).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernelviz.core import Accuracy, Block, Conditions, Failure, Figure, Problem, Result, Timing
from kernelviz.formats import shipped_runs
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.quality import QualityLevel, quality
from kernelviz.metrics.statistics import block_means, figure_interval, means_by_block

RECORDED = {card: Path(__file__).with_name(f"{card}_repeats.json.gz") for card in ("h200", "h100")}
"""566 cases of add, rmsnorm and matmul on one H200 (2026-11-23), each in two processes that took turns with others, and 272 of
copy and scale on one H100 each (2026-11-26), in two processes, one after the other. `means` are 5000 times the logarithm of a
block's mean over the estimate, `slow` the numbers of blocks with a clock 1 % below the first."""
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
def repeated(card: str = "h200") -> tuple[Repeated, ...]:
    return figures_of(json.loads(gzip.decompress(RECORDED[card].read_bytes()))["cases"])


def figures_of(cases: Sequence[Any]) -> tuple[Repeated, ...]:
    """The figures of cases as a file keeps them."""
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


def cases_of(first: Path, second: Path) -> list[dict[str, Any]]:
    """Of two folders of recorded runs the cases with a correct time in both, as `RECORDED` keeps them.

    Raises ValueError for runs of different devices.
    """
    cases = []
    for name in shipped_runs.names_in(first):
        runs = [shipped_runs.load_from(folder, name) for folder in (first, second)]
        if len({run.environment.device.uuid for run in runs}) != 1:
            raise ValueError(f"{name} was measured on two devices; give folders of one device")
        later = {r.case.key: r.timing for r in runs[1].results if not isinstance(r.outcome, Failure)}
        for result in runs[0].results:
            timings = (result.timing, later.get(result.case.key))
            figures = [t.device_cold_s for t in timings if t is not None and t.device_cold_s is not None]
            if not isinstance(result.outcome, Failure) and len(figures) == len(timings):
                about = {
                    "op": result.problem.op,
                    "variant": result.variant,
                    "sizes": result.problem.sizes,
                    "correct": True,
                }
                cases.append(about | {"processes": [_kept(f) for f in figures]})
    return cases


def _kept(one: Figure) -> dict[str, Any]:
    assert one.blocks
    clocks = [b.clock_hz or math.inf for b in one.blocks]
    return {
        "estimate_s": one.estimate,
        "size": one.blocks[0].size,
        "buffers": one.buffers,
        "correction_s": one.correction_s,
        "means": [round(5000 * math.log(mean / one.estimate)) for mean in means_by_block(one)],
        "slow": [n for n, hz in enumerate(clocks) if hz < 0.99 * clocks[0]],
    }


def half(one: Figure) -> float:
    width = one.half_width
    assert width is not None
    return width


def inside(first: Figure, second: Figure) -> bool:
    """Whether the two estimates differ by no more than the interval of their difference."""
    return abs(math.log(second.estimate / first.estimate)) <= math.hypot(half(first), half(second))


def good_pairs(every: Sequence[Repeated] | None = None) -> Iterator[Repeated]:
    return (r for r in (repeated() if every is None else every) if "suspect" not in (level(r.first), level(r.second)))


def planted(every: Sequence[Repeated] | None = None) -> Iterator[tuple[str, bool, bool]]:
    """Causes planted in recorded series: the cause, whether it moved the time by more than its interval, and whether it was
    missed (it did, no interval contains the true time, and the level is not suspect).

    A change in time makes 20 to 65 % of the blocks slower, before or after it; a second group is mixed in (35 to 65 %, 1.3 times
    and more); the clock is lower in 20 to 65 % of the blocks, which are slower in proportion.
    """
    chosen = np.random.default_rng(5)
    pairs = repeated() if every is None else every
    for true in [f for r in pairs for f in (r.first, r.second) if level(f) == "good"][::11]:
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


def report(every: Sequence[Repeated]) -> Iterator[str]:
    good = list(good_pairs(every))
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
    found = list(planted(every))
    for cause in ("late", "early", "mixed", "clock"):
        missed = [miss for of, counts, miss in found if of == cause and counts]
        yield f"planted, {cause}: {sum(missed)} of {len(missed)} missed"
    missed = [miss for _, counts, miss in found if counts]
    yield f"planted: {sum(missed)} of {len(missed)} = {np.mean(missed):.3f} missed"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FIRST SECOND")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--about", default="", help="the card, the date, and how the processes took turns")
    asked = parser.parse_args(arguments)
    if len(asked.folders) not in (0, 2):
        parser.error("give two folders, or none")
    cases = cases_of(*asked.folders) if asked.folders else None
    if asked.write is not None and cases is not None:
        content = json.dumps({"about": asked.about, "cases": cases}, separators=(",", ":")).encode()
        asked.write.write_bytes(gzip.compress(content, mtime=0))
    every = [figures_of(cases)] if cases is not None else [repeated(card) for card in RECORDED]
    sys.stdout.writelines(f"{line}\n" for pairs in every for line in report(pairs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
