"""CUDA C++ kernels of the backward passes of `rmsnorm`, `layernorm` and `add_rmsnorm` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.row_slabs import RegisterArrays, SlabRing, slab_kernel
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.normalisation import cuda_backward
from kernelviz.ops.normalisation.cuda import power_of_2
from kernelviz.ops.normalisation.cuda_backward import BackwardInputs, Outputs, Saved

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab_backward.cu"
RING = SlabRing(threads=128, stages=3, slab_bytes=8 * 1024, elements=16)
"""That of the forward pass, but without rows in registers, because a block sums dw over all of its rows; and with fewer elements
of a thread, which keeps four numbers for each of them."""
LONGEST_ROW_BYTES = 512
"""Beyond, a block would need more than 48 KiB for its stages and its sums. `cuda_backward` has a warp for such a row."""
SUM_THREADS, MOST_SUM_LANES = 512, 2
"""Of a block that adds up eight columns: many blocks, because a single one would take longer to issue its instructions."""


def arrays(*, centred: bool, adds: bool) -> RegisterArrays:
    """Of a thread: x, dy, dw and, of layernorm, db; the weight and, of add_rmsnorm, ds."""
    return RegisterArrays(numbers=4 if centred else 3, stored=2 if adds else 1)


def sum_defines(pitch: int) -> dict[str, str]:
    """What the second kernel is compiled with for sums of so many columns."""
    return {"SUM_THREADS": str(SUM_THREADS), "SUM_LANES": str(min(MOST_SUM_LANES, power_of_2(pitch // 4)))}


def slab_shape(m: int, n: int, itemsize_bytes: int) -> tuple[int, int]:
    """Rows and columns that slabs have: those of the matrix, but where rows are one element each and together whole vectors,
    a row is a vector of them (ONE_COLUMN). H200, rmsnorm: 2^25 rows of one fp16 take 64 us one at a time and 52 in torch.compile.

    >>> slab_shape(613, 3, 2), slab_shape(2**25, 1, 2), slab_shape(613, 1, 2), slab_shape(612, 1, 4)
    ((613, 3), (4194304, 8), (613, 1), (153, 4))
    """
    width = VEC16_BYTES // itemsize_bytes
    return (m // width, width) if n == 1 and m % width == 0 else (m, n)


def shape_defines(m: int, n: int, itemsize_bytes: int) -> dict[str, str]:
    """The macro that says which of them."""
    return {"ONE_COLUMN": "true" if slab_shape(m, n, itemsize_bytes) != (m, n) else "false"}


def bind(backward: BackwardInputs) -> Staged:
    """Persistent blocks with slabs in flight, then a kernel that adds up their sums; few elements and rows of more than 512 bytes
    as `cuda_backward`.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    backward.check()
    inputs = backward.inputs
    x_MN, centred = inputs.x_MN, inputs.b_N is not None
    m, n = x_MN.shape
    itemsize_bytes = x_MN.element_size()
    is_short = n * itemsize_bytes <= LONGEST_ROW_BYTES
    if not is_short or cuda_backward.one_block_tile(m, n, itemsize_bytes, centred=centred) is not None:
        return cuda_backward.bind(backward)
    saved = cuda_backward.saved_by_forward(inputs)
    return Staged(cuda_backward.forward_pass(inputs, saved), _call(backward, saved))


def _call(backward: BackwardInputs, saved: Saved) -> Launch:
    inputs = backward.inputs
    m, n = inputs.x_MN.shape
    itemsize_bytes = inputs.x_MN.element_size()
    rows, columns = slab_shape(m, n, itemsize_bytes)
    macros = inputs.defines() | sum_defines(4 * -(-n // 4)) | shape_defines(m, n, itemsize_bytes)
    compiled = slab_kernel(
        SOURCE,
        "backward_slabs",
        saved.row_MN.view(rows, columns),
        defines=macros,
        tensors=2 if backward.ds_MN is None else 3,
        ring=RING,
        arrays=arrays(centred=inputs.b_N is not None, adds=backward.ds_MN is not None),
    )
    assert compiled is not None  # no row is longer than slabs may be
    out = Outputs.of(inputs, compiled.blocks)
    tensors = (saved.row_MN, inputs.w_N, backward.dy_MN, backward.ds_MN, out.dx_MN, out.parts)
    sizes = (ctypes.c_longlong(rows), ctypes.c_int(columns), ctypes.c_int(out.pitch), ctypes.c_float(inputs.eps))
    arguments = (*_pointers(tensors), *sizes)
    kinds, count, pitch = out.parts.shape
    sum_parts = nvrtc.kernel(SOURCE, "sum_slab_parts", macros | compiled.slab.defines(inputs.x_MN))
    of_sums = (*_pointers((out.parts, out.dw_N, out.db_N)), ctypes.c_int(count), ctypes.c_int(n), ctypes.c_int(pitch))
    grid = (-(-pitch // (4 * int(macros["SUM_LANES"]))), kinds)

    def call(alive: object = tensors) -> tuple[Tensor, ...]:
        compiled.launch(*arguments)
        nvrtc.launch(sum_parts, grid, SUM_THREADS, *of_sums)
        return out.gradients

    return call


def _pointers(tensors: tuple[Tensor | None, ...]) -> tuple[int, ...]:
    return tuple(0 if t is None else t.data_ptr() for t in tensors)
