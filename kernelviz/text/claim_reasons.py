"""Why a published claim has its verdict, in text: one sentence for each reason, with the numbers that decide it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from kernelviz.core import units
from kernelviz.core.claim import TOLERANCE, RatioTest
from kernelviz.metrics import claim_reasons as r
from kernelviz.metrics.claim_limits import limits
from kernelviz.metrics.claims import Assessment
from kernelviz.metrics.statistics import Interval
from kernelviz.text.claims import (
    format_expected,
    format_interval,
    format_measured,
    format_number,
    format_number_here,
    format_published,
    format_quantity,
    printed_digits,
)
from kernelviz.text.failures import describe_failure, describe_reason, format_failure
from kernelviz.text.quality import describe_part
from kernelviz.text.text import Text, on_one_line
from kernelviz.text.verdicts import describe_verdict_reason

MOST_OF_A_FAILURE = 240
"""So many characters of a failure's own text are part of a reason."""


def describe_assessment(assessment: Assessment) -> Text:
    """Why the claim has its verdict, in one sentence."""
    text = on_one_line(_REASONS[type(assessment.reason)](assessment, assessment.reason))
    said = str(text).rstrip(".")
    return Text(f"{said[:1].upper()}{said[1:]}.")


def _expected(assessment: Assessment) -> str:
    """The published number, or what it is on this card."""
    published = f"the published {format_published(assessment.claim.published)}"
    here = format_expected(assessment)
    if assessment.scale is None or here is None:
        return published
    return f"{here} ({published} scaled to this card's {format_quantity(assessment.scale)})"


def _share(ratio: Interval | None) -> str:
    if ratio is None:
        return "unknown"
    estimate = ratio.estimate
    return (
        f"{units.factor(estimate)} times"
        if estimate >= 2
        else f"{units.percent(estimate, 1 if estimate < 0.1 else 0)} of"
    )


def _tolerance(assessment: Assessment) -> str:
    """By how much the number may miss the published one: of a factor, 10 % of its part beyond 1."""
    published = assessment.claim.published
    counted = abs(published.value - 1) if published.unit == "x" else published.value
    if published.tolerance * published.value > TOLERANCE * counted * (1 + 1e-9):
        return "half of the last printed digit"
    return f"{units.percent(TOLERANCE, 0)}{' of the gain' if published.unit == 'x' else ''}"


def describe_limits(assessment: Assessment) -> Text:
    """With which numbers the claim holds, and why these; empty where it has no limit. Of a wrong result, it says that the result
    has to be right.

    >>> from kernelviz.core.claim import Claim, NoTest, Published
    >>> published = Published(value=1.016, unit="x", rounded_to=0.001)
    >>> gain = Claim(id="a", source="s", setup="", published=published, direction="at_least", test=NoTest(takes=""))
    >>> str(describe_limits(Assessment(gain, "unclear", r.Straddling(), expected=1.016)))
    'the claim holds from 1.014× on (tolerance: 10 % of the gain)'
    """
    claim = assessment.claim
    if claim.direction == "above":
        return Text("")
    least, most = limits(claim.direction, assessment.expected, claim.published.tolerance)
    digits = max(3, printed_digits(claim.published))
    low, high = (
        format_number(limit, claim.published.unit, digits) if 0 < limit < math.inf else "" for limit in (least, most)
    )
    tolerance = _tolerance(assessment)
    holds = "with a right result, the claim holds" if assessment.wrong else "the claim holds"
    match claim.direction:
        case "at_least":
            return Text(f"{holds} from {low} on (tolerance: {tolerance})")
        case "at_most":
            return Text(f"{holds} up to {high} (tolerance: {tolerance})")
        case "about":
            return Text(f"{holds} from {low} to {high} (tolerance: {tolerance})")


def _reached(assessment: Assessment, _: r.Reached) -> str:
    direction = assessment.claim.direction
    within = f"{describe_limits(assessment)}"
    if direction == "about":
        equal = assessment.ratio is not None and abs(assessment.ratio.estimate - 1) < 0.005
        share = "is" if equal else f"is {_share(assessment.ratio)}"
        return f"{format_measured(assessment)} {share} {_expected(assessment)}" + ("" if equal else f"; {within}")
    least, most = limits(direction, assessment.expected, 0.0)
    number = assessment.measured
    beyond = number is not None and least <= number.estimate <= most
    if not beyond:
        return f"{format_measured(assessment)} is {_share(assessment.ratio)} {_expected(assessment)}; {within}"
    more = {"at_least": "reaches", "at_most": "is at most", "above": "exceeds"}[direction]
    return f"{format_measured(assessment)} {more} {_expected(assessment)}"


def _missed(assessment: Assessment, reason: r.Missed) -> str:
    number, claim = assessment.measured, assessment.claim
    limit = f"; {describe_limits(assessment)}{_of_other_card(assessment, reason)}"
    if number is not None and isinstance(claim.test, RatioTest):
        text = f"the speed of {claim.test.case.variant} is {format_measured(assessment)} that of {assessment.fastest}"
        if number.estimate < 1 or claim.published.value >= 2:
            return f"{text}, where {format_published(claim.published)} was published{limit}"
        here, there = (units.percent(factor - 1) for factor in (number.estimate, claim.published.value))
        return f"{text}: a gain of {here}, where {there} was published{limit}"
    verb = "only " if reason.side == "below" and claim.direction == "at_least" else ""
    return f"{format_measured(assessment)} is {verb}{_share(assessment.ratio)} {_expected(assessment)}{limit}"


