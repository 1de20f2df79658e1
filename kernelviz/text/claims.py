"""Published claims in text: numbers with units, verdicts, the reason of each in one sentence, and how it is tested."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kernelviz.core import Problem, units
from kernelviz.core.claim import (
    ArithmeticTest,
    Claim,
    ClaimCase,
    ClaimDirection,
    ClaimSource,
    ClaimUnit,
    DataSheetTest,
    MemoryTest,
    NoTest,
    Published,
    RatioTest,
    RoofTest,
    TimeTest,
)
from kernelviz.metrics import claim_reasons as r
from kernelviz.metrics.absences import FIELDS
from kernelviz.metrics.claims import Assessment, limits
from kernelviz.metrics.statistics import Interval
from kernelviz.text.failures import describe_failure, describe_reason, format_failure
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text, join, on_one_line
from kernelviz.text.times import FIGURES
from kernelviz.text.verdicts import describe_verdict_reason

MOST_OF_A_FAILURE = 240
"""So many characters of a failure's own text are part of a reason."""
VERDICTS: Mapping[r.ClaimVerdict, Text] = MappingProxyType(
    {
        "holds": Text("✓ holds"),
        "does not hold": Text("✕ does not hold"),
        "wrong result": Text("⚠ wrong result"),
        "unclear": Text("? unclear"),
        "not measured yet": Text("○ not measured yet"),
        "cannot be tested here": Text("⊘ cannot be tested here"),
    }
)
"""A verdict with a sign of its own, so that nothing is said by colour alone."""
RULE = (
    "A number here may miss the published one by 10 %, or by half of its last printed digit if that is more; of a factor, by "
    "10 % of its part beyond 1×. "
    "“At least” holds if the whole 95 % interval is above that limit, “at most” if it is below it, “about” if it is between both "
    "limits; if the whole interval is on the other side, the claim does not hold, otherwise it is unclear. A claim without a "
    "number holds if the verdict on both times is “faster”. A time or rate of another card is converted by the ratio of both "
    "data sheets where the claim says so. The number of a wrong result is shown, and never counts."
)
_DIRECTIONS: Mapping[ClaimDirection, str] = {
    "about": "about",
    "at_least": "at least",
    "at_most": "at most",
    "above": "more than",
}
_QUANTITIES: Mapping[str, str] = {"bandwidth": "memory bandwidth"}


def format_number(value: float, unit: ClaimUnit, digits: int = 4) -> str:
    """A number of a claim with its unit.

    >>> format_number(12.5e-3, "s", 3), format_number(1.16, "x", 3), format_number(763e12, "flop/s", 3)
    ('12.5 ms', '1.16×', '763 TFLOP/s')
    >>> format_number(4.2e9, "B", 2), format_number(126e9, "1/s", 3), format_number(0.5, "fraction", 2)
    ('4.2 GB', '126 billion elements/s', '50 %')
    """
    match unit:
        case "s":
            return units.seconds(value, digits)
        case "x":
            return f"{units.significant(value, digits)}×"
        case "flop/s":
            return units.rate(value, "FLOP/s", digits)
        case "B/s":
            return units.gigabytes_per_s(value, digits)
        case "B":
            return units.rate(value, "B", digits)
        case "1/s":
            return f"{units.significant(value / 1e9, digits)} billion elements/s"
        case "fraction":
            return f"{units.significant(100 * value, digits)} %"


def format_published(published: Published) -> Text:
    """The number as printed: with the digits that the source prints.

    >>> str(format_published(Published(value=0.03e-3, unit="s", rounded_to=0.01e-3)))
    '30 µs'
    """
    return Text(format_number(published.value, published.unit, _printed_digits(published)))


def _printed_digits(published: Published) -> int:
    if published.rounded_to is None:
        return 2
    return max(
        1, 1 + math.floor(math.log10(published.value) + 1e-9) - math.floor(math.log10(published.rounded_to) + 1e-9)
    )


def format_claimed(claim: Claim) -> Text:
    """The direction and the number: what the source says.

    >>> from kernelviz.core.claim import NoTest
    >>> published = Published(value=1.0, unit="x")
    >>> str(format_claimed(Claim(id="a", source="s", setup="", published=published, direction="above", test=NoTest(takes=""))))
    'faster'
    """
    if claim.direction == "above":
        return Text("faster")
    return Text(f"{_DIRECTIONS[claim.direction]} {format_published(claim.published)}")


