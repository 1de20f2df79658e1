"""CUDA C++ kernels of `rope`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
MOST_HEADS_A_THREAD = 4
"""Eight 16-byte words of a thread under way at once: 4304 against 4205 GB/s with four (40 heads of 128 in bf16)."""
MOST_THREADS = 512


@dataclass(frozen=True, slots=True)
class Shape:
    """How a token's heads are spread: threads a block, blocks a token."""

    threads: int
    chunks: int


def heads_a_thread_for(heads: int, words: int, tokens: int, processors: int) -> int:
    """Two where a token or the GPU would be left with few threads.

    >>> heads_a_thread_for(40, 8, 8192, 132), heads_a_thread_for(40, 16, 8192, 132), heads_a_thread_for(40, 8, 16, 132)
    (4, 2, 2)
    """
    return MOST_HEADS_A_THREAD if words < 16 and tokens >= 8 * processors and heads >= 16 else 2


def shape_of(heads: int, words: int, heads_a_thread: int = 2) -> Shape:
    """As few blocks as hold the heads, all of them about equally full; `words`: 16-byte words of half a head.

    >>> shape_of(40, 8), shape_of(72, 8), shape_of(72, 16)
    (Shape(threads=160, chunks=1), Shape(threads=288, chunks=1), Shape(threads=288, chunks=2))
    """
    needed = -(-heads // heads_a_thread)
    chunks = -(-needed // max(1, MOST_THREADS // words))
    return Shape(threads=-(-(-(-needed // chunks) * words) // 32) * 32, chunks=chunks)


def bind_vec16(
    q_TH2P: Tensor,
    k_TH2P: Tensor,
    cos_TP: Tensor,
    sin_TP: Tensor,
    *,
    back: bool = False,
    in_place: bool = False,
    names: tuple[str, str] = ("q_TH2P", "k_TH2P"),
    heads_a_thread: int | None = None,
) -> Launch:
    """16-byte words of both halves; single pairs where halves are no whole words, or too many, or do not start on 16 bytes.

    The results are the inputs where `in_place`. Raises BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    inputs = (q_TH2P, k_TH2P, cos_TP, sin_TP)
    outputs = (q_TH2P, k_TH2P) if in_place else (torch.empty_like(q_TH2P), torch.empty_like(k_TH2P))
    t, hq, _, p = q_TH2P.shape
    hk = k_TH2P.shape[1]
    width = 16 // q_TH2P.element_size()
    in_words = p % width == 0 and p // width <= MOST_THREADS and all(x.data_ptr() % 16 == 0 for x in inputs)
    heads_a_thread = heads_a_thread or heads_a_thread_for(hq + hk, p // width, t, multiprocessors(q_TH2P.device))
    defines = {"ELEMENT": nvrtc.element_type(q_TH2P.dtype), "SIGN": "-1" if back else "1"}
    defines |= {"PAIRS": str(p if in_words else 0), "HEADS_A_THREAD": str(heads_a_thread)}
    kernel = nvrtc.kernel(SOURCE, "rope_vec16" if in_words else "rope_pairs", defines)
    pointers = tuple(x.data_ptr() for x in (*inputs, *outputs))
    heads = (ctypes.c_int(hq), ctypes.c_int(hk))
    if in_words:
        shape = shape_of(hq + hk, p // width, heads_a_thread)
        blocks, threads = t * shape.chunks, shape.threads
        arguments = (*pointers, ctypes.c_int(shape.chunks), *heads)
    else:
        blocks, threads = -(-t * (hq + hk) * p // 256), 256
        arguments = (*pointers, ctypes.c_longlong(t), *heads, ctypes.c_int(p))

    def launch() -> tuple[Tensor, Tensor]:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return outputs

    return launch
