"""The library comparison as text: the cells of its table, the table in Markdown, and its summary line."""

from collections.abc import Sequence

from kernelviz.core import Result
from kernelviz.metrics.library_comparison import COMPILED, EAGER, LIGER, ComparisonRow, mean_ratio
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
)


def format_row(row: ComparisonRow) -> tuple[str, ...]:
    """The cells of a row: problem, read:write mix, best own variant, its rate, the libraries' rates, ratio, share of the roof."""
    own, best = row.own, row.library
    rates = (own, *(row.named.get(library) for library in (EAGER, COMPILED, LIGER)))
    # The three named libraries have columns. Any other is named beside the ratio.
    other = f" ({best.variant})" if best is not None and best.variant not in (EAGER, COMPILED, LIGER) else ""
    return (
        format_problem(row.problem),
        STREAMS[stream_name(row.cost)],
        own.variant if own is not None else "none is correct",
        *(_format_rate(row, r) for r in rates),
        "–" if row.ratio is None else f"{row.ratio:.2f}{other}",
        "–" if row.share is None else f"{100 * row.share:.0f} %",
    )


def _format_rate(row: ComparisonRow, result: Result | None) -> str:
    rate = row.bandwidth(result)
    return "–" if rate is None else f"{rate / 1e9:,.0f}" if rate >= 1e10 else f"{rate / 1e9:.2g}"


def markdown(rows: Sequence[ComparisonRow]) -> str:
    """The table of docs/kernels.md.

    >>> print(markdown([]).splitlines()[1])
    |---|---|---|--:|--:|--:|--:|--:|--:|
    """
    heading, *lines = (f"| {' | '.join(cells)} |" for cells in (HEADINGS, *map(format_row, rows)))
    return "\n".join((heading, "|---|---|---|--:|--:|--:|--:|--:|--:|", *lines))


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
        f"{len(ratios)} problems: geometric mean of own / best library {mean:.2f}; "
        f"{len(ratios) - behind} at 1.00 or above, {behind} below"
    )
