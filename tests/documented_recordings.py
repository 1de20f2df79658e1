"""Tables of docs/kernels.md about the recorded runs of all variants, which come with the package or are in docs/recordings."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from documented_cells import CARDS, UNKNOWN, Case

from kernelviz.core import Failure, Run, units
from kernelviz.formats import shipped_runs
from kernelviz.metrics.library_comparison import ComparisonRow, comparison_rows, mean_ratio
from kernelviz.metrics.quality import quality

LEVEL = 0.98
"""A problem is listed where the fastest own variant has less than this share of the speed of the fastest library."""
MOST_SUSPECT = 0.03
"""Of the times of all recorded runs."""


@lru_cache(maxsize=1)
def recorded() -> dict[tuple[str, str], Run]:
    """The recorded runs of all variants, by op with its pass (`softmax backward`) and card (as names of files have it)."""
    found: dict[tuple[str, str], Run] = {}
    for line in shipped_runs.lines().values():
        card = next((card for card in CARDS if line.id.startswith(f"{card}-")), None)
        if card is not None:
            op_pass = line.id.removeprefix(f"{card}-").replace("-backward", " backward")
            if line.title == f"{op_pass}, all variants, on {line.device}":
                found[op_pass, card] = shipped_runs.load(line.id)
    return found


def cards() -> tuple[str, ...]:
    """The cards with a recorded run, the reference card first."""
    return tuple(card for card in CARDS if any(of == card for _, of in recorded()))


def suspect_share(card: str) -> float:
    """Of the times of all recorded runs of that card."""
    levels = _levels(card)
    return levels["suspect"] / sum(levels.values())


def failures(card: str) -> list[tuple[str, Failure]]:
    """Each case without a correct time but those that were not available, with its key."""
    of_card = [run for (_, of), run in recorded().items() if of == card]
    outcomes = [(result.case.key, result.outcome) for run in of_card for result in run.results]
    return [(key, outcome) for key, outcome in outcomes if isinstance(outcome, Failure) and not outcome.unavailable]


def summary() -> str:
    """How many runs and cases there are of each card, and what the product says of their times."""
    rows: dict[str, list[str]] = {}
    for card in cards():
        runs = [run for (_, of), run in recorded().items() if of == card]
        results = [result for run in runs for result in run.results]
        unavailable = sum(isinstance(r.outcome, Failure) and r.outcome.unavailable for r in results)
        levels = _levels(card)
        compared = _compared(runs)
        ratios = [row.ratio for row in compared if row.ratio is not None]
        mean = mean_ratio(compared)
        cells = {
            "runs (an op with one of its passes)": f"{len(runs)}",
            "cases": f"{len(results):,}",
            "of these, not available at that size": f"{unavailable}",
            "wrong or failed": f"{len(failures(card))}",
            "suspect times": f"{levels['suspect']} ({units.percent(suspect_share(card))})",
            "problems with an own variant and a library": f"{len(ratios)}",
            "best library / best own, geometric mean": UNKNOWN if mean is None else f"{mean:.2f}",
            f"the same, at least {LEVEL}": f"{sum(ratio >= LEVEL for ratio in ratios)}",
        }
        for name, cell in cells.items():
            rows.setdefault(name, []).append(cell)
    return _table(["", *(CARDS[card] for card in cards())], [[name, *of_card] for name, of_card in rows.items()])


def by_op() -> str:
    """A line for each op and pass: how many sizes, the geometric mean and the lowest of the ratios, and when it was recorded."""
    ops = dict.fromkeys(op for op, _ in sorted(recorded()))
    rows = [[f"`{op}`", *(cell for card in cards() for cell in _of_op(recorded().get((op, card))))] for op in ops]
    names = ("sizes", "geometric mean", "lowest", "recorded")
    return _table(["op", *(f"{CARDS[card]}: {name}" for card in cards() for name in names)], rows)


def _of_op(run: Run | None) -> list[str]:
    if run is None:
        return [UNKNOWN] * 4
    rows = _compared([run])
    ratios = [row.ratio for row in rows if row.ratio is not None]
    mean = mean_ratio(rows)
    lowest = f"{min(ratios):.3f}" if ratios else UNKNOWN
    return [f"{len(run.plan.problems)}", UNKNOWN if mean is None else f"{mean:.2f}", lowest, run.created_at[:10]]


def misses() -> str:
    """Each problem of the recorded runs in which a library is faster, the lowest ratio first."""
    rows = [
        (row.ratio, card, run, row)
        for (_, card), run in recorded().items()
        for row in _compared([run])
        if row.ratio is not None and row.ratio < LEVEL
    ]
    lines = []
    for ratio, card, run, row in sorted(rows, key=lambda one: one[0]):
        assert row.own is not None and row.library is not None, row.problem.key  # noqa: PT018
        own, library = Case(run, row.own), Case(run, row.library)
        kind = own.against(library).kind
        lines.append([own.problem, CARDS[card], library.named_time, own.named_time, f"{ratio:.3f}", kind])
    return _table(["problem", "card", "best library", "best own variant", "library / own", "verdict on own"], lines)


def _compared(runs: list[Run]) -> list[ComparisonRow]:
    return [row for run in runs for row in comparison_rows([run])]


def _levels(card: str) -> Counter[str]:
    runs = [run for (_, of), run in recorded().items() if of == card]
    qualities = (quality(result, "cold", run.method.clock) for run in runs for result in run.results)
    return Counter(known.level for known in qualities if known is not None)


def _table(headings: list[str], rows: list[list[str]]) -> str:
    """The table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
