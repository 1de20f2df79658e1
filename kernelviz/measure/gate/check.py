"""The correctness gate: compare outputs with the float64 reference of the already rounded inputs.

The bound comes from the op (|err| <= c u sqrt(K) sum|terms| for reductions and contractions). A multiple of torch's own error
as the bound would reject good algorithms by chance (18 of 60 seeds on a 4 M sum).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kernelviz.core import Accuracy, Problem
from kernelviz.core.reasons import ErrorTooLarge, NotFinite, Reason, Unwritten
from kernelviz.ops import Op

SLAB_BYTES = 256 * 2**20
"""Float64 bytes of the largest tensor in one slab of the reference."""
CACHED_BYTES = 2**30
"""References of at most this many bytes are cached, so that several variants of a problem share them."""
PROCESSOR_PIECE = 2**17
"""Elements that a processor compares at once: 1 MiB in float64, which its caches hold. 32 million take 0.06 s on two cores, and
0.2 to 0.3 s in one piece."""


@dataclass(slots=True)
class Slab:
    """The reference and the allowed |error| of the rows from `first` to `last` (exclusive), in float64."""

    first: int
    last: int
    reference: tuple[Tensor, ...]
    bound: tuple[Tensor, ...]


@dataclass(slots=True)
class Reference:
    """The reference of one problem for the current inputs, computed in slabs and cached up to `most_cached_bytes`."""

    op: Op
    problem: Problem
    inputs: Sequence[Tensor]
    most_cached_bytes: int = CACHED_BYTES
    _slabs: list[Slab] | None = None

    def prepare(self) -> None:
        """Compute the reference now if it is small enough to be cached, because the next call may change the inputs."""
        size_bytes = 16 * sum(t.elements(self.problem.sizes) for t in self.op.reference_outputs)
        if self._slabs is None and size_bytes <= self.most_cached_bytes:
            self._slabs = list(self._computed())

    @property
    def cached(self) -> bool:
        """Whether the reference is cached, so that it stays valid when the inputs change."""
        return self._slabs is not None

    def compared(self, outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The values that are compared with the reference, from a call's outputs and the current inputs."""
        select = self.op.compared
        return tuple(outputs) if select is None else select(tuple(self.inputs), tuple(outputs))

    def slabs(self) -> Iterator[Slab]:
        """The reference, slab by slab. It is computed from the current inputs unless it is cached."""
        self.prepare()
        return self._computed() if self._slabs is None else iter(self._slabs)

    def parts(self, outputs: Sequence[Tensor]) -> Iterator[tuple[int, int, Tensor, Tensor, Tensor]]:
        """For each slab and output: (position of the output, first row, values of the call, reference, allowed |error|)."""
        values = self.compared(outputs)
        for slab in self.slabs():
            for position, (got, expected, bound) in enumerate(zip(values, slab.reference, slab.bound, strict=True)):
                mine = got[slab.first : slab.last] if self.op.slab else got
                yield position, slab.first, mine, expected, bound

    def _computed(self) -> Iterator[Slab]:
        sizes, axis = self.problem.sizes, self.op.slab
        whole = sizes[axis] if axis else 1
        cut = [bool(axis) and spec.axes[:1] == (axis,) for spec in self.op.inputs]
        elements = [
            t.elements(sizes)
            for t in (*self.op.inputs, *self.op.reference_outputs)
            if t.axes[:1] == (axis,) or t.as_stored  # a slab reads its share of a tensor that stays as it is stored
        ]
        rows = max(1, min(whole, SLAB_BYTES // max(1, 8 * max(elements) // whole))) if axis else whole
        constant = {i: t if self.op.inputs[i].as_stored else _wide(t) for i, t in enumerate(self.inputs) if not cut[i]}
        for first in range(0, whole, rows):
            last = min(first + rows, whole)
            wide = tuple(constant[i] if i in constant else _wide(t[first:last]) for i, t in enumerate(self.inputs))
            outputs = self.op.expected(self.problem, wide)
            yield Slab(first, last, outputs, self.op.bound(self.problem, wide, outputs))


@dataclass(slots=True)
class Comparison:
    """Sums over slabs, outputs and seeds, from which the Accuracy is computed."""

    error_squared: float = 0.0
    reference_squared: float = 0.0
    max_abs: float = 0.0
    worst: float = 0.0
    not_finite: int = 0
    unwritten: int = 0
    seeds: int = 0
    reasons: list[Reason] = field(default_factory=list)

    def add(self, reference: Reference, outputs: Sequence[Tensor]) -> None:
        """Compare the outputs of one seed."""
        self.seeds += 1
        self.unwritten += sum(int(still_poisoned(output).count_nonzero()) for output in outputs)
        for _, _, got, expected, bound in reference.parts(outputs):
            self._add(got, expected, bound)

    def _add(self, got: Tensor, expected: Tensor, bound: Tensor) -> None:
        if got.shape != expected.shape:
            raise ValueError(f"an output of {tuple(got.shape)} cannot be compared with one of {tuple(expected.shape)}")
        size = PROCESSOR_PIECE if got.device.type == "cpu" else max(1, got.numel())
        flat_got, flat_expected = got.reshape(-1), expected.reshape(-1)
        one_bound = bound.numel() == 1
        flat_bound = bound.reshape(-1) if one_bound else bound.expand_as(expected).reshape(-1)
        for first in range(0, got.numel(), size):
            last = first + size
            allowed = flat_bound if one_bound else flat_bound[first:last]
            self._add_piece(flat_got[first:last], flat_expected[first:last], allowed)

    def _add_piece(self, got: Tensor, expected: Tensor, allowed: Tensor) -> None:
        """Most pieces are finite throughout, which the sum of their squared errors shows; only others are looked at again."""
        facts = _facts((got.to(torch.float64, copy=True).sub_(expected)).abs_(), expected, allowed)
        if not math.isfinite(facts[0]):
            wide, known = got.double(), torch.isfinite(expected)
            same = (wide == expected) | (torch.isnan(wide) & torch.isnan(expected))
            agree = torch.where(known, torch.isfinite(wide), same)
            both = known & agree
            self.not_finite += int((~agree).count_nonzero())
            error, reference = torch.where(both, (wide - expected).abs(), 0.0), torch.where(both, expected, 0.0)
            facts = _facts(error, reference, allowed)
        self.error_squared += facts[0]
        self.reference_squared += facts[1]
        self.max_abs = max(self.max_abs, facts[2])
        self.worst = max(self.worst, facts[3])

    @property
    def inexact(self) -> bool:
        """Whether an error is too large, and every element is written and finite."""
        return self.worst > 1 and not (self.unwritten or self.not_finite)

    def accuracy(self, rule: str) -> Accuracy:
        """The accuracy. It passes when every element of every seed is within the bound and there is no other fault."""
        faults = list(self.reasons)
        finite = self.worst != float("inf")
        if self.unwritten:
            faults.insert(0, Unwritten(elements=self.unwritten))
        elif self.not_finite:
            faults.insert(0, NotFinite(elements=self.not_finite))
        elif self.worst > 1:
            faults.append(ErrorTooLarge(of_bound=self.worst if finite else None))
        reasons = tuple(dict.fromkeys(faults))
        return Accuracy(
            passed=not reasons,
            relative_l2=relative_l2(self.error_squared, self.reference_squared),
            max_abs=self.max_abs,
            worst_of_bound=self.worst if finite else None,
            not_finite=self.not_finite,
            unwritten=self.unwritten,
            seeds=self.seeds,
            rule=rule,
            reasons=reasons,
        )


def _facts(error: Tensor, expected: Tensor, allowed: Tensor) -> list[float]:
    """Sums of the squares of both, the largest error, and the largest error / allowed error: an exact result passes a bound of
    zero, any other error divided by zero is infinite, and a bound that is NaN allows everything."""
    share = (error / allowed).nan_to_num_(nan=0.0, posinf=math.inf, neginf=math.inf)
    squares = [torch.linalg.vector_norm(tensor.double()).square() for tensor in (error, expected)]
    facts: list[float] = torch.stack([*squares, error.max(), share.max()]).tolist()
    return facts


def relative_l2(error_squared: float, reference_squared: float) -> float | None:
    """The relative error from both sums of squares. None if the reference is zero and the error is not."""
    if reference_squared > 0:
        return float((error_squared / reference_squared) ** 0.5)
    return 0.0 if error_squared == 0 else None


def still_poisoned(tensor: Tensor) -> Tensor:
    """A mask of the elements that still hold the 0xFF bytes of the poison: NaN in every float format, -1 in integers.

    For one-byte integers the mask is empty, because 0xFF is an ordinary value there.
    """
    if tensor.dtype in (torch.uint8, torch.int8, torch.bool):
        return torch.zeros_like(tensor, dtype=torch.bool)
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(integers[tensor.element_size()]) == -1


def _wide(tensor: Tensor) -> Tensor:
    """The tensor in float64. Integers are not converted."""
    return tensor.double() if tensor.is_floating_point() else tensor
