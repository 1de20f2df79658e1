"""Which variants of a run the charts show if there are too many to tell apart, as in a tuning."""

from kernelviz.core import Run
from kernelviz.metrics.part_of_run import part_of_run
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import best_names

MANY, MOST_CHARTED = 30, 10
"""If a run has more variants than the first number, charts show this many of the best ones and the baseline."""


def charted_variants(run: Run) -> tuple[str, ...]:
    """The variants that charts show, in the order of the plan."""
    if len(run.plan.variants) <= MANY:
        return run.plan.variants
    best = best_names(rows(run, ()), MOST_CHARTED)
    return tuple(v for v in run.plan.variants if v in best or v == run.plan.baseline)


def charted_run(run: Run) -> Run:
    """The run with only the variants that charts show."""
    return part_of_run(run, charted_variants(run), run.plan.problems)
