"""The columns of the table of published claims, for the page, the terminal and Markdown, and the record of a row."""

from collections.abc import Mapping, Sequence

from kernelviz.core import units
from kernelviz.core.claim import Contradiction
from kernelviz.metrics.claim_reasons import ClaimVerdict
from kernelviz.metrics.claims import Assessment
from kernelviz.metrics.quality import LEVELS
from kernelviz.tables.column import Column, View
from kernelviz.text.claim_reasons import describe_assessment
from kernelviz.text.claims import (
    BASES,
    VERDICTS,
    describe_counts,
    describe_qualities,
    describe_test,
    format_claimed_here,
    format_measured,
)
from kernelviz.text.text import Text, join


def _ratio(assessment: Assessment) -> float | None:
    """None also where the published number on this card is unknown."""
    return None if assessment.ratio is None or assessment.unconverted else assessment.ratio.estimate


COLUMNS: tuple[Column[Assessment], ...] = (
    Column("claim", "Claim", "The name of the claim; `kernelviz claims show NAME` prints all of it.", units.OWN_TEXT,
           lambda a: a.claim.id, width="medium"),
    Column("setup", "What was published", "The setup of the source, in short.", units.OWN_TEXT, lambda a: a.claim.setup,
           width="medium"),
    Column("verdict", "Verdict", "Holds, does not hold, wrong result, unclear, not measured yet, or cannot be tested.",
           units.OWN_TEXT, lambda a: VERDICTS[a.verdict]),
    Column("published", "Published", "The number as printed, and whether the source means about, at least or at most. "
           "In brackets what it is on the device's card, where the claim converts it by the data sheets of both cards.",
           units.OWN_NUMBER, format_claimed_here),
    Column("here", "Result", "The number on the device above, with the digits that its 95 % interval leaves. That of a wrong "
           "result is marked. One of a data sheet or of arithmetic is not of this device.", units.OWN_NUMBER, format_measured),
    Column("basis", "Tested by", "Cases measured on the device above, its calibration, a data sheet, or arithmetic. Only the "
           "first two say something about this device.", units.OWN_TEXT, lambda a: BASES[a.basis]),
    Column("ratio", "Result / published on this card", "The result over the published number, as converted to the device's card "
           "where the column Published has a number for it, else as printed.", units.RATIO, _ratio),
    Column("reason", "Reason", "Why, in one sentence.", units.TEXT, describe_assessment, width="large"),
    Column("quality", "Quality", "The measurement quality of each time that counts: good, caveats or unreliable, with the worst "
           "reason.", units.OWN_TEXT, lambda a: join("; ", describe_qualities(a)) if a.qualities else None,
           View.RECORD | View.WIDE, optional=True),
    Column("source", "Source", "Who published it; below are all sources.", units.OWN_TEXT, lambda a: a.claim.source),
    Column("published_on", "On", "The device of the source; empty where it names none.", units.OWN_TEXT,
           lambda a: a.claim.published_on, View.RECORD | View.WIDE),
)  # fmt: skip


_FIRST_ON_PAGE = ("claim", "verdict", "here", "published", "setup", "ratio", "reason")


def page_columns() -> tuple[Column[Assessment], ...]:
    """The columns on the page: the verdict and the numbers first, because a phone shows two columns."""
    wide = [column for column in COLUMNS if View.WIDE & column.view]
    rank = {name: place for place, name in enumerate(_FIRST_ON_PAGE)}
    return tuple(sorted(wide, key=lambda column: rank.get(column.name, len(rank))))


def record(assessment: Assessment) -> dict[str, object]:
    """A claim and its verdict as JSON has them: numbers in SI base units, and None where something is unknown."""
    claim, number, scale = assessment.claim, assessment.measured, assessment.scale
    return {
        "id": claim.id,
        "source": claim.source,
        "setup": claim.setup,
        "published_on": claim.published_on,
        "published": claim.published.value,
        "unit": claim.published.unit,
        "direction": claim.direction,
        "tolerance": claim.published.tolerance,
        "expected": None if assessment.unconverted else assessment.expected,
        "scaled_by": None if scale is None else scale.by,
        "scale_factor": None if scale is None else scale.factor,
        "test": str(describe_test(claim)),
        "measured": None if number is None else number.estimate,
        "low": None if number is None else number.low,
        "high": None if number is None else number.high,
        "ratio": _ratio(assessment),
        "basis": assessment.basis,
        "quality": max((one.quality.level for one in assessment.qualities), key=LEVELS.index, default=None),
        "compared_with": assessment.fastest,
        "verdict": assessment.verdict,
        "reason": str(describe_assessment(assessment)),
        "runs": list(assessment.run_ids),
    }


def counts_of(assessments: Sequence[Assessment]) -> dict[ClaimVerdict, int]:
    """How many claims have each verdict, all verdicts named."""
    verdicts = [a.verdict for a in assessments]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def describe_counts_of(assessments: Sequence[Assessment]) -> Text:
    """How many claims have each verdict, and how many of these not by measurement, in one sentence."""
    return describe_counts(counts_of(assessments), counts_of([a for a in assessments if not a.by_measurement]))


def cells(assessment: Assessment, columns: Sequence[Column[Assessment]]) -> list[str]:
    """The texts of a row for a table in Markdown."""
    return [column.single(assessment) for column in columns]


def by_source(contradictions: Sequence[Contradiction]) -> Mapping[str, list[Contradiction]]:
    """The contradictions of each source, in order."""
    grouped: dict[str, list[Contradiction]] = {}
    for one in contradictions:
        grouped.setdefault(one.source, []).append(one)
    return grouped
