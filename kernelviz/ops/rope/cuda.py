"""CUDA C++ kernels of `rope`, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.rope import staged

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
MOST_HEADS_A_THREAD = 4
"""Eight 16-byte vectors of a thread in flight at once: 4304 against 4205 GB/s with four (40 heads of 128 in bf16)."""
MOST_THREADS = 512
FLAT_THREADS = 128
FEW_THREADS = 2**15
"""About 256 a multiprocessor: an estimate of up to where latency sets the time, so that narrow vectors are faster."""
SHORT_TOKEN_BYTES = 640
"""Of one half of all heads of a token, up to which a block has vectors of several tokens, because an H200 starts a block each
0.6 ns: 355,200 tokens of 9 heads of 48 fp16 took 215 us with a block each and 183 in torch.compile. The limit is an
estimate."""


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


@dataclass(frozen=True, slots=True)
class Flat:
    """A launch with one vector of each half of a head a thread: threads with work, elements of a vector, and whether a thread
    has a whole head in one access."""

    count: int
    width: int
    whole_heads: bool = False

    @property
    def threads(self) -> int:
        """Of a block: few for few vectors, so that they reach many multiprocessors.

        >>> Flat(2, 1).threads, Flat(3000, 2).threads, Flat(2**20, 8).threads
        (32, 128, 256)
        """
        return -(-self.count // 32) * 32 if self.count <= FLAT_THREADS else FLAT_THREADS * (1 + (self.count > 2**15))

    @property
    def blocks(self) -> int:
        return -(-self.count // self.threads)

    @property
    def small(self) -> bool:
        """Whether 32 bits hold the index of every element, and of threads behind the last."""
        return 2 * self.width * self.count <= 2**31

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with.

        >>> Flat(2**28, 8).defines["INDEX"]
        'unsigned long long'
        """
        index = "unsigned" if self.small else "unsigned long long"
        return {"INDEX": index, "BLOCK_THREADS": str(self.threads), "WHOLE_HEADS": str(int(self.whole_heads))}

    def argument(self) -> ctypes.c_uint | ctypes.c_ulonglong:
        """The number of threads with work, as the kernel's INDEX."""
        return (ctypes.c_uint if self.small else ctypes.c_ulonglong)(self.count)


def flat_for(pairs: int, p: int, itemsize_bytes: int, aligned_bytes: int, heads: int) -> Flat | None:
    """The narrowest vectors that leave few threads; None for more in 16-byte vectors of long tokens, which `rope_vec16`
    rotates.

    `pairs`: of all heads; `heads`: of a token. A narrow vector takes fewer instructions, each line of which is a fetch, and
    more threads load at once. 16-bit numbers are converted in twos. `aligned_bytes`: a power of two that divides the
    addresses of all tensors.

    >>> flat_for(2, 1, 2, 16, 2), flat_for(2, 1, 2, 2, 2).whole_heads
    (Flat(count=2, width=1, whole_heads=True), False)
    >>> flat_for(6426, 102, 4, 16, 7), flat_for(40 * 64 * 16, 64, 2, 16, 40)
    (Flat(count=6426, width=1, whole_heads=False), Flat(count=20480, width=2, whole_heads=False))
    >>> flat_for(40 * 64 * 4096, 64, 2, 16, 40), flat_for(9 * 24 * 2**18, 24, 2, 16, 9)
    (None, Flat(count=7077888, width=8, whole_heads=False))
    """
    widest = math.gcd(p, min(16, aligned_bytes) // itemsize_bytes)
    width = min(widest, 4 // itemsize_bytes)
    while width < widest and pairs // width > FEW_THREADS:
        width *= 2
    is_long = heads * p * itemsize_bytes > SHORT_TOKEN_BYTES
    vectorised = width * itemsize_bytes == 16 and p // width <= MOST_THREADS and is_long
    if pairs // width > FEW_THREADS and vectorised:
        return None
    return Flat(pairs // width, width, p == width and aligned_bytes % (2 * width * itemsize_bytes) == 0)


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
    """16-byte vectors of both halves, several heads a thread; or one vector of each half a thread; or heads in shared memory.

    One vector a thread is for short tokens, for few elements, where vectors are as narrow as leaves few threads, and for halves
    that are not whole vectors, are too long or do not start on 16 bytes; shared memory for many heads of halves that are only
    whole vectors of 2 or 4 bytes.

    With `in_place` the results are the inputs. `back`: the backward pass. Raises BadField for tensors that are not
    contiguous.
    """
    import torch

    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    inputs = (q_TH2P, k_TH2P, cos_TP, sin_TP)
    outputs = (q_TH2P, k_TH2P) if in_place else (torch.empty_like(q_TH2P), torch.empty_like(k_TH2P))
    t, hq, _, p = q_TH2P.shape
    heads = hq + k_TH2P.shape[1]
    pointers = tuple(x.data_ptr() for x in (*inputs, *outputs))
    constants = {"SIGN": -1 if back else 1, "HQ": hq, "HK": heads - hq, "PAIRS": p}
    defines = {"ELEMENT": nvrtc.element_type(q_TH2P.dtype)} | {name: str(value) for name, value in constants.items()}
    tile = staged.staged(t, hq, heads - hq, p, q_TH2P.element_size(), multiprocessors(q_TH2P.device))
    if tile and math.gcd(VEC16_BYTES, *pointers[:2], *pointers[4:]) == VEC16_BYTES:
        block = {"TOKENS": str(tile.tokens)}
        staging = nvrtc.kernel(staged.SOURCE, "rope_staged", defines | block)

        def launch_staged() -> tuple[Tensor, Tensor]:
            nvrtc.launch(staging, tile.blocks, staged.THREADS, *pointers, ctypes.c_longlong(t))
            return outputs

        return launch_staged
    flat = flat_for(t * heads * p, p, q_TH2P.element_size(), math.gcd(16, *pointers), heads)
    width = flat.width if flat else 16 // q_TH2P.element_size()
    defines |= {"UNIT": str(width)}
    if flat:
        blocks, threads = flat.blocks, flat.threads
        kernel = nvrtc.kernel(SOURCE, "rope_flat", defines | flat.defines)
        arguments: tuple[object, ...] = (*pointers, flat.argument())
    else:
        several = heads_a_thread or heads_a_thread_for(heads, p // width, t, multiprocessors(q_TH2P.device))
        token = token_blocks(heads, p // width, several)
        blocks, threads = t * token.blocks, token.threads
        shape = {"HEADS_A_THREAD": several, "CHUNKS": token.blocks, "BLOCK_THREADS": threads}
        kernel = nvrtc.kernel(SOURCE, "rope_vec16", defines | {name: str(value) for name, value in shape.items()})
        arguments = pointers

    def launch() -> tuple[Tensor, Tensor]:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return outputs

    return launch
