"""The cells of the table of a run, the same on pages and in files."""

from collections.abc import Sequence

from msgspec.structs import replace

from kernelviz.core import Failure, units
from kernelviz.core.reasons import Reason, SizeTooLarge
from kernelviz.metrics.rows import Row
from kernelviz.text.failures import describe_failure, format_stage, has_description
from kernelviz.text.results import describe_correctness
from kernelviz.text.text import Text, on_one_line
from kernelviz.text.verdicts import format_verdict


def describe_comparison_with_baseline(row: Row) -> Text:
    """The verdict against the baseline, or why there is none."""
    if row.is_baseline:
        return Text("baseline")
    if row.verdict is not None:
        return format_verdict(row.verdict) + _in_shared_rounds(row)
    return Text("not compared" if row.failure or row.figure is None else "the baseline has no time")


def _in_shared_rounds(row: Row) -> str:
    """The two times of the verdict, if they are not those that are shown."""
    times = row.in_shared_rounds
    if times is None:
        return ""
    return f"; in the rounds of both: {units.seconds(times.time_s, 3)} against {units.seconds(times.baseline_s, 3)}"


def describe_outcome(row: Row) -> Text:
    """Correctness of a timed case; of a failed one the stage and the reason."""
    if row.failure is None:
        return describe_correctness(row.result)
    if not has_description(row.failure):
        return Text(f"✕ {format_stage(row.failure)}")
    took = f" (took {units.seconds(row.wrong_figure.estimate)})" if row.wrong_figure else ""
    return Text(f"✕ {format_stage(row.failure)}{took}: {on_one_line(describe_failure(row.failure))}")


def failures(table: Sequence[Row]) -> dict[tuple[str, Failure], list[Row]]:
    """Failed cases by variant and failure (without the time of a wrong one), so that a reason is shown once for all sizes."""
    cases: dict[tuple[str, Failure], list[Row]] = {}
    for row in table:
        if row.failure is not None:
            reasons = tuple(map(_of_any_size, row.failure.reasons))
            failure = Failure(stage=row.failure.stage, reasons=reasons, message=row.failure.message)
            cases.setdefault((row.result.variant, failure), []).append(row)
    return cases


def _of_any_size(reason: Reason) -> Reason:
    """The reason without the size of the case, which its description does not state."""
    return replace(reason, size=0) if isinstance(reason, SizeTooLarge) else reason
