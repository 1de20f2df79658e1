"""Facts about a tensor and its values, computed in pieces to avoid a second tensor of the same size."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from kernelviz.core import BINS, Histogram, Role, TensorFacts
from kernelviz.core.dtypes import DTYPES
from kernelviz.measure.gate.check import still_poisoned

PIECE = 2**22
"""Elements of one piece: 32 MiB in float64, and a few times as much for intermediate values."""
_MOST_ALIGNED = 2**21


def facts_of(
    name: str, role: Role, tensor: Tensor, *, of: Tensor | None = None, inputs: Mapping[str, Tensor] | None = None
) -> TensorFacts:
    """The facts about one tensor. It is read twice.

    If the tensor is a copy, `of` is the original, whose memory is described. `inputs` are the inputs by name, because an output
    may share memory with one of them.
    """
    where = tensor if of is None else of
    sums = _Sums()
    for piece in pieces(tensor):
        sums.add(piece)
        if role == "output":
            sums.unwritten += int(still_poisoned(piece).count_nonzero())
    mean = sums.total / sums.finite if sums.finite else None
    deviation, histogram = _spread(tensor, sums, mean) if mean is not None else (None, None)
    return TensorFacts(
        name=name,
        role=role,
        dtype=_dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        strides=tuple(where.stride()),
        size_bytes=tensor.numel() * tensor.element_size(),
        device=str(where.device),
        alignment_bytes=_alignment_bytes(where),
        contiguous=where.is_contiguous(),
        nan=sums.nan,
        positive_infinity=sums.positive,
        negative_infinity=sums.negative,
        zeros=sums.zeros,
        minimum=sums.low if sums.finite else None,
        maximum=sums.high if sums.finite else None,
        mean=finite(mean),
        deviation=finite(deviation),
        histogram=histogram,
        unwritten=sums.unwritten if role == "output" else None,
        aliases=tuple(n for n, t in (inputs or {}).items() if _shares_memory(t, where)),
    )


def pieces(tensor: Tensor, most: int = PIECE) -> Iterator[Tensor]:
    """The elements in the order of their indices, in flat pieces of at most `most`; equal shapes give equal pieces.

    The pieces of a contiguous tensor are views; those of another tensor are copies, one piece at a time.
    """
    if tensor.dim() == 0:
        yield tensor.reshape(1)
        return
    rows = max(1, most * tensor.shape[0] // max(1, tensor.numel()))
    for first in range(0, tensor.shape[0], rows):
        part = tensor[first : first + rows]
        if part.numel() <= most:
            yield part.reshape(-1)
        else:  # a single row is longer than a piece
            yield from pieces(part[0], most)


def finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


@dataclass(slots=True)
class _Sums:
    """Sums over the pieces so far. `low`, `high` and `total` are those of the finite values."""

    finite: int = 0
    nan: int = 0
    positive: int = 0
    negative: int = 0
    zeros: int = 0
    unwritten: int = 0
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0

    def add(self, piece: Tensor) -> None:
        wide = piece.double()
        known = torch.isfinite(wide)
        self.zeros += int((wide == 0).sum())
        if not bool(known.all()):
            self.nan += int(torch.isnan(wide).sum())
            self.positive += int((wide == math.inf).sum())
            self.negative += int((wide == -math.inf).sum())
            wide = wide[known]
        if wide.numel():
            low, high = torch.aminmax(wide)
            self.low, self.high = min(self.low, float(low)), max(self.high, float(high))
            self.total += float(wide.sum())
            self.finite += wide.numel()


def _spread(tensor: Tensor, sums: _Sums, mean: float) -> tuple[float, Histogram | None]:
    """The (standard deviation, histogram) of the finite values."""
    width = sums.high - sums.low
    one_bin = width == 0 or not math.isfinite(width)
    counts = torch.zeros(BINS, dtype=torch.int64, device=tensor.device)
    squares = 0.0
    for piece in pieces(tensor):
        wide = piece.double()
        if sums.finite < tensor.numel():
            wide = wide[torch.isfinite(wide)]
        squares += float((wide - mean).square().sum())
        if not one_bin:
            place = ((wide - sums.low) * (BINS / width)).long().clamp_(0, BINS - 1)
            counts += torch.bincount(place, minlength=BINS)
    bin_counts = (sums.finite,) if one_bin else tuple(counts.tolist())
    histogram = Histogram(low=sums.low, high=sums.high, counts=bin_counts) if math.isfinite(width) else None
    return math.sqrt(squares / sums.finite), histogram


def _alignment_bytes(tensor: Tensor) -> int | None:
    address = tensor.data_ptr()
    return min(address & -address, _MOST_ALIGNED) if address else None


def _shares_memory(one: Tensor, other: Tensor) -> bool:
    mine, theirs = one.untyped_storage(), other.untyped_storage()
    return mine.nbytes() > 0 and one.device == other.device and mine.data_ptr() == theirs.data_ptr()


def _dtype_name(dtype: torch.dtype) -> str:
    """The name of the number format in problems, or torch's name if problems have none."""
    own = str(dtype).removeprefix("torch.")
    return next((d.name for d in DTYPES.values() if d.torch_name == own), own)
