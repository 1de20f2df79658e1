"""What each chart shows, for those who do not see it: the words are the same on a page and in a file."""

from collections.abc import Sequence

from kernelviz.core import Problem, Run
from kernelviz.metrics.chart_selection import charted_variants
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text


def describe_chart_by_size(quantity: str, leads: Sequence[str] = ()) -> str:
    """Of the chart by size. `leads`: who is fastest where, for the map of winners.

    >>> describe_chart_by_size("time")
    'time of each variant by size, with 95 % intervals; the same figures are in the table below'
    """
    if leads:
        return f"Fastest correct variant by size. {' '.join(leads)}"
    return f"{quantity} of each variant by size, with 95 % intervals; the same figures are in the table below"


def describe_roofline(problem: Problem) -> str:
    """Of the roofline at one size."""
    return f"Roofline at {format_sizes(problem)}: each variant's share of the measured roof"


def describe_bars(problem: Problem) -> str:
    """Of the bars at one size."""
    return f"Time of each variant at {format_sizes(problem)}, with 95 % intervals and the speed of light"


def describe_foreign_times(name: str) -> str:
    """Of the chart of another tool's times."""
    return f"{name} of each case, as another tool took it; the same figures are in the table below"


def describe_selection(run: Run) -> Text | None:
    """That charts show only some of the variants; None if they show all."""
    charted, variants = charted_variants(run), run.plan.variants
    if len(charted) == len(variants):
        return None
    best = f"the best {len(charted) - 1} of {len(variants)} variants and the baseline"
    return Text(f"Charts show {best}; the tables contain all of them.")
