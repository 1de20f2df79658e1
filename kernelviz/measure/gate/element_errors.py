"""Outputs compared with the float64 reference element by element: the size, number and positions of the errors."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernelviz.core import MAP_CELLS, OCTAVES, WORST, Element, ErrorCounts, ErrorMap, OutputErrors
from kernelviz.core.inspection import value
from kernelviz.measure.gate.check import Reference, relative_l2, still_poisoned
from kernelviz.measure.inspection.tensor_facts import PIECE, finite, pieces
from kernelviz.ops import TensorSpec


def errors_of(reference: Reference, outputs: Sequence[Tensor]) -> tuple[OutputErrors, ...]:
    """The errors of every output by the rules of gate/check.py. Each slab of the reference is processed in pieces."""
    specs, sizes = reference.op.reference_outputs, reference.problem.sizes
    accumulators = [_Output(spec, spec.shape(sizes), outputs[0].device) for spec in specs]
    for position, first_row, got, expected, bound in reference.parts(outputs):
        one = accumulators[position]
        first = first_row * math.prod(one.shape[1:])
        tensors = (got, expected, bound.expand_as(expected))
        for part in zip(*(pieces(tensor, one.grid.piece) for tensor in tensors), strict=True):
            one.add(first, *part)
            first += part[0].numel()
    return tuple(one.errors() for one in accumulators)


class _Compared:
    """A piece, element by element: |error|, |error| / allowed (infinite where there is no bound), and masks of the faults."""

    def __init__(self, first: int, got: Tensor, expected: Tensor, allowed: Tensor) -> None:
        self.first, self.got, self.expected, self.allowed = first, got.double(), expected, allowed
        known = torch.isfinite(expected)
        same = (self.got == expected) | (torch.isnan(self.got) & torch.isnan(expected))
        agree = torch.where(known, torch.isfinite(self.got), same)
        self.error = torch.where(known & agree, (self.got - expected).abs(), 0.0)
        # Elements whose bound is NaN (computed from inputs that are NaN) cannot be judged; the gate accepts them.
        share = torch.where(self.error == 0, 0.0, self.error / allowed).nan_to_num_(nan=0.0, posinf=math.inf)
        self.disagrees, self.unwritten = ~agree, still_poisoned(got)
        self.share = torch.where(agree & ~self.unwritten, share, math.inf)
        self.wrong = self.share > 1


class _Output:
    """The errors of one output so far. Pieces are added in the order of their indices."""

    def __init__(self, spec: TensorSpec, shape: tuple[int, ...], device: torch.device) -> None:
        self.spec, self.shape = spec, shape
        self.grid = _Grid(shape, device)
        # Sums: squared error, squared expected value; then counts of wrong, not finite, unwritten, exact and unbounded elements.
        self.sums = [0.0] * 7
        # Maxima: |error|, |error| / |expected|, |error| / allowed.
        self.maxima = [0.0, -1.0, 0.0]
        self.octaves = torch.zeros(2 * OCTAVES + 2, dtype=torch.int64, device=device)
        self.worst: list[tuple[float, Element]] = []
        self.box: tuple[list[int], list[int]] | None = None

    def add(self, first: int, got: Tensor, expected: Tensor, allowed: Tensor) -> None:
        compared = _Compared(first, got, expected, allowed)
        known = torch.isfinite(expected)
        known &= ~compared.disagrees
        sums = (
            compared.error.square(),
            torch.where(known, expected, 0.0).square(),
            compared.wrong,
            compared.disagrees,
            compared.unwritten,
            compared.share == 0,
            torch.isinf(compared.share),
        )
        maxima = (
            compared.error,
            torch.where(known & (expected != 0), compared.error / expected.abs(), -1.0),
            compared.share,
        )
        facts = torch.stack([*(t.sum().double() for t in sums), *(t.max() for t in maxima)]).tolist()
        self.sums = [total + more for total, more in zip(self.sums, facts[: len(sums)], strict=True)]
        self.maxima = list(map(max, self.maxima, facts[len(sums) :]))
        self._count(compared.share)
        self._rank(compared)
        self.grid.add(compared)
        if compared.wrong.any():
            self._enclose(compared)

    def _count(self, share: Tensor) -> None:
        some = share[(share > 0) & torch.isfinite(share)]
        octave = (torch.log2(some).ceil() + OCTAVES).clamp_(0, 2 * OCTAVES + 1).long()
        self.octaves += torch.bincount(octave, minlength=2 * OCTAVES + 2)

    def _rank(self, compared: _Compared) -> None:
        """Keep the worst elements. Of infinite errors, keep the first ones, so that the list begins at the first fault."""
        beyond = torch.isinf(compared.share).nonzero().flatten()[:WORST]
        finite_share = torch.where(torch.isinf(compared.share), 0.0, compared.share)
        most = finite_share.topk(min(WORST, finite_share.numel()))
        positions = [*beyond.tolist(), *most.indices[most.values > 0].tolist()]
        at = torch.tensor(positions, dtype=torch.int64, device=compared.share.device)
        columns = (
            compared.got,
            compared.expected,
            compared.error,
            compared.allowed,
            compared.share,
            compared.unwritten,
            compared.disagrees,
        )
        rows = torch.stack([c[at].double() for c in columns]).T.tolist() if positions else []
        self.worst += [
            (row[4], self._element(compared.first + position, row))
            for position, row in zip(positions, rows, strict=True)
        ]
        self.worst = sorted(self.worst, key=lambda w: (-w[0], w[1].index))[:WORST]

    def _element(self, flat: int, row: Sequence[float]) -> Element:
        got, expected, error, allowed, share, unwritten, disagrees = row
        return Element(
            index=_index(flat, self.shape),
            got=value(got),
            expected=value(expected),
            error=None if disagrees else finite(error),
            allowed=finite(allowed),
            share=finite(share),
            unwritten=bool(unwritten),
        )

    def _enclose(self, compared: _Compared) -> None:
        """Extend the box of indices that contains every wrong element."""
        flat = compared.wrong.nonzero().flatten() + compared.first
        along = [
            torch.div(flat, step, rounding_mode="floor").remainder_(size)
            for size, step in zip(self.shape, _steps(self.shape), strict=True)
        ]
        low, high = [int(indices.min()) for indices in along], [int(indices.max()) for indices in along]
        if self.box is not None:
            low, high = list(map(min, low, self.box[0])), list(map(max, high, self.box[1]))
        self.box = (low, high)

    def errors(self) -> OutputErrors:
        squares, expected_squares = self.sums[:2]
        wrong, not_finite, unwritten, exact, beyond = map(int, self.sums[2:])
        max_abs, max_relative, max_share = self.maxima
        return OutputErrors(
            name=self.spec.name,
            axes=tuple(str(a) for a in self.spec.axes),
            shape=self.shape,
            wrong=wrong,
            not_finite=not_finite,
            unwritten=unwritten,
            max_abs=finite(max_abs),
            max_relative=finite(max_relative) if max_relative >= 0 else None,
            relative_l2=finite(relative_l2(squares, expected_squares)),
            worst_of_bound=finite(max_share),
            worst=tuple(element for _, element in self.worst),
            map=self.grid.map(),
            counts=ErrorCounts(exact=exact, octaves=tuple(self.octaves.tolist()), beyond=beyond),
            first_wrong=tuple(self.box[0]) if self.box else None,
            last_wrong=tuple(self.box[1]) if self.box else None,
        )


class _Grid:
    """The output divided into blocks.

    A row has `across` blocks of `width` elements. `height` rows of each `period` form a strip of blocks. `piece` is the number
    of elements that are added at once: whole rows, or whole blocks of a vector.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.wraps = len(shape) < 2
        if self.wraps:
            length = math.prod(shape)
            self.height, self.width = 1, _power_of_two(length / MAP_CELLS**2)
            self.row_elements, self.across, self.period = self.width, 1, -(-length // self.width)
            cells = self.period
            self.columns = min(MAP_CELLS, cells)
            self.rows = -(-cells // self.columns)
        else:
            self.period, self.row_elements = shape[-2], shape[-1]
            self.height, self.width = _power_of_two(shape[-2] / MAP_CELLS), _power_of_two(shape[-1] / MAP_CELLS)
            self.rows, self.columns = -(-shape[-2] // self.height), -(-shape[-1] // self.width)
            self.across, cells = self.columns, self.rows * self.columns
        self.piece = max(1, PIECE // self.row_elements) * self.row_elements
        self._shares = torch.zeros(cells, dtype=torch.float64, device=device)
        self._counts = torch.zeros((2, cells), dtype=torch.int64, device=device)

    def add(self, compared: _Compared) -> None:
        # Padded to whole rows, because a slab of a vector may end within a block. The next slab contains the rest of the block.
        before = compared.first % self.row_elements
        after = -(compared.first + compared.share.numel()) % self.row_elements
        edge = self.across * self.width - self.row_elements
        share, wrong, unwritten = (
            pad(pad(t, (before, after)).view(-1, self.row_elements), (0, edge))
            for t in (compared.share, compared.wrong, compared.unwritten)
        )
        first_row = compared.first // self.row_elements
        rows = torch.arange(first_row, first_row + share.shape[0], device=share.device)
        strips = torch.div(rows.remainder(self.period), self.height, rounding_mode="floor")
        cells = (strips.unsqueeze(1) * self.across + torch.arange(self.across, device=share.device)).view(-1)
        blocks = (-1, self.across, self.width)
        self._shares.scatter_reduce_(0, cells, share.view(blocks).amax(-1).view(-1), "amax")
        for number, which in enumerate((wrong, unwritten)):
            self._counts[number].index_add_(0, cells, which.view(blocks).sum(-1).view(-1))

    def map(self) -> ErrorMap:
        wrong, unwritten = self._counts.tolist()
        return ErrorMap(
            rows=self.rows,
            columns=self.columns,
            block=(self.height, self.width),
            wraps=self.wraps,
            shares=tuple(finite(s) for s in self._shares.tolist()),
            wrong=tuple(wrong),
            unwritten=tuple(unwritten),
        )


def _power_of_two(least: float) -> int:
    """The smallest power of two that is at least `least`.

    >>> _power_of_two(0.3), _power_of_two(5), _power_of_two(64)
    (1, 8, 64)
    """
    return 1 << max(0, math.ceil(math.log2(least)))


def _steps(shape: tuple[int, ...]) -> list[int]:
    """The stride of each dimension of a contiguous tensor, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """
    >>> _index(7, (2, 3, 4)), _index(0, ())
    ((0, 1, 3), ())
    """
    return tuple(flat // step % size for size, step in zip(shape, _steps(shape), strict=True))
