"""CUDA C++ kernel of `rmsnorm`, `layernorm` and `add_rmsnorm` for few short rows of known length, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.normalisation.cuda import FEW_ROWS, VEC16_BYTES, NormInputs, bind_columns, power_of_2

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_rows.cu"
MOST_LANES, THREADS = 512, 128
"""Threads of a row, and of a block of several rows."""


@dataclass(frozen=True, slots=True)
class KnownTile:
    """Threads that share a row, rows of a block, and adjacent elements of a load."""

    lanes: int
    rows: int
    width: int

    def defines(self, n: int) -> dict[str, str]:
        """What the kernel is compiled with for rows of n elements."""
        sizes = {"KNOWN_LENGTH": n, "KNOWN_WIDTH": self.width, "ROW_LANES": self.lanes, "ROW_ROWS": self.rows}
        return {name: str(size) for name, size in sizes.items()}


def known_tile(m: int, n: int, itemsize_bytes: int) -> KnownTile | None:
    """The tile for m rows of n elements; None for more blocks than SMs, and for rows of more than 512 loads of 16 bytes or 1024
    smaller ones.

    >>> known_tile(128, 40, 2), known_tile(24, 840, 2), known_tile(8, 80, 4)
    (KnownTile(lanes=8, rows=16, width=8), KnownTile(lanes=128, rows=1, width=8), KnownTile(lanes=32, rows=4, width=4))
    >>> known_tile(3, 261, 2), known_tile(3, 8192, 2), known_tile(129, 261, 2)
    (KnownTile(lanes=288, rows=1, width=1), None, None)
    """
    width = gcd(n, VEC16_BYTES // itemsize_bytes)
    units = n // width
    each = -(-units // MOST_LANES)
    if each > (1 if width * itemsize_bytes == VEC16_BYTES else 2):
        return None
    lanes = power_of_2(units) if units <= 32 else 32 * -(-units // (32 * each))
    tile = KnownTile(lanes, max(1, THREADS // lanes) if units <= 32 else 1, width)
    return tile if m <= FEW_ROWS * tile.rows else None


def bind(inputs: NormInputs) -> Launch:
    """A few threads a row, loaded at once; rows that are many or long as `bind_columns`.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    import torch

    inputs.check()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    tile = known_tile(m, n, x_MN.element_size())
    if tile is None:
        return bind_columns(inputs)
    kernel = nvrtc.kernel(SOURCE, "normalise_known_rows", inputs.defines() | tile.defines(n))
    y_MN = torch.empty_like(x_MN)
    s_MN = None if inputs.r_MN is None else torch.empty_like(x_MN)
    tensors = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    pointers = tuple(0 if t is None else t.data_ptr() for t in tensors)
    arguments = (*pointers, ctypes.c_int(m), ctypes.c_float(inputs.eps))
    blocks, threads = -(-m // tile.rows), tile.lanes * tile.rows
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch(alive: object = tensors) -> Tensor | tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return outputs

    return launch
