"""The memory that a call of the best variant takes, beside that of the baseline, where the two differ much."""

from collections.abc import Sequence

from kernelviz.core import Plan, units
from kernelviz.metrics.rows import Row
from kernelviz.metrics.sweep import telling_axes
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes

_MUCH = 4.0
"""From this ratio on, memory is a reason to choose a variant: outputs alone, which one variant allocates in advance and another
one twice, are less."""


def describe_memory_of_calls(table: Sequence[Row], plan: Plan, best: str) -> str | None:
    """A sentence about the size at which the baseline takes the most memory; None if a call of `best` takes about as much there,
    or the memory is not known."""
    by_case = {(row.result.problem.key, row.result.variant): row for row in table if row.result.peak_memory is not None}
    pairs = [
        (row, by_case[problem, best])
        for (problem, variant), row in by_case.items()
        if variant == plan.baseline and (problem, best) in by_case
    ]
    if not pairs or best == plan.baseline:
        return None
    baseline, own = max(pairs, key=lambda pair: _call_bytes(pair[0]))
    of_baseline, of_own = _call_bytes(baseline), _call_bytes(own)
    ratio = max(of_baseline, of_own) / max(min(of_baseline, of_own), 1)
    if ratio < _MUCH:
        return None
    factor = f"{units.factor(ratio)}× as much" if of_baseline > of_own else f"1/{units.factor(ratio)} of that"
    return (
        f"At {format_sizes(own.result.problem, telling_axes(plan.problems))}, a call of {format_variant(best)} takes "
        f"{units.size_bytes(of_own)} of memory beside the inputs, and one of {format_variant(plan.baseline)} "
        f"{units.size_bytes(of_baseline)}, {factor}."
    )


def _call_bytes(row: Row) -> int:
    return row.result.peak_memory.call_bytes if row.result.peak_memory else 0
