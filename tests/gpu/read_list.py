"""Read a file of `list_a.py`: how own variants do against libraries, and auto against the best own variant.

    python tests/gpu/read_list.py FILE.jsonl[.gz] [--again FILE] [--rules [--candidates 5]] [--by-op]

With --rules, the rules of this checkout choose again among the measured variants, instead of what was chosen at that time. So a
rule can be changed and judged without a GPU. --candidates 5: the fastest of the first five variants of the rule, by these
times; `kernelviz.best` measures as many, but in a run of its own. --again: a file of `list_a.py --again`, of which a problem
replaces the same one. --by-op adds a line for each op and direction, the most
misses first.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawn_list import is_memory_bound

from kernelviz.core import Problem
from kernelviz.metrics.library_comparison import MOST_SLOWER
from kernelviz.metrics.statistics import geometric_mean
from kernelviz.ops import op_named
from kernelviz.ops.catalog.best import Card
from kernelviz.ops.catalog.choice import candidates

LEVEL, WORST = 0.98, 0.85
LISTED = 15


@dataclass(frozen=True, slots=True)
class Line:
    """A problem of the list. `ratio`: best library over best own variant; `auto_ratio`: best own variant over auto.
    `rule_ratio`: the same for the first variant of the rule, where auto was measured; else None."""

    number: int
    problem: Problem
    card: str
    own_s: dict[str, float]
    library_s: dict[str, float]
    auto: str | None
    verdict: str | None
    by_rule: str | None = None

    @property
    def ratio(self) -> float | None:
        return min(self.library_s.values()) / min(self.own_s.values()) if self.own_s and self.library_s else None

    @property
    def level(self) -> bool:
        """Whether own is as fast as the library: by the ratio, or because there is a verdict and it is not "slower"."""
        return self.ratio is not None and (self.ratio >= LEVEL or self.verdict not in (None, "slower"))

    @property
    def missed(self) -> bool:
        """Whether a library is faster or `far` faster, or auto chooses a variant that is slower than another one."""
        slow_choice = self.auto_ratio is not None and self.auto_ratio < 1 / MOST_SLOWER
        return slow_choice or self.far or (self.ratio is not None and not self.level)

    @property
    def far(self) -> bool:
        """Whether own is below WORST, whatever the verdict."""
        return self.ratio is not None and self.ratio < WORST

    @property
    def auto_ratio(self) -> float | None:
        """0 where auto has no correct time and another own variant has one."""
        return self._ratio_of(self.auto or "")

    @property
    def rule_ratio(self) -> float | None:
        return None if self.by_rule is None else self._ratio_of(self.by_rule)

    def _ratio_of(self, variant: str) -> float | None:
        if not self.own_s:
            return None
        seconds = self.own_s.get(variant)
        return 0.0 if seconds is None else min(self.own_s.values()) / seconds


def read(file: Path, *, rules: bool = False, candidates: int = 1) -> list[Line]:
    """The lines of the file. `rules`: with the fastest of the first `candidates` variants of this checkout's rules as auto."""
    return [_line(values, rules=rules, most=candidates) for values in values_of(file)]


def values_of(file: Path) -> list[dict[str, Any]]:
    """The lines of the file, which may be packed by gzip, as they were written."""
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
    return [json.loads(line) for line in text.splitlines()]


def replaced(lines: Sequence[Line], again: Sequence[Line]) -> list[Line]:
    """The lines, with those of `again` in place of the same problems, where these have times. Errors: ValueError for a problem
    that is not among the lines."""
    numbered = {line.number: line for line in lines}
    for line in again:
        if line.number not in numbered or numbered[line.number].problem != line.problem:
            raise ValueError(f"the list has no problem {line.number} {line.problem.key}")
        if line.ratio is not None:
            numbered[line.number] = line
    return list(numbered.values())


def _line(values: dict[str, Any], *, rules: bool, most: int) -> Line:
    problem = Problem(**{name: values[name] for name in ("op", "sizes", "dtype", "compute", "direction")})
    return Line(
        number=values["number"],
        problem=problem,
        card=values["card"],
        own_s=values["own_s"],
        library_s=values["library_s"],
        auto=_by_rules(problem, values, most) if rules else values["auto"],
        verdict=values["verdict"],
        by_rule=None if rules else values.get("by_rule"),
    )


def _by_rules(problem: Problem, values: dict[str, Any], most: int) -> str | None:
    card = Card(
        compute_capability=tuple(values["compute_capability"]),
        multiprocessors=values["multiprocessors"],
        l2_bytes=values["l2_bytes"] or 0,
    )
    names = (variant.name for variant in candidates(op_named(problem.op), problem, card))
    unavailable = {name for name, failure in values["failed"].items() if failure["stage"] == "unavailable"}
    first = [name for name in names if name not in unavailable][:most]
    return min(first, key=lambda name: values["own_s"].get(name, math.inf), default=None)


