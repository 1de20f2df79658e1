"""Alternative texts of charts, the same on a page and in a file."""

from collections.abc import Sequence

from kernelviz.core import LIVING, Problem, Run
from kernelviz.metrics.chart_selection import charted_variants
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.text.comparison import describe_pair
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text


def describe_chart_by_size(quantity: str, leads: Sequence[str] = ()) -> Text:
    """The alternative text of a chart by size. `leads`: which variant is fastest where, for the map of winners.

    >>> str(describe_chart_by_size("time"))
    'time of each variant by size, with 95 % intervals; the same figures are in the table below'
    """
    if leads:
        return Text(f"Fastest correct variant by size. {' '.join(leads)}")
    return Text(f"{quantity} of each variant by size, with 95 % intervals; the same figures are in the table below")


def describe_roofline(problem: Problem) -> Text:
    """The alternative text of the roofline at one size."""
    return Text(f"Roofline at {format_sizes(problem)}: each variant's share of the measured roof")


def describe_bars(problem: Problem) -> Text:
    """The alternative text of the bars at one size."""
    return Text(f"Time of each variant at {format_sizes(problem)}, with 95 % intervals and the speed of light")


def describe_foreign_times(name: str) -> Text:
    """The alternative text of the chart of times that another tool measured."""
    return Text(f"{name} of each case, as another tool measured it; the same figures are in the table below")


def describe_selection(run: Run) -> Text | None:
    """That charts show only some of the variants; None if they show all."""
    charted, variants = charted_variants(run), run.plan.variants
    if len(charted) == len(variants):
        return None
    best = f"the best {len(charted) - 1} of {len(variants)} variants and the baseline"
    return Text(f"Charts show {best}; the tables contain all of them.")


def describe_no_time(runs: Sequence[Run], headline: Headline) -> Text:
    """Why a chart of these times is empty: a run that has ended gets no more times, and its other times are named.

    >>> str(describe_no_time([], "cold"))
    'No case has a correct cold time.'
    """
    if any(run.status in LIVING for run in runs):
        return Text(f"No case has a correct {headline} time yet.")
    other: Headline = "cold" if headline == "warm" else "warm"
    timed = any(figure_of(result.timing, other) for run in runs for result in run.results)
    if timed:
        return Text(f"No case has a {headline} time: only {other} times were measured.")
    return Text(f"No case has a correct {headline} time.")


def describe_samples(variants: Sequence[str], figure_name: str) -> Text:
    """Alternative text of the distribution.

    >>> print(describe_samples(['torch_eager', 'triton_block'], 'device cold'))
    Distribution of the device cold samples of torch eager, triton block; the table beside it has the percentiles
    """
    names = ", ".join(map(format_variant, variants))
    return Text(f"Distribution of the {figure_name} samples of {names}; the table beside it has the percentiles")


def describe_comparison(comparison: Comparison) -> Text:
    """Alternative text of the bars."""
    worst = comparison.pairs[0] if comparison.pairs else None
    first = "" if worst is None else f" Worst: {worst.after.case.key}, {describe_pair(worst)}."
    return Text(
        f"Time of B divided by time of A for {len(comparison.pairs)} cases.{first} The table below has the same values."
    )
