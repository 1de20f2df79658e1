"""CUDA C++ kernels of the backward pass of attention for Hopper's tensor cores, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.attention import wgmma
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.attention_heads import group_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES
from kernelviz.ops.kernels.tensor_map_blocks import HeadBoxes, head_maps

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma_backward.cu"
KEYS, QUERIES, STAGES = 128, 64, 2
THREADS, ROW_THREADS = 384, 256
HEAD_DIMENSIONS = (64, 128)
"""With 256, dK and dV of 64 keys would need 256 registers a thread."""


def shared_bytes(dimension: int) -> int:
    """Dynamic shared memory of `attention_backward`: K, V, stages of Q and dO, two tiles of dS, dQ, vectors, barriers."""
    row = 2 * dimension
    tiles = 2 * KEYS * row + 2 * STAGES * QUERIES * row + 2 * KEYS * QUERIES * 2 + QUERIES * dimension * 4
    return wgmma.ALIGNMENT_BYTES + tiles + 2 * STAGES * QUERIES * 4 + 8 * (1 + 4 * STAGES)


def bind(
    q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor, options: wgmma.Options, *, causal: bool
) -> Launch:
    """The gradients of q, k and v, contiguous tensors of bf16 or fp16. `options`: of the forward pass, which is not timed.

    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64 and 128.
    """
    import torch

    require_contiguous(do_BSHD=do_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    key_heads = k_BSHD.shape[2]
    group_of(heads, key_heads)
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
    element = nvrtc.element_type(q_BSHD.dtype)
    defines = {
        "DIMENSION": str(dimension),
        "STAGES": str(STAGES),
        "CAUSAL": str(int(causal)),
        "ELEMENT": element,
        "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
    }
    memory = shared_bytes(dimension)
    delta, backward, query = (
        nvrtc.kernel(SOURCE, f"attention_{name}", defines, shared_bytes=size, specific=True)
        for name, size in (("delta", 0), ("backward", memory), ("query", 0))
    )
    boxes = [(q_BSHD, QUERIES), (k_BSHD, KEYS), (v_BSHD, KEYS), (do_BSHD, QUERIES)]
    maps = head_maps([HeadBoxes(tensor, rows) for tensor, rows in boxes])
    key_blocks = -(-length // KEYS) * batches * key_heads
    scale = 1 / math.sqrt(dimension)
    scales = ctypes.c_float(scale * wgmma.LOG2_E), ctypes.c_float(scale)
    sizes = tuple(map(ctypes.c_int, (length, heads)))

    def call() -> Tensors:
        pointers = (t.data_ptr() for t in (o_BSHD, do_BSHD, deltas_TQ, sums_TQD))
        nvrtc.launch(delta, tiles, ROW_THREADS, *pointers, *sizes)
        pointers = (t.data_ptr() for t in (maps, log_sums_TQ, deltas_TQ, sums_TQD, dk_BSHD, dv_BSHD))
        nvrtc.launch(
            backward, key_blocks, THREADS, *pointers, *scales, *sizes, ctypes.c_int(key_heads), shared_bytes=memory
        )
        nvrtc.launch(query, tiles, ROW_THREADS, sums_TQD.data_ptr(), dq_BSHD.data_ptr(), scales[1], *sizes)
        return gradients

    return Staged(forward, call)
