"""Copies of matrices with longer or shorter rows, so that TMA can address them: zeros are added to rows, or left out."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.kernels import nvrtc

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "row_padding.cu"
THREADS = 256
VECTOR = 8
"""16-bit elements of 16 bytes, which a thread writes."""
MOST_ELEMENTS_OF_32_BITS = 2**32 - 2**16
"""Elements that the kernel can number in 32 bits, with those of a block that begins before the last one."""


def padded(elements: int) -> int:
    """The next multiple of 16 bytes of 16-bit elements.

    >>> [padded(elements) for elements in (1, 8, 53, 164)]
    [8, 8, 56, 168]
    """
    return -(-elements // VECTOR) * VECTOR


def load_width(from_length: int, to_length: int, *addresses: int) -> int:
    """Elements of a load: the most, up to 4, that divide both row lengths and to whose bytes the addresses are aligned.

    >>> load_width(164, 168, 512), load_width(53, 56, 512), load_width(82, 88, 512), load_width(164, 168, 516)
    (4, 1, 2, 2)
    """
    common = math.gcd(from_length, to_length)
    return next(n for n in (4, 2, 1) if common % n == 0 and all(address % (2 * n) == 0 for address in addresses))


def defines(from_length: int, to_length: int, elements: int, *addresses: int) -> dict[str, str]:
    """The macros of row_padding.cu, which explains them; `elements`: of all matrices together, before or after the copy."""
    index = "unsigned" if elements < MOST_ELEMENTS_OF_32_BITS else "unsigned long long"
    return {"LOAD": str(load_width(from_length, to_length, *addresses)), "INDEX": index}


@dataclass(frozen=True, slots=True)
class RowCopy:
    """A compiled copy of rows of `from_length` 16-bit elements to rows of `to_length`, of one or two matrices in one launch."""

    kernel: Any
    from_length: int
    to_length: int

    def __call__(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Enqueue the copy of each first tensor to the second one; both are contiguous, and a row is their last axis.

        Where rows of the copy are longer, their end becomes zeros; where they are shorter, the end of a row is left out. The
        copy begins at a multiple of 16 bytes. It may have more rows, which are not written.
        """
        elements = [source.numel() // self.from_length * self.to_length for source, _ in pairs]
        pointers = [tensor.data_ptr() for pair in pairs for tensor in pair]
        vectors = sum(-(-count // VECTOR) for count in elements)
        numbers = (*map(ctypes.c_longlong, (*elements, 0)[:2]), *map(ctypes.c_int, (self.from_length, self.to_length)))
        nvrtc.launch(self.kernel, -(-vectors // THREADS), THREADS, *(pointers * 2)[:4], *numbers)


def row_copy(from_length: int, to_length: int, rows: int, *sources: Tensor) -> RowCopy:
    """The copy of `rows` rows in all, compiled.

    `sources`: tensors that will be copied and may begin anywhere; one that torch has allocated for the purpose need not be named.
    """
    elements = rows * max(from_length, to_length)
    macros = defines(from_length, to_length, elements, *(t.data_ptr() for t in sources))
    return RowCopy(nvrtc.kernel(SOURCE, "copy_rows", macros), from_length, to_length)
