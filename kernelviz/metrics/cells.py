"""What the cells of a run's table say: for pages and files alike."""

from __future__ import annotations

from collections.abc import Sequence

from kernelviz.core import units
from kernelviz.core.result import Preparation
from kernelviz.metrics.summary import STAGE_WORDS, Row, correctness_words, verdict_words


def against_words(row: Row) -> str:
    """The verdict against the baseline, or why there is none."""
    if row.is_baseline:
        return "baseline"
    return verdict_words(row.verdict) or ("not compared" if row.failure else "the baseline has no time")


def outcome_words(row: Row) -> str:
    """Correctness of a timed case; of a failed one the stage and the reason."""
    if row.failure is None:
        return correctness_words(row.result)
    message = " ".join(row.failure.message.split())
    took = f" (took {units.seconds(row.wrong_figure.estimate)})" if row.wrong_figure else ""
    return f"✕ {STAGE_WORDS[row.failure.stage]}{took}: {message}" if message else f"✕ {STAGE_WORDS[row.failure.stage]}"


def first_call_s(preparation: Preparation | None) -> float | None:
    """Binding and first call together; None when neither is known."""
    if preparation is None:
        return None
    known = [s for s in (preparation.bind_s, preparation.first_call_s) if s is not None]
    return sum(known) if known else None


def failures(table: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Failed cases by variant, stage and message, so that one reason is told once for all its sizes."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in table:
        if row.failure is not None:
            found.setdefault((row.result.variant, row.failure.stage, row.failure.message), []).append(row)
    return found