@dataclass(frozen=True, slots=True)
class Shares:
    """How own variants and auto do on some problems.

    `compared`: those with a time on both sides. Of these, `at_least` have a ratio of LEVEL or more, `level` have one or are not
    called slower, and `far` are below WORST. `auto_mean`: the geometric mean of library / auto, where auto has a time. `near` of
    the `chosen`: those in which auto is within MOST_SLOWER of the best own variant. `near_rule` of the `ruled`: the same for the
    rule's first variant alone. None where no problem has a time."""

    problems: int
    compared: int
    mean_ratio: float | None
    median_ratio: float | None
    at_least: int
    level: int
    far: int
    least_ratio: float | None
    auto_mean: float | None
    chosen: int
    near: int
    least_auto_ratio: float | None
    ruled: int
    near_rule: int

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Shares:
        compared = [line for line in lines if line.ratio is not None]
        ratios = [line.ratio for line in compared if line.ratio is not None]
        autos = [line.auto_ratio for line in lines if line.auto_ratio is not None]
        ruled = [line.rule_ratio for line in lines if line.rule_ratio is not None]
        return cls(
            problems=len(lines),
            compared=len(compared),
            mean_ratio=geometric_mean(ratios),
            median_ratio=statistics.median(ratios) if ratios else None,
            at_least=sum(ratio >= LEVEL for ratio in ratios),
            level=sum(line.level for line in compared),
            far=sum(line.far for line in compared),
            least_ratio=min(ratios, default=None),
            auto_mean=geometric_mean(
                [line.ratio * line.auto_ratio for line in compared if line.ratio and line.auto_ratio]
            ),
            chosen=len(autos),
            near=sum(ratio >= 1 / MOST_SLOWER for ratio in autos),
            least_auto_ratio=min(autos, default=None),
            ruled=len(ruled),
            near_rule=sum(ratio >= 1 / MOST_SLOWER for ratio in ruled),
        )


def summary(lines: Sequence[Line]) -> list[str]:
    """The figures of these problems, a sentence each."""
    of = Shares.of(lines)
    if of.mean_ratio is None:
        return [f"{of.problems} problems, none with a correct time of an own variant and of a library"]
    alone = (
        [f"the rule alone: {of.near_rule} of {of.ruled} ({100 * of.near_rule / of.ruled:.1f} %)"] if of.ruled else []
    )
    return [
        f"{of.problems} problems, {of.compared} compared: geometric mean of best library / own {of.mean_ratio:.3f}",
        f"{of.level} of {of.compared} ({100 * of.level / of.compared:.1f} %) at least {LEVEL} by the verdict rule, "
        f"{of.far} below {WORST}",
        f"auto within {100 * (MOST_SLOWER - 1):.0f} % of the best own variant: {of.near} of {of.chosen} "
        f"({100 * of.near / of.chosen:.1f} %), {of.least_auto_ratio or 0:.3f} of it at the least",
        *alone,
    ]


def worst(lines: Sequence[Line]) -> list[str]:
    """The lowest ratios of own and library, and of auto."""
    by_ratio = sorted((line for line in lines if line.ratio is not None), key=lambda line: line.ratio or 0)
    by_auto = sorted((line for line in lines if line.auto_ratio is not None), key=lambda line: line.auto_ratio or 0)
    misses = [line for line in by_ratio if line.far or not line.level][:LISTED]
    slow = [line for line in by_auto if (line.auto_ratio or 0) < 1 / MOST_SLOWER][:LISTED]
    return [
        *(
            f"  own {line.ratio:.3f}  {line.problem.key}: {_fastest(line.own_s)}, {_fastest(line.library_s)}"
            for line in misses
        ),
        *(
            f"  auto {line.auto_ratio:.3f}  {line.problem.key}: {line.auto}, best {_fastest(line.own_s)}"
            for line in slow
        ),
    ]


def _fastest(times_s: dict[str, float]) -> str:
    name = min(times_s, key=lambda one: times_s[one])
    return f"{name} {times_s[name] * 1e6:.2f} µs"


def report(lines: Sequence[Line]) -> list[str]:
    """What is printed: for each card, memory-bound ops and the others."""
    text = []
    for card in dict.fromkeys(line.card for line in lines):
        for bound in (True, False):
            part = [x for x in lines if x.card == card and is_memory_bound(op_named(x.problem.op)) is bound]
            if part:
                text += [
                    f"{card}, {'memory-bound' if bound else 'compute-bound'} ops",
                    *summary(part),
                    *worst(part),
                    "",
                ]
    return text


def by_op(lines: Sequence[Line]) -> list[str]:
    """A line for each op and direction: its problems, those in which a library is faster, and those in which auto is slower."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(f"{line.problem.op} {line.problem.direction}", []).append(line)
    rows = []
    for name, some in groups.items():
        compared = [line for line in some if line.ratio is not None]
        slower = sum(not line.level for line in compared)
        worst = sum((line.ratio or 0) < WORST for line in compared)
        slow = sum(line.auto_ratio is not None and line.auto_ratio < 1 / MOST_SLOWER for line in some)
        row = f"{name:34} {len(some):5} {slower:7} {worst:6} {slow:6}"
        rows.append((-(slower + slow) / len(some), row))
    return [f"{'op':34} {'n':>5} {'slower':>7} {'<' + str(WORST):>6} {'auto':>6}", *(row for _, row in sorted(rows))]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--candidates", type=int, default=1)
    parser.add_argument("--by-op", action="store_true")
    parser.add_argument("--again", type=Path)
    given = parser.parse_args(arguments)
    lines = read(given.file, rules=given.rules, candidates=given.candidates)
    if given.again is not None:
        lines = replaced(lines, read(given.again, rules=given.rules, candidates=given.candidates))
    print("\n".join([*report(lines), *(by_op(lines) if given.by_op else ())]))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
