"""Published numbers that a machine can check: sources, what each says, how it is tested, and contradictions in a source.

Values are in SI base units. `kernelviz.formats.claim_files` reads them from ``kernelviz/published_claims/*.toml``.
"""

from typing import Literal

import msgspec

from kernelviz.core.problem import Data, Direction, FigureName
from kernelviz.core.run import DeviceKind

ClaimUnit = Literal["s", "x", "flop/s", "B/s", "B", "1/s", "fraction"]
"""Seconds; a factor between two times; flop, bytes or elements per second; bytes; a share of a whole."""
ClaimDirection = Literal["about", "at_least", "at_most", "above"]
"""How the number here has to compare with the published one: ``about`` (as large), ``at_least``, ``at_most``, or ``above``: any
difference in the direction that the source names, by the rule for verdicts on two times."""
TOLERANCE = 0.10
"""A number may miss the published one by this share of it, or by half of its last printed digit if that is more. Of a factor
between two times, the share is of its part beyond 1: otherwise no difference at all would meet a claim of 5 %."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the entries of the files of claims. A field that is not known is an error, because it is a typing error."""


class ClaimSource(Entry, frozen=True, kw_only=True):
    """Where numbers were published. `author`: None if the source names none. `where`: its address, or the document."""

    name: str
    title: str
    where: str
    author: str | None = None


class Published(Entry, frozen=True, kw_only=True):
    """The number as printed. `rounded_to`: the step of its last printed digit; None: its digits are not known to matter."""

    value: float
    unit: ClaimUnit
    rounded_to: float | None = None

    @property
    def tolerance(self) -> float:
        """By which share of it a number may miss it.

        >>> round(Published(value=12.5e-3, unit="s", rounded_to=0.1e-3).tolerance, 3)
        0.1
        >>> round(Published(value=0.03e-3, unit="s", rounded_to=0.01e-3).tolerance, 3)
        0.167
        >>> round(Published(value=1.16, unit="x", rounded_to=0.01).tolerance, 3)
        0.014
        """
        counted = abs(self.value - 1) if self.unit == "x" else self.value
        return max(TOLERANCE * counted, 0.5 * (self.rounded_to or 0.0)) / self.value


class ClaimCase(Entry, frozen=True, kw_only=True):
    """One measured case and the figure of it that counts (`FigureName`; energy is none of a claim)."""

    op: str
    variant: str
    sizes: dict[str, int]
    dtype: str
    compute: str | None = None
    direction: Direction = "forward"
    data: Data = "normal"
    figure: FigureName = "cold"

    @property
    def key(self) -> str:
        """One line that is equal for equal cases with the same figure."""
        sizes = " ".join(f"{axis}={size}" for axis, size in self.sizes.items())
        extra = (self.compute or "", self.direction, self.data, self.figure)
        return " ".join((self.op, self.variant, sizes, self.dtype, *extra))


class TimeTest(Entry, frozen=True, kw_only=True, tag="time", tag_field="kind"):
    """The time of a case, or the rate that follows: flop or bytes of the problem, or its elements (axis n), per second."""

    case: ClaimCase


class RatioTest(Entry, frozen=True, kw_only=True, tag="ratio", tag_field="kind"):
    """How many times as fast a case is as the fastest correct one of others: time of that one over the time of `case`."""

    case: ClaimCase
    over: tuple[ClaimCase, ...]


class MemoryTest(Entry, frozen=True, kw_only=True, tag="memory", tag_field="kind"):
    """The most memory of one call, by torch's allocators. `with_inputs`: with the bytes of its inputs, or what it takes beside
    them."""

    case: ClaimCase
    with_inputs: bool = True


class Quantity(Entry, frozen=True, kw_only=True):
    """A factor of a calculation, with what it is."""

    name: str
    value: float


class ArithmeticTest(Entry, frozen=True, kw_only=True, tag="arithmetic", tag_field="kind"):
    """A number that follows from others without measuring: the product of `product` over that of `over`."""

    product: tuple[Quantity, ...]
    over: tuple[Quantity, ...] = ()

    @property
    def value(self) -> float:
        """The result, in SI base units.

        >>> ArithmeticTest(product=(Quantity(name="bandwidth", value=1008e9),), over=(Quantity(name="bytes", value=8),)).value
        126000000000.0
        """
        result = 1.0
        for factor in self.product:
            result *= factor.value
        for divisor in self.over:
            result /= divisor.value
        return result


class DataSheetTest(Entry, frozen=True, kw_only=True, tag="datasheet", tag_field="kind"):
    """What the maker's data sheet says of a card. `card`: as its driver spells it. `precision`: of the peak rate; None: the
    memory bandwidth."""

    card: str
    precision: str | None = None


