"""The inspection of one call: facts about its input and output tensors, and the error of each output element."""

import math
from typing import Literal

from kernelviz.core.problem import Problem, Struct, case_key
from kernelviz.core.reasons import Reason
from kernelviz.core.run import Environment

INSPECTION_SCHEMA = "kernelviz-inspection/1"

BINS = 64
"""The number of bins of a histogram of values."""
MAP_CELLS = 64
"""The largest number of cells along each side of an error map."""
WORST = 10
"""The number of elements with the largest errors that are listed."""
OCTAVES = 12
"""The histogram of errors has one bin for each power of two from 2^-OCTAVES to 2^OCTAVES times the allowed error."""

Role = Literal["input", "output"]
CallKind = Literal["timed", "eager"]
MemoryMoment = Literal["before_bind", "after_bind", "after_first_call", "before_call", "after_call"]
"""When memory was read: before the variant was bound, before and after its first call, and round the call that was inspected."""
Value = float | Literal["NaN", "+Inf", "-Inf"]
"""A number in a document. NaN and infinity are text, because JSON has no such numbers."""


def value(number: float) -> Value:
    """The number as a document contains it.

    >>> value(0.5), value(float("nan")), value(float("-inf"))
    (0.5, 'NaN', '-Inf')
    """
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


class Histogram(Struct, frozen=True, kw_only=True):
    """Counts of the finite values in bins of equal width from `low` to `high`. There is a single bin if all values are equal."""

    low: float
    high: float
    counts: tuple[int, ...]


class MemoryState(Struct, frozen=True, kw_only=True):
    """The memory of the device that torch has given to tensors of the measuring process, and that it has reserved for them, in
    bytes. None is unknown: torch counts both on GPUs only."""

    moment: MemoryMoment
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None


class TensorFacts(Struct, frozen=True, kw_only=True):
    """An input before the call or an output after it. Strides are in elements, sizes in bytes.

    `alignment_bytes` is the largest power of two that divides the address of the first element, at most 2 MiB; None if the
    tensor has no elements. `minimum`, `maximum`, `mean` and `deviation` are those of the finite values, computed in float64;
    None if there are no finite values or if the result is outside the range of float64. `deviation` is the standard deviation
    of the population. `unwritten` counts the elements of an output that still contain the 0xFF bytes with which it was filled
    before the call. `aliases` names the inputs whose memory the output uses.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size_bytes: int
    device: str
    alignment_bytes: int | None
    contiguous: bool
    nan: int
    positive_infinity: int
    negative_infinity: int
    zeros: int
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    deviation: float | None = None
    histogram: Histogram | None = None
    unwritten: int | None = None
    aliases: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Element(Struct, frozen=True, kw_only=True):
    """One element of an output.

    `share` is |error| / allowed. It is None if no bound can be met: one of `got` and `expected` is finite and the other is not,
    or the allowed error is 0.
    """

    index: tuple[int, ...]
    got: Value
    expected: Value
    error: float | None
    allowed: float | None
    share: float | None
    unwritten: bool = False


class ErrorMap(Struct, frozen=True, kw_only=True):
    """A map of an output in at most 64 × 64 cells: for each, the largest |error| / allowed and the wrong and unwritten elements.

    Rows and columns of the map are the last two dimensions of the output. A cell covers `block` = (rows, columns) of these two
    dimensions and all indices of the dimensions before them. A vector (`wraps`) is laid out like text: a cell covers block[1]
    consecutive elements, and each row of cells continues the row above. The sides of a block are powers of two, like the tiles
    of kernels. A share of None is outside any bound (see Element). `shares`, `wrong` and `unwritten` list the cells row by row;
    they are shorter than rows × columns if a vector ends before the end of the last row.
    """

    rows: int
    columns: int
    block: tuple[int, int]
    wraps: bool
    shares: tuple[float | None, ...]
    wrong: tuple[int, ...]
    unwritten: tuple[int, ...]


class ErrorCounts(Struct, frozen=True, kw_only=True):
    """The number of elements by their |error| / allowed.

    `octaves[i]` counts shares above 2^(i - 1 - OCTAVES) and up to 2^(i - OCTAVES). The first bin also counts all smaller shares
    and the last bin all larger ones.
    """

    exact: int
    octaves: tuple[int, ...]
    beyond: int


class OutputErrors(Struct, frozen=True, kw_only=True):
    """The errors of an output relative to the float64 reference. `axes` are the names of its dimensions.

    `max_relative` is the largest |error| / |expected| over the elements whose expected value is not 0. `wrong` counts the
    elements outside the bound. It includes the `not_finite` ones, where one of output and reference is NaN or Inf and the other
    is not; unwritten elements are among them. `first_wrong` and `last_wrong` are the corners of the smallest box of indices that
    contains all wrong elements.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    wrong: int
    not_finite: int
    unwritten: int
    max_abs: float | None
    max_relative: float | None
    relative_l2: float | None
    worst_of_bound: float | None
    worst: tuple[Element, ...]
    map: ErrorMap
    counts: ErrorCounts
    first_wrong: tuple[int, ...] | None = None
    last_wrong: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Inspection(Struct, frozen=True, kw_only=True):
    """The inspection of one case.

    The inputs are those of `seed`, one of the `seeds` that were tried in the order of the correctness gate: the first seed with
    a wrong output, or the seed that is timed if there is none. `call` is ``timed`` for the same call that is timed (on a GPU,
    its graph), and ``eager`` for a variant that was bound again and called once. `errors` is empty if the outputs cannot be
    compared; `reasons` then say why, and `message` is the text of an earlier version. `configuration` is the configuration that
    the variant was bound with; None if the variant has no tuning parameters. `memory`: in the order of time; empty in documents
    of before 2026-11-27.
    """

    schema: str = INSPECTION_SCHEMA
    problem: Problem
    variant: str
    environment: Environment
    created_at: str
    passed: bool
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    rule: str
    seed: int
    seeds: int
    call: CallKind
    tensors: tuple[TensorFacts, ...]
    errors: tuple[OutputErrors, ...] = ()
    source_digest: str | None = None
    configuration: dict[str, int] | None = None
    memory: tuple[MemoryState, ...] = ()

    @property
    def case_key(self) -> str:
        return case_key(self.problem, self.variant)
