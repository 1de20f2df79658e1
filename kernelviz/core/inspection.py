"""What one call got and gave: facts of every tensor, and where its outputs differ from the reference, element by element."""

import math
from typing import Literal

from kernelviz.core.problem import Problem, Struct, case_key
from kernelviz.core.reasons import Reason
from kernelviz.core.run import Environment

INSPECTION_SCHEMA = "kernelviz-inspection/1"

BINS = 64
"""Of a histogram of values."""
MAP_CELLS = 64
"""An error map has at most so many cells along each side."""
WORST = 10
"""So many elements are listed, the worst first."""
OCTAVES = 12
"""The histogram of errors counts each power of two from 2^-OCTAVES to 2^OCTAVES of the allowed error by itself."""

Role = Literal["input", "output"]
CallKind = Literal["timed", "eager"]
Value = float | Literal["NaN", "+Inf", "-Inf"]
"""A number as a document can hold it: JSON has no NaN and no infinity."""


def value(number: float) -> Value:
    """
    >>> value(0.5), value(float("nan")), value(float("-inf"))
    (0.5, 'NaN', '-Inf')
    """
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


class Histogram(Struct, frozen=True, kw_only=True):
    """Finite values counted in bins of equal width from `low` to `high`; a single bin where all are equal."""

    low: float
    high: float
    counts: tuple[int, ...]


class TensorFacts(Struct, frozen=True, kw_only=True):
    """A tensor as the call saw it (an input) or left it (an output). Strides in elements, sizes in bytes.

    `alignment_bytes`: the largest power of two that divides the address of its first element, at most 2 MiB; None where it has
    no elements. `minimum` to `deviation` are of its finite values, in float64; None where there are none, or where they are
    beyond float64. `deviation` is that of the population. `unwritten`: elements of an output that still hold the 0xFF bytes
    with which it was filled before the call. `aliases`: inputs whose memory it is.
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
    """One element of an output. `share` is |error| / allowed; None where no bound could hold it: got or expected is not
    finite while the other one is, or the allowed error is 0."""

    index: tuple[int, ...]
    got: Value
    expected: Value
    error: float | None
    allowed: float | None
    share: float | None
    unwritten: bool = False


class ErrorMap(Struct, frozen=True, kw_only=True):
    """An output in at most 64 × 64 blocks: per cell the largest |error| / allowed, and how many elements are wrong or unwritten.

    The last two dimensions lie along rows and columns, those before them are folded in: a cell holds `block` = (rows, columns)
    of each of them. A vector (`wraps`) is laid out like text: a cell holds block[1] consecutive elements, a row of cells goes
    on in the next. Blocks are powers of two, as kernels' tiles are. A share of None is beyond any bound (see Element); all
    three are row by row, and shorter than rows × columns where a vector ends within the last row.
    """

    rows: int
    columns: int
    block: tuple[int, int]
    wraps: bool
    shares: tuple[float | None, ...]
    wrong: tuple[int, ...]
    unwritten: tuple[int, ...]


class ErrorCounts(Struct, frozen=True, kw_only=True):
    """How many elements err by how much of what is allowed. `octaves[i]`: above 2^(i - 1 - OCTAVES), up to 2^(i - OCTAVES);
    the first takes all below too, the last all above."""

    exact: int
    octaves: tuple[int, ...]
    beyond: int


class OutputErrors(Struct, frozen=True, kw_only=True):
    """An output against the float64 reference; `axes` are the names of its dimensions. `max_relative`: of |error| / |expected|
    where that is not 0.

    `wrong`: elements outside the bound, `not_finite` ones among them (NaN or Inf where the reference is not, or the reverse;
    unwritten ones are such). `first_wrong`, `last_wrong`: the smallest box of indices that holds all wrong elements.
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
    """One case looked at. The inputs are fill `seed` of the `seeds` that were tried: the first that came out wrong, as the
    correctness gate tries them, else the one that is timed.

    `call`: ``timed``, the very call that is timed (on a GPU its graph), or ``eager``, the variant bound anew and called once.
    `errors` is empty where the outputs cannot be compared (`reasons` say why; `message`: what an earlier version said).
    `configuration`: what the variant was bound with, where it has something to tune.
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

    @property
    def case_key(self) -> str:
        return case_key(self.problem, self.variant)
