"""Published claims in text: numbers with units, verdicts, the reason of each in one sentence, and how it is tested."""

import math
from collections.abc import Mapping
from types import MappingProxyType

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
    WorkloadClaimCase,
    WorkloadTest,
)
from kernelviz.metrics import claim_reasons as r
from kernelviz.metrics.absences import FIELDS
from kernelviz.metrics.claim_limits import MOST_HALF_WIDTH
from kernelviz.metrics.claims import Assessment, Basis, Scale
from kernelviz.text.quality import format_badge
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text, join
from kernelviz.text.times import FIGURES

VERDICTS: Mapping[r.ClaimVerdict, Text] = MappingProxyType(
    {
        "holds": Text("✓ holds"),
        "does not hold": Text("✕ does not hold"),
        "wrong result": Text("⚠ wrong result"),
        "unclear": Text("? unclear"),
        "not measured yet": Text("○ not measured yet"),
        "cannot be tested here": Text("⊘ cannot be tested"),
    }
)
"""A verdict with a sign of its own, so that nothing is said by colour alone."""
RULE = (
    "A number here may miss the published one by 10 %, or by half of its last printed digit if that is more; of a factor, by "
    "10 % of its part beyond 1×. "
    "“At least” holds if the whole 95 % interval is above that limit, “at most” if it is below it, “about” if it is between both "
    "limits; if the whole interval is on the other side, the claim does not hold, otherwise it is unclear. It is also unclear if "
    f"the measurement quality of a time is “unreliable”, or if the interval is wider than {units.percent(MOST_HALF_WIDTH, 0)} on "
    "either side. A claim without a number holds if the verdict on both times is “faster”. A time or rate of another card is "
    "converted by the ratio of both "
    "data sheets where the claim says so. The number of a wrong result is shown, and never counts."
)
BASES: Mapping[Basis, str] = {
    "measurement": "measurement",
    "roof": "calibration",
    "data_sheet": "data sheet",
    "arithmetic": "arithmetic",
    "none": "nothing here",
}
"""What a claim is tested by."""
_QUANTITIES: Mapping[str, str] = {"bandwidth": "memory bandwidth"}
_DIRECTIONS: Mapping[ClaimDirection, str] = {
    "about": "about",
    "at_least": "at least",
    "at_most": "at most",
    "above": "more than",
}


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
    return Text(format_number(published.value, published.unit, printed_digits(published)))


def printed_digits(published: Published) -> int:
    """How many digits of the number count."""
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


def format_quantity(scale: Scale) -> str:
    """What the data sheets are compared in.

    >>> format_quantity(Scale("bandwidth", "a", "b", 2.0)), format_quantity(Scale("fp32", "a", "b", 2.0))
    ('memory bandwidth', 'fp32 peak')
    """
    return _QUANTITIES.get(scale.by, f"{scale.by} peak")


def format_expected(assessment: Assessment) -> str | None:
    """The published number converted to this card; None where it stays as it was published, or the conversion is unknown."""
    if assessment.scale is None or assessment.scale.factor == 1.0:
        return None
    return format_number(assessment.expected, assessment.claim.published.unit, 3)


def format_claimed_here(assessment: Assessment) -> Text:
    """What the source says, and beside it what that is on this card where the number is converted."""
    here = "unknown" if assessment.unconverted else format_expected(assessment)
    return format_claimed(assessment.claim) + ("" if here is None else f" ({here} on this card)")


def describe_conversion(assessment: Assessment) -> Text:
    """What the published number is on this card and by which ratio; empty where it is not converted."""
    scale, here = assessment.scale, format_expected(assessment)
    if assessment.unconverted:
        return Text("unknown, because kernelviz does not have the data sheets of both cards")
    if scale is None or here is None:
        return Text("")
    published = format_published(assessment.claim.published)
    return Text(
        f"{here} (the published {published} times {units.significant(scale.factor, 3)}, the ratio of {format_quantity(scale)} in "
        f"the data sheets of {scale.from_card} and {scale.to_card})"
    )


def format_measured(assessment: Assessment) -> Text | None:
    """The number here with the digits that its interval leaves; None without one. That of a wrong result says so."""
    number = assessment.measured
    if number is None:
        return None
    return Text(f"{format_number_here(assessment)} (wrong)" if assessment.wrong else format_number_here(assessment))


def format_number_here(assessment: Assessment) -> str:
    """The number here; one that is exact is rounded to the digits that the source prints."""
    number, published = assessment.measured, assessment.claim.published
    if number is None:
        return "no number"
    if number.low == number.high and number.low is not None:
        return format_number(number.estimate, published.unit, max(2, printed_digits(published)))
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


def describe_workload_case(case: WorkloadClaimCase) -> Text:
    """A case of a workload: the workload, the variant, and the values of its axes."""
    values = ", ".join(f"{axis} {value}" for axis, value in case.values.items())
    return Text(f"the workload {case.workload}, variant {case.variant}, at {values}")


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
        case WorkloadTest(case=workload, over=other):
            if other is None:
                return Text(f"The figure {workload.figure} of {describe_workload_case(workload)}.")
            return Text(
                f"How many times better the figure {workload.figure} of {describe_workload_case(workload)} is than that of "
                f"{other.variant} in the same run."
            )
        case NoTest(takes=takes):
            return Text(f"Nothing here tests it: it would take {takes}.")


def command_of(claim: Claim) -> str:
    """The command that measures the claim; empty if nothing is measured."""
    return f"kernelviz claims run {claim.id}" if claim.cases or claim.workload_cases else ""


def format_source(source: ClaimSource) -> Text:
    """Author, title and address of a source; an unknown author is said."""
    return Text(f"{source.author or 'author unknown'}: {source.title}, {source.where}")


def describe_qualities(assessment: Assessment) -> tuple[Text, ...]:
    """The measurement quality of each time that counts: the variant, the level and its worst reason."""
    return tuple(Text(f"{one.variant}: {format_badge(one.quality)}") for one in assessment.qualities)


_COUNTED: Mapping[r.ClaimVerdict, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "wrong result": ("has a wrong result", "have a wrong result"),
    "unclear": ("is unclear", "are unclear"),
    "not measured yet": ("is not measured yet", "are not measured yet"),
    "cannot be tested here": ("cannot be tested", "cannot be tested"),
}
"""The verb of a verdict, for one claim and for several."""


def describe_counts(counts: Mapping[r.ClaimVerdict, int], unmeasured: Mapping[r.ClaimVerdict, int]) -> Text:
    """How many claims have each verdict, in one sentence. `unmeasured`: how many of these by a data sheet or arithmetic,
    which say nothing about the device.

    >>> str(describe_counts({"holds": 5, "unclear": 1, "cannot be tested here": 1}, {"holds": 3}))
    '7 claims: 5 hold (2 by measurement, 3 by data sheet or arithmetic), 1 is unclear, 1 cannot be tested.'
    >>> str(describe_counts({"holds": 1}, {"holds": 1}))
    '1 claim: 1 holds (by data sheet or arithmetic).'
    """
    named = [
        f"{count} {_COUNTED[verdict][count > 1]}{_by(count, unmeasured.get(verdict, 0))}"
        for verdict, count in counts.items()
        if count
    ]
    return Text(f"{units.counted(sum(counts.values()), 'claim')}: {', '.join(named)}.")


def _by(count: int, unmeasured: int) -> str:
    by = "by data sheet or arithmetic"
    if not unmeasured:
        return ""
    if unmeasured == count:
        return f" ({'all ' if count > 1 else ''}{by})"
    return f" ({count - unmeasured} by measurement, {unmeasured} {by})"