def _of_other_card(assessment: Assessment, reason: r.Missed) -> str:
    """That the number is of another card, whether it is better there, and what this leaves of the claim."""
    card, unit = assessment.other_card, assessment.claim.published.unit
    if card is None or not assessment.by_measurement:
        return ""
    said = f". The published number is of {card}, and this one of {assessment.device}"
    if unit == "x":
        return f"{said}: the gain of a kernel differs between cards"
    better = (reason.side == "above") == (unit in ("flop/s", "B/s", "1/s"))
    if unit in ("B", "fraction"):
        return said
    equal = " although both data sheets state the same peak" if assessment.scale is not None else ""
    return f"{said}, which is {'faster' if better else 'slower'} than published{equal}"


def _straddling(assessment: Assessment, _: r.Straddling) -> str:
    return (
        f"the {format_interval(assessment)} contains a limit of what {_expected(assessment)} allows: "
        f"{describe_limits(assessment)}; measure longer"
    )


def _unreliable(assessment: Assessment, reason: r.Unreliable) -> str:
    return (
        f"the time of {reason.variant} is unreliable ({describe_part(reason.part)}), so {format_measured(assessment)} is not "
        f"compared with {_expected(assessment)}; measure it again while nothing else uses the machine"
    )


def _too_wide(assessment: Assessment, reason: r.TooWide) -> str:
    return (
        f"the measurement was disturbed: {format_measured(assessment)} is uncertain by ±{units.width(reason.half_width)} "
        f"({format_interval(assessment)}), so it is not compared with {_expected(assessment)}; measure it again while nothing "
        "else uses the machine"
    )


def _without_interval(assessment: Assessment, reason: r.WithoutInterval) -> Text | str:
    if reason.reason is not None:
        return describe_verdict_reason(reason.reason)
    return f"{format_measured(assessment)} has no interval, so it is not compared with {_expected(assessment)}"


def _decided(assessment: Assessment, reason: r.Decided) -> str:
    number, why = format_measured(assessment), describe_verdict_reason(reason.reason)
    variant = assessment.claim.cases[0].variant
    if reason.kind == "same":
        return f"the variant {variant} is as fast as {assessment.fastest}: {why}"
    return f"the variant {variant} is {reason.kind}, {number} as fast as {assessment.fastest}: {why}"


def _wrong(assessment: Assessment, reason: r.Wrong) -> str:
    claim, number = assessment.claim, assessment.measured
    caption = f". {reason.caption.rstrip('.')}" if reason.caption else ""
    why = f"{on_one_line(describe_failure(reason.failure))}{caption}"
    stage = (
        "its time is impossible" if reason.failure.stage == "impossible" else f"the result of {reason.variant} is wrong"
    )
    if number is None:
        return f"{stage}: {why}"
    text = format_number_here(assessment)
    if isinstance(claim.test, RatioTest):
        published = "" if claim.direction == "above" else f" (published {format_published(claim.published)})"
        return f"by its time it is {text} as fast as {assessment.fastest}{published}{_by_number(assessment)} {stage}: {why}"
    verb = "takes" if claim.published.unit in ("s", "B") else "reaches"
    share = f"{_share(assessment.ratio)} {_expected(assessment)}"
    return f"it {verb} {text}, which is {share}{_by_number(assessment)} {stage}: {why}"


def _by_number(assessment: Assessment) -> str:
    """What the number of a wrong result alone would give, and how that continues with the mistake."""
    match assessment.verdict_by_number:
        case "holds":
            return "; the claim would hold by this number, but"
        case "does not hold":
            return "; the claim would not hold by this number, and"
        case _:
            return ", but"


def _not_measured(_: Assessment, reason: r.NotMeasured) -> str:
    return f"{units.counted(reason.cases, 'case')} to be measured on this device"


_REASONS: Mapping[type, Callable[[Assessment, Any], "Text | str"]] = {
    r.Reached: _reached,
    r.Missed: _missed,
    r.Straddling: _straddling,
    r.WithoutInterval: _without_interval,
    r.Unreliable: _unreliable,
    r.TooWide: _too_wide,
    r.Decided: _decided,
    r.Wrong: _wrong,
    r.NotMeasured: _not_measured,
    r.NotCalibrated: lambda _, reason: (
        "this device has no such measured roof; press Calibrate on the page Device, or `kernelviz device --calibrate`"
    ),
    r.CaseFailed: lambda _, reason: f"with {reason.variant}: {format_failure(reason.failure, most=MOST_OF_A_FAILURE)}",
    r.MemoryUnknown: lambda _, reason: "the result has no peak memory; measure it again with this version",
    r.NoDataSheet: lambda _, reason: f"kernelviz has no data sheet of {reason.card} that states this value",
    r.NeedsWork: lambda _, reason: f"it would take {reason.takes}",
    r.NeedsKind: lambda _, reason: (
        "it needs a GPU" if reason.kind == "cuda" else "it is about a CPU: choose the device cpu"
    ),
    r.NeedsCard: lambda _, reason: f"it needs the card itself: {' or '.join(reason.cards)}",
    r.NeedsCapability: lambda _, reason: (
        f"it needs a GPU of compute capability {reason.capability[0]}.{reason.capability[1]} or later"
    ),
    r.NeedsGpus: lambda _, reason: f"it needs {reason.gpus} GPUs",
    r.NeedsMemory: lambda _, reason: f"it needs {units.size_bytes(reason.memory_bytes)} of device memory",
    r.NeedsVariant: lambda _, reason: f"the catalogue has no variant {reason.variant} of {reason.op} for this problem",
    r.Refused: lambda _, reason: f"with {reason.variant}: {describe_reason(reason.reason)}",
}
