"""CUDA C++ kernels of `rope`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
MOST_HEADS_A_THREAD = 4
"""Eight 16-byte vectors of a thread in flight at once: 4304 against 4205 GB/s with four (40 heads of 128 in bf16)."""
MOST_THREADS = 512


@dataclass(frozen=True, slots=True)
class TokenBlocks:
    """How the heads of a token are distributed: threads a block, blocks a token."""

    threads: int
    blocks: int


def heads_a_thread_for(heads: int, vectors: int, tokens: int, processors: int) -> int:
    """Heads that a thread rotates: four, or two where a token or the GPU would have few threads.

    >>> heads_a_thread_for(40, 8, 8192, 132), heads_a_thread_for(40, 16, 8192, 132), heads_a_thread_for(40, 8, 16, 132)
    (4, 2, 2)
    """
    return MOST_HEADS_A_THREAD if vectors < 16 and tokens >= 8 * processors and heads >= 16 else 2


def token_blocks(heads: int, vectors: int, heads_a_thread: int = 2) -> TokenBlocks:
    """As few blocks as hold the heads, all about equally full; `vectors`: 16-byte vectors of half a head.

    >>> token_blocks(40, 8), token_blocks(72, 8), token_blocks(72, 16)
    (TokenBlocks(threads=160, blocks=1), TokenBlocks(threads=288, blocks=1), TokenBlocks(threads=288, blocks=2))
    """
    needed = -(-heads // heads_a_thread)
    blocks = -(-needed // max(1, MOST_THREADS // vectors))
    return TokenBlocks(threads=-(-(-(-needed // blocks) * vectors) // 32) * 32, blocks=blocks)


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
    """16-byte vectors of both halves; single pairs where halves are not whole vectors, too long, or do not start on 16 bytes.

    With `in_place` the results are the inputs. `back`: the backward pass. Raises BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    inputs = (q_TH2P, k_TH2P, cos_TP, sin_TP)
    outputs = (q_TH2P, k_TH2P) if in_place else (torch.empty_like(q_TH2P), torch.empty_like(k_TH2P))
    t, hq, _, p = q_TH2P.shape
    hk = k_TH2P.shape[1]
    width = 16 // q_TH2P.element_size()
    vectorised = p % width == 0 and p // width <= MOST_THREADS and all(x.data_ptr() % 16 == 0 for x in inputs)
    heads_a_thread = heads_a_thread or heads_a_thread_for(hq + hk, p // width, t, multiprocessors(q_TH2P.device))
    defines = {"ELEMENT": nvrtc.element_type(q_TH2P.dtype), "SIGN": "-1" if back else "1"}
    defines |= {"PAIRS": str(p if vectorised else 0), "HEADS_A_THREAD": str(heads_a_thread)}
    kernel = nvrtc.kernel(SOURCE, "rope_vec16" if vectorised else "rope_pairs", defines)
    pointers = tuple(x.data_ptr() for x in (*inputs, *outputs))
    heads = (ctypes.c_int(hq), ctypes.c_int(hk))
    if vectorised:
        token = token_blocks(hq + hk, p // width, heads_a_thread)
        blocks, threads = t * token.blocks, token.threads
        arguments = (*pointers, ctypes.c_int(token.blocks), *heads)
    else:
        blocks, threads = -(-t * (hq + hk) * p // 256), 256
        arguments = (*pointers, ctypes.c_longlong(t), *heads, ctypes.c_int(p))

    def launch() -> tuple[Tensor, Tensor]:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return outputs

    return launch
