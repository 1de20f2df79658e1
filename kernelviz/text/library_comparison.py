"""The library comparison as text: the cells of its table, the table in Markdown, and its summary line."""

from collections.abc import Sequence

from kernelviz.core import Result
from kernelviz.metrics.library_comparison import (
    COMPILED,
    EAGER,
    LIGER,
    MOST_SLOWER,
    AutoSummary,
    ComparisonRow,
    mean_ratio,
)
from kernelviz.metrics.roofline import stream_name
from kernelviz.text.roofs import STREAMS
from kernelviz.text.sizes import format_problem
from kernelviz.text.text import Text

HEADINGS = (
    "problem",
    "bytes",
    "best own variant",
    "GB/s",
    "eager",
    "compile",
    "Liger",
    "own / best library",
    "of the roof",
    "auto",
    "auto / best own",
)


def format_row(row: ComparisonRow, *, card: bool = False) -> tuple[str, ...]:
    """The cells of a row: problem, read:write mix, best own variant, its rate, the libraries' rates, ratio, share of
    the roof, the variant that the op's rule chooses, and how near it is. `card`: the problem names its card."""
    own, best = row.own, row.library
    rates = (own, *(row.named.get(library) for library in (EAGER, COMPILED, LIGER)))
    # The three named libraries have columns. Any other is named beside the ratio.
    other = f" ({best.variant})" if best is not None and best.variant not in (EAGER, COMPILED, LIGER) else ""
    return (
        f"{format_problem(row.problem)}{f', {row.card}' if card else ''}",
        STREAMS[stream_name(row.cost)],
        own.variant if own is not None else "none is correct",
        *(_format_rate(row, r) for r in rates),
        "–" if row.ratio is None else f"{row.ratio:.2f}{other}",
        "–" if row.share is None else f"{100 * row.share:.0f} %",
        row.choice or "–",
        format_auto_ratio(row),
    )


def format_auto_ratio(row: ComparisonRow) -> str:
    """How near the chosen variant is to the best own one, or why that is unknown."""
    if row.auto_ratio is not None:
        return f"{row.auto_ratio:.2f}"
    return "–" if row.choice is None or row.own is None else "not measured"


def several_cards(rows: Sequence[ComparisonRow]) -> bool:
    """Whether the rows are of more than one card, so that each problem names its card."""
    return len({row.card for row in rows}) > 1


def _format_rate(row: ComparisonRow, result: Result | None) -> str:
    rate = row.bandwidth(result)
    return "–" if rate is None else f"{rate / 1e9:,.0f}" if rate >= 1e10 else f"{rate / 1e9:.2g}"


def markdown(rows: Sequence[ComparisonRow]) -> str:
    """The table of docs/kernels.md.

    >>> print(markdown([]).splitlines()[1])
    |---|---|---|--:|--:|--:|--:|--:|--:|---|--:|
    """
    card = several_cards(rows)
    cells = (HEADINGS, *(format_row(row, card=card) for row in rows))
    heading, *lines = (f"| {' | '.join(one)} |" for one in cells)
    return "\n".join((heading, "|---|---|---|--:|--:|--:|--:|--:|--:|---|--:|", *lines))


def conclusion(rows: Sequence[ComparisonRow]) -> Text:
    """One line that summarises the table.

    >>> str(conclusion([]))
    'no problem with a correct time of an own variant and of a library'
    """
    ratios = [row.ratio for row in rows if row.ratio is not None]
    mean = mean_ratio(rows)
    if mean is None:
        return Text("no problem with a correct time of an own variant and of a library")
    behind = sum(round(ratio, 2) < 1 for ratio in ratios)
    return Text(
        f"{len(ratios)} problems: own variants are {mean:.2f} × as fast as the best library (geometric mean); "
        f"{len(ratios) - behind} at 1.00 × or above, {behind} below"
    )


def describe_auto(summary: AutoSummary) -> Text:
    """One line about the choice of the rules.

    >>> str(describe_auto(AutoSummary(problems=200, as_fast=196, lowest=0.941)))
    'auto: within 3 % of the best own variant for 196 of 200 problems (98 %), at least 0.94 of its speed'
    >>> str(describe_auto(AutoSummary(problems=0, as_fast=0, lowest=None)))
    'auto: no problem with a correct time of the chosen variant'
    """
    if summary.lowest is None:
        return Text("auto: no problem with a correct time of the chosen variant")
    share = summary.as_fast / summary.problems
    return Text(
        f"auto: within {100 * (MOST_SLOWER - 1):.0f} % of the best own variant for {summary.as_fast} of {summary.problems} "
        f"problems ({100 * share:.0f} %), at least {summary.lowest:.2f} of its speed"
    )
