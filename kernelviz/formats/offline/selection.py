"""Which cases and sizes of a very large run the offline page, Markdown and Bench show, so that each is there within seconds."""

from kernelviz.core import Problem, Run
from kernelviz.metrics.part_of_run import part_of_run
from kernelviz.plots.frame import evenly_spaced

MOST_CASES = 500
"""Cases in the tables and charts. Each takes 4 ms, most of it for the intervals of its verdict."""
MOST_ON_BENCH = 2_000
"""Cases on the Bench page, which computes them once for all sessions: 4 ms each, in which the server answers others slowly."""
MOST_CHARTS = 250
"""Charts at one size: a roofline, bars and a distribution for each size, and one of the samples of each variant. Each takes
20 ms. The largest run that comes with kernelviz has 204."""


def part_of(run: Run, most: int | None = None) -> Run:
    """The run, or, with more than `most` cases (MOST_CASES), the cases at sizes that are evenly spaced over its plan.

    Of more than `most` variants, the first ones and the baseline are taken.
    """
    plan, most = run.plan, most or MOST_CASES
    if len(plan.problems) * len(plan.variants) <= most:
        return run
    first = plan.variants[:most]
    variants = first if plan.baseline in first else (*first[:-1], plan.baseline)
    problems = _spaced(plan.problems, max(1, most // len(variants)))
    return part_of_run(run, variants, problems)


def sizes_with_charts(run: Run, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Those of the problems for which the page has charts: all, or evenly spaced ones if there would be too many charts."""
    return _spaced(problems, max(1, MOST_CHARTS // (3 + len(run.plan.variants))))


def describe_part(run: Run, part: Run, what: str = "page") -> str:
    """That the page, or what it is, shows only some of the cases; empty if it shows all."""
    if part is run:
        return ""
    visible, whole = (len(r.plan.problems) * len(r.plan.variants) for r in (part, run))
    return (
        f"This {what} shows {visible:,} of {whole:,} cases: {len(part.plan.problems):,} sizes, evenly spaced over the plan, and "
        f"{len(part.plan.variants):,} variants. The answer and the failures are those of these cases. "
        "The JSON document has all cases."
    )


def describe_sizes(charted: int, whole: int) -> str:
    """That only some sizes can be chosen; empty if all can be."""
    return "" if charted == whole else f"{charted:,} of {whole:,} sizes, evenly spaced, have charts of their own."


def _spaced(problems: tuple[Problem, ...], most: int) -> tuple[Problem, ...]:
    return tuple(problems[index] for index in evenly_spaced(range(len(problems)), most))