class RoofTest(Entry, frozen=True, kw_only=True, tag="roof", tag_field="kind"):
    """The highest roof of a kind that a calibration of this device measured: ``read`` (bytes from memory), or ``mma``, a loop of
    tensor-core instructions in a precision, without memory."""

    roof: Literal["read", "mma"] = "read"
    precision: str | None = None


class WorkloadClaimCase(Entry, frozen=True, kw_only=True):
    """One measured case of a workload and the figure of it that counts, by its name on the wire. `values`: of all axes."""

    workload: str
    variant: str
    values: dict[str, int | str]
    figure: str

    @property
    def key(self) -> str:
        """One line that is equal for equal cases with the same figure."""
        values = " ".join(f"{axis}={value}" for axis, value in self.values.items())
        return f"{self.workload} {values} | {self.variant} {self.figure}"


class WorkloadTest(Entry, frozen=True, kw_only=True, tag="workload", tag_field="kind"):
    """A figure of a workload; with `over`, how many times better it is than that of `over` in the same run (a shorter time, fewer
    bytes, a higher rate). Both have the same figure and values."""

    case: WorkloadClaimCase
    over: WorkloadClaimCase | None = None


class NoTest(Entry, frozen=True, kw_only=True, tag="none", tag_field="kind"):
    """A number that nothing here tests. `takes`: what it would take, as the end of a sentence."""

    takes: str


ClaimTest = TimeTest | RatioTest | MemoryTest | ArithmeticTest | DataSheetTest | RoofTest | WorkloadTest | NoTest
CaseTest = TimeTest | RatioTest | MemoryTest


class ClaimConditions(Entry, frozen=True, kw_only=True):
    """What a device needs so that the test says something about the claim. `cards`: names of devices, of which it must be one;
    empty: any. `capability`: the least compute capability. `gpus`: how many GPUs. `memory_bytes`: the least memory."""

    kind: DeviceKind | None = None
    cards: tuple[str, ...] = ()
    capability: tuple[int, int] | None = None
    gpus: int = 1
    memory_bytes: int | None = None


class Claim(Entry, frozen=True, kw_only=True):
    """One published number.

    `published_on`: the device of the source, as its driver spells it if a data sheet is known. `scaled_by`: the quantity of the
    data sheets by which a number of another card is converted to this one (``bandwidth``, or a precision whose peak counts).
    `sheet_card`: the card whose data sheet counts for that where there is none of `published_on`. `substitute`: which kernel of
    the catalogue is measured in place of the source's, and why. `remark`: what to know about the number.
    """

    id: str
    source: str
    setup: str
    published: Published
    direction: ClaimDirection
    test: ClaimTest
    conditions: ClaimConditions = ClaimConditions()
    published_on: str | None = None
    scaled_by: str | None = None
    sheet_card: str | None = None
    substitute: str = ""
    remark: str = ""

    @property
    def cases(self) -> tuple[ClaimCase, ...]:
        """The cases that have to be measured; none if the test measures nothing."""
        match self.test:
            case TimeTest(case=case) | MemoryTest(case=case):
                return (case,)
            case RatioTest(case=case, over=over):
                return (case, *over)
            case _:
                return ()

    @property
    def workload_cases(self) -> tuple[WorkloadClaimCase, ...]:
        """The cases of a workload that have to be measured; none unless the test is about one."""
        if not isinstance(self.test, WorkloadTest):
            return ()
        return (self.test.case,) if self.test.over is None else (self.test.case, self.test.over)

    @property
    def op(self) -> str | None:
        """The op of its cases; None if nothing is measured."""
        return self.cases[0].op if self.cases else None


class Contradiction(Entry, frozen=True, kw_only=True):
    """Two statements of one source that cannot both be true, or a program of it that cannot do what the source says of it.
    `claims`: the ids of claims that it concerns."""

    source: str
    sentence: str
    claims: tuple[str, ...] = ()


class ClaimCollection(msgspec.Struct, frozen=True, kw_only=True):
    """All sources, claims and contradictions, in the order of the files."""

    sources: tuple[ClaimSource, ...]
    claims: tuple[Claim, ...]
    contradictions: tuple[Contradiction, ...]

    def source_of(self, claim: Claim | Contradiction) -> ClaimSource:
        """The source of a claim or a contradiction."""
        return next(s for s in self.sources if s.name == claim.source)

    def about(self, claim: Claim) -> tuple[Contradiction, ...]:
        """The contradictions that concern a claim."""
        return tuple(c for c in self.contradictions if claim.id in c.claims)
