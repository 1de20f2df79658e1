"""The cells of the tables of docs/kernels.md: runs of docs/runs, their times, and verdicts of the product.

A table has the columns of each card beside those of the others, for the cards whose runs are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelviz.core import Problem, Result, Run, units
from kernelviz.formats import compact
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import Pair, pair_of
from kernelviz.metrics.equal_clock import EqualClock
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.library_comparison import ComparisonRow, comparison_rows
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import Row, rows
from kernelviz.metrics.statistics import Interval
from kernelviz.text import describe_verdict_reason, format_time
from kernelviz.text.sizes import format_problem

FOLDER = Path(__file__).parents[1] / "docs" / "runs"
ENDING = ".kvz"
CARDS = {"h200": "H200", "h100-80gb-hbm3": "H100"}
"""How the names of files begin, and what a table calls the card."""
UNKNOWN = "–"
Key = tuple[str, ...]
"""The first cells of a row, which are the same on every card."""
Cells = dict[Key, list[str]]
"""The other cells of the rows, for one card."""


@dataclass(frozen=True)
class Case:
    """A result with its run."""

    run: Run
    result: Result

    @property
    def row(self) -> Row:
        return next(r for r in rows(self.run, self.run.environment.roofs) if r.result == self.result)

    @property
    def time(self) -> str:
        """The time with its interval, and a mark where the product calls it unreliable."""
        known = quality(self.result, "cold", self.run.method.clock)
        mark = " ⚠" if known is not None and known.level == "suspect" else ""
        return f"{format_time(figure_of(self.result.timing, 'cold'))}{mark}"

    @property
    def named_time(self) -> str:
        return f"`{self.result.variant}` {self.time}"

    @property
    def tera_flop_per_s(self) -> str:
        rate = self.row.rate_flop_per_s
        return UNKNOWN if rate is None else f"{rate / 1e12:,.0f}" if rate >= 1e14 else f"{rate / 1e12:.2f}"

    @property
    def giga_bytes_per_s(self) -> str:
        rate = self.row.bandwidth_bytes_per_s
        return UNKNOWN if rate is None else f"{rate / 1e9:,.0f}"

    @property
    def share_of_roof(self) -> str:
        share = self.row.efficiency
        return UNKNOWN if share is None else f"{share * 100:.0f} %"

    @property
    def problem(self) -> str:
        """The problem with its compute precision, where that is not part of its number format."""
        problem = self.result.problem
        compute = problem.compute if problem.compute not in (None, "ieee", problem.precision) else ""
        return f"{format_problem(problem)}{f', {compute}' if compute else ''}"

    def against(self, other: Case) -> Pair:
        """This case as B, the other one as A."""
        return pair_of(other.run, other.result, self.run, self.result, "cold", shared=one_run(other.run, self.run))


def load(card: str, name: str) -> Run | None:
    """The run of that name of a card; None if it is not in the folder."""
    path = FOLDER / f"{card}-{name}{ENDING}"
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=128)
def _read(path: Path, _changed: int) -> Run:
    return compact.read(path.read_bytes())  # Its digest is compared.


def cases(run: Run | None) -> list[Case]:
    """The cases with a correct time, in the order of the plan."""
    table = rows(run, run.environment.roofs) if run is not None else ()
    return [Case(run, row.result) for row in table if run is not None and row.figure is not None]


def case_of(run: Run | None, variant: str, **sizes: int) -> Case | None:
    """The case of a variant at these sizes, others being the only ones."""
    chosen = (c for c in cases(run) if c.result.variant == variant and sizes.items() <= c.result.problem.sizes.items())
    return next(chosen, None)


def comparison(run: Run, problem: Problem) -> ComparisonRow | None:
    """The best own variant and the best library at a problem, as the product names them."""
    return next((row for row in comparison_rows([run]) if row.problem == problem), None)


def best_library(case: Case) -> Case | None:
    """The fastest library in the run of the case, at its problem."""
    row = comparison(case.run, case.result.problem)
    return None if row is None or row.library is None else Case(case.run, row.library)


def format_ratio(pair: Pair) -> str:
    """A's time over B's with its interval and the verdict on B, for example ``1.011 (1.008–1.013) faster``."""
    ratio = "" if pair.ratio is None else f"{_interval(pair.ratio.inverse())} "
    reason = f": {describe_verdict_reason(pair.reason)}" if not ratio or pair.kind == "not comparable" else ""
    return f"{ratio}{pair.kind}{reason}"


def _interval(ratio: Interval) -> str:
    if ratio.low is None or ratio.high is None:
        return units.factor(ratio.estimate)
    factor, low, high = units.factor_with_interval(ratio.estimate, ratio.low, ratio.high, most=3)
    return f"{factor} ({low}–{high})"


def at_equal_clock(case: Case, library: Case) -> str:
    """The library's time over that of the case in clock cycles of the SMs."""
    ratio = EqualClock(library.row.issue, case.row.issue).ratio
    return "" if case.result == library.result else UNKNOWN if ratio is None else f"{1 / ratio:.3f}"


def with_best_library(case: Case) -> str:
    """The best library of its run over the case, or that the case is that library."""
    library = best_library(case)
    if library is None:
        return UNKNOWN
    return "best library" if library.result == case.result else format_ratio(case.against(library))


def by_card(lead: Sequence[str], headings: Sequence[str], of_card: Callable[[str], Cells], names: Iterable[str]) -> str:
    """A table in Markdown: the cells of each card side by side, then the files that it is made of.

    The rows are those of the first card, then those that only another one has. Without any run it says so.
    """
    cards = {card: cells for card in CARDS if (cells := of_card(card))}
    names = tuple(names)
    if not cards:
        return f"Not measured in a run of this folder yet: {', '.join(f'`{name}`' for name in names)}."
    keys = list(dict.fromkeys(key for cells in cards.values() for key in cells))
    columns = [f"{CARDS[card]}: {heading}" for card in cards for heading in headings]
    lines = [[*lead, *columns], ["---"] * (len(lead) + len(columns))]
    lines += [
        [*key, *(c for cells in cards.values() for c in cells.get(key, [UNKNOWN] * len(headings)))] for key in keys
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    files = [
        f"{card}-{name}{ENDING}" for card in cards for name in names if (FOLDER / f"{card}-{name}{ENDING}").is_file()
    ]
    return f"{table}\n\nRuns: {', '.join(f'[{file.removesuffix(ENDING)}](runs/{file})' for file in files)}."
