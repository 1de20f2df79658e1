"""Places of a tile of rows in a matrix whose size is a constant, for Triton kernels (`known_rows`)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rows_of_tile(ROWS: tl.constexpr, WIDE: tl.constexpr):
    """The numbers of a program's rows (ROWS,)."""
    first = tl.program_id(0) * ROWS
    if WIDE:
        first = tl.program_id(0).to(tl.int64) * ROWS
    return first + tl.arange(0, ROWS)


@triton.jit
def is_row(rows, M: tl.constexpr, ROWS: tl.constexpr):
    """Which of them are in the matrix: all, without a comparison, if M is a multiple of ROWS."""
    if M % ROWS == 0:
        return tl.full((ROWS,), True, tl.int1)
    else:
        return rows < M


@triton.jit
def is_element(rows, columns, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Which elements of a tile (ROWS, BLOCK) are in the matrix."""
    if N == BLOCK:
        if M % ROWS == 0:
            return tl.full((ROWS, BLOCK), True, tl.int1)
        else:
            return tl.broadcast_to((rows < M)[:, None], (ROWS, BLOCK))
    else:
        if M % ROWS == 0:
            return tl.broadcast_to((columns < N)[None, :], (ROWS, BLOCK))
        else:
            return (rows < M)[:, None] & (columns < N)[None, :]
