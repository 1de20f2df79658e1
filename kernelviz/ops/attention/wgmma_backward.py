"""CUDA C++ kernels of the backward pass of attention for Hopper's tensor cores, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.attention import wgmma
from kernelviz.ops.attention.backward_parts import divided, steps_of_tiles
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.attention_heads import group_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES, limits
from kernelviz.ops.kernels.tensor_map import tensor_maps
from kernelviz.ops.kernels.tensor_map_blocks import HeadBoxes

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma_backward.cu"
ROW_SOURCE = Path(__file__).parent / "wgmma_backward_rows.cu"
KEYS, QUERIES, STAGES = 128, 64, 2
THREADS, ROW_THREADS = 384, 256
ADDED_COLUMNS = 32
"""Of dK or dV of a tile of keys, whose parts a block adds."""
HEAD_DIMENSIONS = (64, 128)
"""With 256, dK and dV of 64 keys would need 256 registers a thread."""


def shared_bytes(dimension: int) -> int:
    """Dynamic shared memory of `attention_backward`: K, V, stages of Q and dO, two tiles of dS, dQ, vectors, barriers."""
    row = 2 * dimension
    tiles = 2 * KEYS * row + 2 * STAGES * QUERIES * row + 2 * KEYS * QUERIES * 2 + QUERIES * dimension * 4
    return wgmma.ALIGNMENT_BYTES + tiles + 2 * STAGES * QUERIES * 4 + 8 * (1 + 4 * STAGES)


def defines(element: str, dimension: int, *, causal: bool, parts: bool) -> dict[str, str]:
    """The macros of both sources, for elements of this C++ type. `parts`: blocks have parts of the steps of their keys."""
    return {
        "DIMENSION": str(dimension),
        "STAGES": str(STAGES),
        "CAUSAL": str(int(causal)),
        "PARTS": str(int(parts)),
        "ELEMENT": element,
        "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
    }


def bind(
    q_BSHD: Tensor,
    k_BSHD: Tensor,
    v_BSHD: Tensor,
    do_BSHD: Tensor,
    options: wgmma.Options,
    *,
    causal: bool,
    longest: int | None = None,
) -> Launch:
    """The gradients of q, k and v, contiguous tensors of bf16 or fp16. `options`: of the forward pass, which is not timed.

    `longest`: most tiles of queries of a block; None for those of `backward_parts.choose_longest`.
    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64 and 128.
    """
    import torch

    require_contiguous(do_BSHD=do_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    key_heads = k_BSHD.shape[2]
    group = group_of(heads, key_heads)
    if dimension not in HEAD_DIMENSIONS:
        raise BadField(
            "size d", dimension, "this backward pass takes head dimensions of 64 and 128; choose torch_eager"
        )
    tiles = -(-length // QUERIES) * batches * heads
    vectors_TQ = [torch.zeros((tiles, QUERIES), dtype=torch.float32, device=q_BSHD.device) for _ in range(2)]
    log_sums_TQ, deltas_TQ = vectors_TQ
    sums_TQD = torch.empty((tiles, QUERIES, dimension), dtype=torch.float32, device=q_BSHD.device)
    gradients = tuple(torch.empty_like(t) for t in (q_BSHD, k_BSHD, v_BSHD))
    dq_BSHD, dk_BSHD, dv_BSHD = gradients
    forward = wgmma.bind(q_BSHD, k_BSHD, v_BSHD, options, causal=causal, log_sums=log_sums_TQ)
    o_BSHD = forward()
    steps = steps_of_tiles(length, group, QUERIES, KEYS, causal=causal)
    copies = batches * key_heads
    division = divided(steps, copies, limits(q_BSHD.device)[0], longest)
    macros = defines(nvrtc.element_type(q_BSHD.dtype), dimension, causal=causal, parts=division is not None)
    memory = shared_bytes(dimension)
    delta, query = (nvrtc.kernel(ROW_SOURCE, f"attention_{name}", macros, specific=True) for name in ("delta", "query"))
    backward = nvrtc.kernel(SOURCE, "attention_backward", macros, shared_bytes=memory, specific=True)
    boxes = [(q_BSHD, QUERIES), (k_BSHD, KEYS), (v_BSHD, KEYS), (do_BSHD, QUERIES)]
    maps = tensor_maps([HeadBoxes(tensor, rows) for tensor, rows in boxes])
    if division is None:
        blocks, add_blocks = len(steps) * copies, 0
        table = firsts = part_sums = log_sums_TQ  # not used
    else:
        blocks, add_blocks = len(division.parts), len(steps) * copies * 2 * (dimension // ADDED_COLUMNS)
        table, firsts = division.tables(q_BSHD.device)
        part_sums = torch.empty((blocks, 2, KEYS, dimension), dtype=torch.float32, device=q_BSHD.device)
    scale = 1 / math.sqrt(dimension)
    scales = ctypes.c_float(scale * wgmma.LOG2_E), ctypes.c_float(scale)
    sizes = tuple(map(ctypes.c_int, (length, heads, key_heads)))

    def call() -> Tensors:
        pointers = (t.data_ptr() for t in (o_BSHD, do_BSHD, deltas_TQ, sums_TQD))
        nvrtc.launch(delta, tiles, ROW_THREADS, *pointers, *sizes[:2])
        pointers = (t.data_ptr() for t in (log_sums_TQ, deltas_TQ, sums_TQD, dk_BSHD, dv_BSHD))
        of_parts = (table.data_ptr(), part_sums.data_ptr())
        nvrtc.launch(backward, blocks, THREADS, maps, *pointers, *scales, *sizes, *of_parts, shared_bytes=memory)
        pointers = (t.data_ptr() for t in (part_sums, firsts, dk_BSHD, dv_BSHD))
        nvrtc.launch(
            query,
            tiles + add_blocks,
            ROW_THREADS,
            *(sums_TQD.data_ptr(), dq_BSHD.data_ptr(), scales[1]),
            *(*sizes, ctypes.c_int(add_blocks)),
            *pointers,
        )
        return gradients

    return Staged(forward, call)
