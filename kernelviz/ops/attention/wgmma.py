"""CUDA C++ kernel of attention for Hopper's tensor cores (wgmma, TMA), bound to tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES
from kernelviz.ops.kernels.tensor_map import tensor_maps
from kernelviz.ops.kernels.tensor_map_blocks import HeadBoxes

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma.cu"
ALIGNMENT_BYTES = 1024
L2_BYTES = 8 * 2**20
"""Of the L2, for keys and values of heads that are computed together. On an H200 1 to 3 % faster than 32 MiB for 1,024 keys."""
LOG2_E = 1.4426950408889634


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of wgmma.cu, which explains them."""

    keys: int
    consumers: int = 2
    stages: int = 2
    ping_pong: int = 0
    overlap: int = 0
    persistent: int = 0
    o_by_tma: int = 0
    variable: int = 0

    @property
    def rows(self) -> int:
        """Queries of a tile."""
        return 64 * self.consumers

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    def shared_bytes(self, dimension: int) -> int:
        """Dynamic shared memory: Q, the stages of K and V, O, barriers, two places for tiles, and what aligns them."""
        row = 2 * dimension
        tiles = self.rows * row * (1 + self.o_by_tma) + 2 * self.stages * self.keys * row
        return ALIGNMENT_BYTES + tiles + 16 * (1 + 2 * self.stages) + 64

    def defines(self, element: str, dimension: int, *, causal: bool, log_sums: bool) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "DIMENSION": str(dimension),
            "KEYS": str(self.keys),
            "CONSUMERS": str(self.consumers),
            "STAGES": str(self.stages),
            "PING_PONG": str(self.ping_pong),
            "OVERLAP": str(self.overlap),
            "PERSISTENT": str(self.persistent),
            "VARIABLE": str(self.variable),
            "O_BY_TMA": str(self.o_by_tma),
            "CAUSAL": str(int(causal)),
            "LOG_SUMS": str(int(log_sums)),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


def heads_at_once(length: int, dimension: int, heads: int) -> int:
    """Heads that are computed together: so many that their keys and values fit in the L2.

    >>> heads_at_once(1024, 128, 256), heads_at_once(16384, 128, 16)
    (16, 1)
    """
    return max(1, min(heads, L2_BYTES // (4 * length * dimension)))


def bind(
    q_BSHD: Tensor,
    k_BSHD: Tensor,
    v_BSHD: Tensor,
    options: Options,
    *,
    causal: bool,
    log_sums: Tensor | None = None,
) -> Callable[[], Tensor]:
    """Attention of contiguous tensors (B, S, Hq, D) and (B, S, Hk, D) of bf16 or fp16.

    `log_sums`: where the base-2 logarithm of the sum of exponentials of each query goes, if a backward pass needs it: fp32,
    (batch, heads, sequence rounded up to 64).
    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64, 128 and 256.
    """
    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    key_heads = k_BSHD.shape[2]
    together = heads_at_once(length, dimension, batches * key_heads) * group_of(heads, key_heads)
    tiles = -(-length // options.rows) * batches * heads
    return _bind(
        (q_BSHD, k_BSHD, v_BSHD),
        options,
        (batches, length, together),
        tiles,
        causal=causal,
        log_sums=log_sums,
        ends_B=None,
    )


def bind_variable(
    q_THD: Tensor, k_THD: Tensor, v_THD: Tensor, ends_B: Tensor, options: Options, *, causal: bool
) -> Callable[[], Tensor]:
    """Attention of sequences that follow each other: contiguous (T, Hq, D) and (T, Hk, D), and the position after each (int32).

    Raises BadField as `bind`.
    """
    require_contiguous(q_THD=q_THD, k_THD=k_THD, v_THD=v_THD, ends_B=ends_B)
    sequences = ends_B.shape[0]
    options = replace(options, variable=1, persistent=1, o_by_tma=0)
    # No more tiles than these: of each sequence, the last one may hold a single query.
    tiles = (q_THD.shape[0] // options.rows + sequences) * q_THD.shape[1]
    tensors = (q_THD[None], k_THD[None], v_THD[None])
    launch = _bind(tensors, options, (1, sequences, 1), tiles, causal=causal, log_sums=None, ends_B=ends_B)
    return lambda: launch()[0]


def _bind(
    tensors: tuple[Tensor, Tensor, Tensor],
    options: Options,
    numbers: tuple[int, int, int],
    tiles: int,
    *,
    causal: bool,
    log_sums: Tensor | None,
    ends_B: Tensor | None,
) -> Callable[[], Tensor]:
    """`numbers`: batches, positions or sequences, and heads at once, as the kernel gets them."""
    import torch

    q_BSHD, k_BSHD, v_BSHD = tensors
    heads, dimension = q_BSHD.shape[2:]
    key_heads = k_BSHD.shape[2]
    require_head_dimension(dimension)
    group_of(heads, key_heads)
    o_BSHD = torch.empty_like(q_BSHD)
    shared_bytes = options.shared_bytes(dimension)
    element = nvrtc.element_type(q_BSHD.dtype)
    kernel = nvrtc.kernel(
        SOURCE,
        "attention_wgmma",
        options.defines(element, dimension, causal=causal, log_sums=log_sums is not None),
        shared_bytes=shared_bytes,
        specific=True,
    )
    rows = (options.rows, options.keys, options.keys, 64)
    maps = tensor_maps([HeadBoxes(t, n) for t, n in zip((q_BSHD, k_BSHD, v_BSHD, o_BSHD), rows, strict=True)])
    resident = nvrtc.resident(kernel, options.threads, shared_bytes=shared_bytes)
    blocks = min(tiles, resident) if options.persistent else tiles
    counters = torch.zeros(2, dtype=torch.int32, device=q_BSHD.device)
    # A kernel that does not use a pointer gets any.
    used = (o_BSHD, counters if log_sums is None else log_sums, counters if ends_B is None else ends_B, counters)
    scale = ctypes.c_float(LOG2_E / math.sqrt(dimension))
    batches, length, together = numbers
    sizes = tuple(map(ctypes.c_int, (batches, length, heads, key_heads, together)))

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in used)
        nvrtc.launch(kernel, blocks, options.threads, maps, *pointers, scale, *sizes, shared_bytes=shared_bytes)
        return o_BSHD

    return launch