def format_measured(assessment: Assessment) -> Text | None:
    """The number here with the digits that its interval leaves; None without one. That of a wrong result says so."""
    number = assessment.measured
    if number is None:
        return None
    return Text(f"{_number(assessment)} (wrong)" if assessment.wrong else _number(assessment))


def _number(assessment: Assessment) -> str:
    """The number here; one that is exact is rounded to the digits that the source prints."""
    number, published = assessment.measured, assessment.claim.published
    if number is None:
        return "no number"
    if number.low == number.high and number.low is not None:
        return format_number(number.estimate, published.unit, max(2, _printed_digits(published)))
    return format_number(number.estimate, published.unit, units.digits_of(number.half_width))


def format_interval(assessment: Assessment) -> Text:
    """The 95 % interval of the number here; what it is if it has none."""
    number, unit = assessment.measured, assessment.claim.published.unit
    if number is None:
        return Text("no number")
    if number.low is None or number.high is None:
        return Text("no interval")
    if number.low == number.high:
        return Text("exact")
    digits = max(3, units.digits_of(number.half_width))
    return Text(
        f"95 % interval {format_number(number.low, unit, digits)} to {format_number(number.high, unit, digits)}"
    )


def describe_assessment(assessment: Assessment) -> Text:
    """Why the claim has its verdict, in one sentence."""
    text = on_one_line(_REASONS[type(assessment.reason)](assessment, assessment.reason))
    said = str(text).rstrip(".")
    return Text(f"{said[:1].upper()}{said[1:]}.")


def _expected(assessment: Assessment) -> str:
    """The published number, or what it is on this card."""
    published = f"the published {format_published(assessment.claim.published)}"
    if assessment.scale is None or assessment.scale.factor == 1.0:
        return published
    here = format_number(assessment.expected, assessment.claim.published.unit, 3)
    quantity = _QUANTITIES.get(assessment.scale.by, f"{assessment.scale.by} peak")
    return f"the {here} that {published} becomes by this card's {quantity}"


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
    tolerance = assessment.claim.published.tolerance
    return units.percent(tolerance, 0 if tolerance > 0.095 else 1)


def _reached(assessment: Assessment, _: r.Reached) -> str:
    direction = assessment.claim.direction
    within = f"within the tolerance of {_tolerance(assessment)}"
    if direction == "about":
        equal = assessment.ratio is not None and abs(assessment.ratio.estimate - 1) < 0.005
        share = "is" if equal else f"is {_share(assessment.ratio)}"
        return f"{format_measured(assessment)} {share} {_expected(assessment)}" + ("" if equal else f", {within}")
    least, most = limits(direction, assessment.expected, 0.0)
    number = assessment.measured
    beyond = number is not None and least <= number.estimate <= most
    if not beyond:
        return f"{format_measured(assessment)} is {_share(assessment.ratio)} {_expected(assessment)}, {within}"
    more = {"at_least": "reaches", "at_most": "is at most", "above": "exceeds"}[direction]
    return f"{format_measured(assessment)} {more} {_expected(assessment)}"


def _missed(assessment: Assessment, reason: r.Missed) -> str:
    number, claim = assessment.measured, assessment.claim
    if number is not None and isinstance(claim.test, RatioTest):
        text = f"here, {claim.test.case.variant} is {format_measured(assessment)} as fast as {assessment.fastest}"
        if number.estimate < 1 or claim.published.value >= 2:
            return f"{text}, where {format_published(claim.published)} was published"
        here, there = (units.percent(factor - 1) for factor in (number.estimate, claim.published.value))
        return f"{text}: a gain of {here}, where {there} was published"
    verb = "only " if reason.side == "below" and claim.direction == "at_least" else ""
    return f"{format_measured(assessment)} is {verb}{_share(assessment.ratio)} {_expected(assessment)}"


def _straddling(assessment: Assessment, _: r.Straddling) -> str:
    return (
        f"the {format_interval(assessment)} contains a limit of what {_expected(assessment)} allows with its tolerance of "
        f"{_tolerance(assessment)}; measure longer"
    )


def _without_interval(assessment: Assessment, reason: r.WithoutInterval) -> Text | str:
    if reason.reason is not None:
        return describe_verdict_reason(reason.reason)
    return f"{format_measured(assessment)} has no interval, so it is not compared with {_expected(assessment)}"


def _decided(assessment: Assessment, reason: r.Decided) -> str:
    number, why = format_measured(assessment), describe_verdict_reason(reason.reason)
    variant = assessment.claim.cases[0].variant
    if reason.kind == "same":
        return f"here, {variant} is as fast as {assessment.fastest}: {why}"
    return f"here, {variant} is {reason.kind}, {number} as fast as {assessment.fastest}: {why}"


