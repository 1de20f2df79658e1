"""What stands in the cells of a run's table, and what its columns are, in words: for pages and files alike."""

from __future__ import annotations

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.core.result import Failure
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Row
from kernelviz.metrics.summary import first_call_s as first_call_s
from kernelviz.text.correctness import describe_correctness
from kernelviz.text.failures import STAGES, describe_failure, has_description
from kernelviz.text.text import Text, on_one_line
from kernelviz.text.verdicts import format_verdict

HEADLINES: dict[Headline, str] = {
    "cold": "caches flushed before each call",
    "warm": "data left where the call itself leaves them",
}
TIME_HELP = "Median of trimmed block means, {headline}."
WIDTH_HELP = "Half the 95 % interval, bootstrapped over blocks."
RATE_HELP = "Of the minimal bytes or flop of the problem."
SHARE_HELP = "Speed of light by the measured roofs, over time."
AGAINST_HELP = "By shared rounds; must clear the noise floor."
RESULT_HELP = "The check against the float64 reference, or why there is no time."
FIRST_CALL_HELP = "Binding (allocation, compiling) and the first call; in no sample."
TRUST_HELP = "What stands behind the time, part by part: see the page Method."
REGISTERS_HELP = (
    "Registers of each thread: of 65,536 on a multiprocessor, so that more of them leave room for fewer threads."
)
SHARED_HELP = "Shared memory of each block, static and dynamic together."
LOCAL_HELP = (
    "Local memory of each thread, which lies in device memory: registers that were spilled, and arrays that no register can "
    "hold. 0: nothing was spilled."
)
_TIME_UNITS = ((1e-3, "ms"), (1e-6, "µs"))


def time_unit(times_s: Sequence[float]) -> tuple[float, str]:
    """One unit for a whole column: the largest in which the smallest time still shows three digits.

    >>> time_unit([2e-6, 180e-6]), time_unit([0.02, 0.4]), time_unit([])
    ((1e-06, 'µs'), (0.001, 'ms'), (1e-06, 'µs'))
    """
    smallest = min(times_s, default=0.0)
    return next((u for u in _TIME_UNITS if smallest >= u[0]), _TIME_UNITS[-1])


def against_words(row: Row) -> Text:
    """The verdict against the baseline, or why there is none."""
    if row.is_baseline:
        return Text("baseline")
    if row.verdict is not None:
        return format_verdict(row.verdict)
    return Text("not compared" if row.failure else "the baseline has no time")


def outcome_words(row: Row) -> Text:
    """Correctness of a timed case; of a failed one the stage and the reason."""
    if row.failure is None:
        return describe_correctness(row.result)
    took = f" (took {units.seconds(row.wrong_figure.estimate)})" if row.wrong_figure else ""
    said = f": {on_one_line(describe_failure(row.failure))}" if has_description(row.failure) else ""
    return Text(f"✕ {STAGES[row.failure.stage]}{took if said else ''}{said}")


def failures(table: Sequence[Row]) -> dict[tuple[str, Failure], list[Row]]:
    """Failed cases by variant and failure (without the time of a wrong one): one reason is told once for all its sizes."""
    found: dict[tuple[str, Failure], list[Row]] = {}
    for row in table:
        if row.failure is not None:
            failure = Failure(stage=row.failure.stage, reasons=row.failure.reasons, message=row.failure.message)
            found.setdefault((row.result.variant, failure), []).append(row)
    return found
