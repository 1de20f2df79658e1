"""Which variants of a run are drawn where there are too many to be told apart: the configurations of a tuning."""

import msgspec

from kernelviz.core import Run
from kernelviz.metrics.summary import rows
from kernelviz.metrics.tuning import best_names

MANY, DRAWN = 30, 10
"""Of more variants than the first only so many are drawn, the best ones, and the baseline. Tables hold all of them."""


def drawn(run: Run) -> tuple[str, ...]:
    """The variants to be drawn, in the order of the plan."""
    if len(run.plan.variants) <= MANY:
        return run.plan.variants
    best = best_names(rows(run, ()), DRAWN)
    return tuple(v for v in run.plan.variants if v in best or v == run.plan.baseline)


def drawn_words(run: Run) -> str:
    """That not all of them are drawn; empty where all are."""
    shown = len(drawn(run))
    if shown == len(run.plan.variants):
        return ""
    return f"Charts draw the best {shown - 1} of {len(run.plan.variants)} variants and the baseline; the tables hold all of them."


def only_drawn(run: Run) -> Run:
    """The run with what is drawn of it."""
    names = drawn(run)
    if names == run.plan.variants:
        return run
    plan = msgspec.structs.replace(run.plan, variants=names)
    return msgspec.structs.replace(run, plan=plan, results=tuple(r for r in run.results if r.variant in names))