def _wrong(assessment: Assessment, reason: r.Wrong) -> str:
    claim, number = assessment.claim, assessment.measured
    why = on_one_line(describe_failure(reason.failure))
    stage = (
        "its time is impossible" if reason.failure.stage == "impossible" else f"the result of {reason.variant} is wrong"
    )
    if number is None:
        return f"{stage}: {why}"
    text = _number(assessment)
    if isinstance(claim.test, RatioTest):
        published = "" if claim.direction == "above" else f" (published {format_published(claim.published)})"
        return f"by its time it is {text} as fast as {assessment.fastest}{published}, but {stage}: {why}"
    return f"it takes {text} (published {format_published(claim.published)}), but {stage}: {why}"


def _not_measured(_: Assessment, reason: r.NotMeasured) -> str:
    return f"{units.counted(reason.cases, 'case')} to be measured on this device"


_REASONS: Mapping[type, Callable[[Assessment, Any], "Text | str"]] = {
    r.Reached: _reached,
    r.Missed: _missed,
    r.Straddling: _straddling,
    r.WithoutInterval: _without_interval,
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


def describe_case(case: ClaimCase) -> Text:
    """A case of a test: what is measured, and which figure of it counts."""
    sizes = format_sizes(Problem(op=case.op, sizes=case.sizes, dtype=case.dtype))
    extra = [
        case.compute,
        None if case.direction == "forward" else case.direction,
        None if case.data == "normal" else case.data,
    ]
    parts = (case.op, case.variant, case.dtype, *extra)
    figure = next((f.name for f in FIGURES if f.field == FIELDS[case.figure]), case.figure)
    return Text(f"{' '.join(filter(None, parts))} at {sizes} ({figure})")


def describe_test(claim: Claim) -> Text:
    """How the claim is tested, in one sentence."""
    match claim.test:
        case TimeTest(case=case):
            what = "The time" if claim.published.unit == "s" else "The rate"
            return Text(f"{what} of {describe_case(case)}.")
        case RatioTest(case=case, over=over):
            alternatives = join(" or ", map(describe_case, over))
            fastest = "" if len(over) == 1 else "the fastest of "
            return Text(f"The time of {fastest}{alternatives} over that of {describe_case(case)}.")
        case MemoryTest(case=case, with_inputs=with_inputs):
            beside = "with its inputs" if with_inputs else "beside its inputs"
            return Text(f"The most memory of one call of {describe_case(case)}, {beside}, by torch's allocators.")
        case ArithmeticTest(product=product, over=over):
            terms = " × ".join(f"{q.name} ({q.value:,.10g})" for q in product)
            under = "".join(f" ÷ {q.name} ({q.value:,.10g})" for q in over)
            return Text(f"Arithmetic: {terms}{under}.")
        case DataSheetTest(card=card, precision=precision):
            return Text(
                f"The maker's data sheet of {card}: {'memory bandwidth' if precision is None else f'{precision} peak'}."
            )
        case RoofTest(roof=roof, precision=precision):
            what = (
                "bandwidth of a read from memory" if roof == "read" else f"loop of {precision} tensor-core instructions"
            )
            return Text(f"The measured roof of this device: {what}.")
        case NoTest(takes=takes):
            return Text(f"Nothing here tests it: it would take {takes}.")


def command_of(claim: Claim) -> str:
    """The command that measures the claim; empty if nothing is measured."""
    return f"kernelviz claims run {claim.id}" if claim.cases else ""


def format_source(source: ClaimSource) -> Text:
    """Author, title and address of a source; an unknown author is said."""
    return Text(f"{source.author or 'author unknown'}: {source.title}, {source.where}")


def describe_counts(counts: Mapping[r.ClaimVerdict, int]) -> Text:
    """How many claims have each verdict, in one sentence.

    >>> str(describe_counts({"holds": 2, "unclear": 0, "cannot be tested here": 1}))
    '3 claims: 2 hold, 1 cannot be tested here.'
    """
    texts = {
        "holds": "hold",
        "does not hold": "do not hold",
        "wrong result": "have a wrong result",
        "unclear": "are unclear",
    }
    texts |= {"not measured yet": "are not measured yet", "cannot be tested here": "cannot be tested here"}
    named = [f"{count} {texts[verdict]}" for verdict, count in counts.items() if count]
    return Text(f"{units.counted(sum(counts.values()), 'claim')}: {', '.join(named)}.")
