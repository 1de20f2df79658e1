"""Which variants of a run the charts show if there are too many to tell apart, as in a tuning."""

import msgspec

from kernelviz.core import Run
from kernelviz.core.run_cache import RunCache
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import best_names

MANY, MOST_CHARTED = 30, 10
"""If a run has more variants than the first number, charts show this many of the best ones and the baseline."""

_charted: RunCache[Run] = RunCache(most=64)
"""The same selection is the same object, so that its rows and figures are computed once."""


def charted_variants(run: Run) -> tuple[str, ...]:
    """The variants that charts show, in the order of the plan."""
    if len(run.plan.variants) <= MANY:
        return run.plan.variants
    best = best_names(rows(run, ()), MOST_CHARTED)
    return tuple(v for v in run.plan.variants if v in best or v == run.plan.baseline)


def charted_run(run: Run) -> Run:
    """The run with only the variants that charts show."""
    names = charted_variants(run)
    if names == run.plan.variants:
        return run
    return _charted.get((run, names), lambda: _only(run, names))


def _only(run: Run, names: tuple[str, ...]) -> Run:
    plan = msgspec.structs.replace(run.plan, variants=names)
    return msgspec.structs.replace(run, plan=plan, results=tuple(r for r in run.results if r.variant in names))
