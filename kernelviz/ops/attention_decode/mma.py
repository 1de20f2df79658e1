"""The kernel of CUDA C++ for tensor cores (mma.cu): what may be tuned, choice by size, launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.attention_decode.sizes import PAGE
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.attention_heads import HEAD_DIMENSIONS
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.attention_decode.cache import Cache
    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "mma.cu"
KERNEL = "attention_decode"
MOST_GROUP = 16
"""Query heads of a key/value head: two products side by side."""
LOG2_E = 1.4426950408889634
SPACE = {"heads": (0, 1, 2, 4, 8), "warps": (0, 8, 4, 2), "stages": (0, 2, 3, 4, 5, 6), "blocks": (0, 1, 2)}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""
BUSY = 0.93
"""Of the SMs: a choice that gives so many of them a block is as good as one that gives more."""
MANY_ROWS, FULL = 8, 0.9
"""Contexts of key heads for each SM from which the warps of a block divide its heads so that few of them have no token, and the
share of tokens that is enough. H200: 3,607 contexts of 176 tokens with 4 key heads of 64 take 187.9 us with steps of 256 tokens
of one head, and 174.1 in cuDNN; steps of 64 tokens of four heads are an estimate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A block has `warps`, for `heads` key/value heads; `stages` steps of a warp are in shared memory; an SM has `blocks`."""

    heads: int
    warps: int
    stages: int
    blocks: int

    def tokens(self, d: int) -> int:
        """Tokens of each of its heads that a block computes at a time.

        >>> Tile(heads=2, warps=8, stages=3, blocks=1).tokens(128)
        64
        """
        return (32 if d == 64 else 16) * (self.warps // self.heads)

    def shared_bytes(self, d: int, group: int = MOST_GROUP) -> int:
        """The steps of all warps, and maxima and totals.

        >>> Tile(heads=2, warps=8, stages=3, blocks=1).shared_bytes(128, 8)
        197120
        """
        return self.warps * (self.stages * step_bytes(d) + 64 * -(-group // 8))

    def refusal(self, hk: int, d: int, shared_bytes: int = MOST_SHARED_BYTES) -> str | None:
        """Why a GPU with so much shared memory for a block cannot run it, or None."""
        if hk % self.heads or self.warps % self.heads:
            return f"{self.heads} heads of a block divide neither {hk} key/value heads nor {self.warps} warps"
        if (size := self.shared_bytes(d)) > shared_bytes:
            return f"{size:,} bytes of shared memory; a block has at most {shared_bytes:,}"
        return None

    def defines(self, element: str, group: int, d: int, *, paged: bool) -> dict[str, str]:
        """The definitions that mma.cu is compiled with."""
        numbers = {
            "D": d,
            "GROUP": group,
            "HEADS": self.heads,
            "WARPS": self.warps,
            "STAGES": self.stages,
            "PAGE": PAGE if paged else 0,
        }
        return {"ELEMENT": element, **{name: str(number) for name, number in numbers.items()}}

    def shares(self, sequences: int, length: int, hk: int, d: int, multiprocessors: int) -> int:
        """Shares of the tokens, each of one block for each `heads` heads: as many as keep all blocks on the device at once.

        >>> Tile(heads=1, warps=8, stages=3, blocks=1).shares(1, 8192, 8, 128, 132)
        16
        """
        tiles = sequences * -(-length // self.tokens(d))
        return max(1, min(multiprocessors * self.blocks // (hk // self.heads), tiles))


OTHER_BYTES = 2048
"""Of shared memory beside the steps, about."""


def step_bytes(d: int) -> int:
    """Keys and values of a step of a warp: 16 tokens, or 32 of heads of 64.

    >>> [step_bytes(d) for d in (64, 128, 256)]
    [8192, 8192, 16384]
    """
    return max(8192, 64 * d)


def choose(
    hk: int, d: int, multiprocessors: int, shared_bytes: int = MOST_SHARED_BYTES, *, b: int = 1, length: int = 0
) -> Tile:
    """One head a block, so that all its warps share a row, unless too few SMs had a block; two steps of eight warps, if they fit.

    For many contexts of `length` tokens, more heads a block, or several blocks of fewer warps, if that leaves fewer warps without
    a token.

    >>> choose(8, 128, 132)
    Tile(heads=1, warps=8, stages=2, blocks=1)
    >>> choose(40, 128, 132).heads, choose(8, 256, 132).warps
    (4, 4)
    >>> choose(4, 256, 108, 101376)
    Tile(heads=1, warps=2, stages=3, blocks=1)
    >>> [choose(4, 64, 132, b=3607, length=length).heads for length in (176, 256, 300, 320, 2000)]
    [4, 1, 4, 4, 1]
    >>> choose(1, 64, 132, b=3607, length=176)
    Tile(heads=1, warps=2, stages=3, blocks=4)
    """
    room = (shared_bytes - OTHER_BYTES) // step_bytes(d)
    warps = 8 if room >= 16 else 4 if room >= 8 else 2
    stages = 2 if warps == 8 else min(3, room // warps)
    sizes = [(warps, stages, 1)]
    many = length > 0 and b * hk >= MANY_ROWS * multiprocessors
    if many and warps == 8:
        sizes += [(few, min(3, room // 8), 8 // few) for few in (4, 2)]
    tiles = [
        Tile(heads=heads, warps=several, stages=steps, blocks=blocks)
        for several, steps, blocks in sizes
        for heads in (1, 2, 4, 8)
        if hk % heads == 0 and heads <= several
    ]

    def busy(tile: Tile) -> float:
        """The share of the blocks that could be resident which are, on average."""
        groups, resident = hk // tile.heads, multiprocessors * tile.blocks
        blocks = max(1, resident // groups) * groups
        return blocks / (-(-blocks // resident) * resident)

    def full(tile: Tile) -> float:
        """The share of the tokens of all steps that exist."""
        tokens = tile.tokens(d)
        return length / (-(-length // tokens) * tokens) if many else 1.0

    return max(tiles, key=lambda tile: (min(busy(tile), BUSY), min(full(tile), FULL), tile.warps, -tile.heads))


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    sizes = problem.sizes
    if sizes["d"] not in HEAD_DIMENSIONS:
        return f"heads of {sizes['d']}"
    tile = Tile(**configuration)
    if (refusal := tile.refusal(sizes["hk"], sizes["d"], MOST_SHARED_BYTES // tile.blocks)) is not None:
        return refusal
    if tile.shared_bytes(sizes["d"]) * tile.blocks < 64 * 1024 and tile.stages < 6:
        return "too few bytes on their way to hide the latency"
    return None


def require_group(group: int) -> None:
    """Errors: BadField for more query heads of a key/value head than two products have."""
    if group > MOST_GROUP:
        raise BadField(
            "size hq", group, f"this kernel takes at most {MOST_GROUP} query heads for each key/value head (size hk)"
        )


def bind(cache: Cache, parameters: Mapping[str, int]) -> Launch:
    """Launch of `attention_decode` of mma.cu. `parameters`: those of SPACE.

    Errors: BadField for groups of more than 16 query heads, tensors that are not aligned, and tiles that do not fit.
    """
    import torch

    q_BHD, d, hk, group = cache.q_BHD, cache.d, cache.hk, cache.group
    require_group(group)
    for name, tensor in (("q", q_BHD), ("keys", cache.keys), ("values", cache.values)):
        if tensor.data_ptr() % 16:
            message = "this kernel reads 16 bytes at a time; copy the tensor to memory of its own"
            raise BadField(f"input {name}", f"address {tensor.data_ptr():#x}", message)
    multiprocessors, shared_limit = limits(q_BHD.device)
    given = all(parameters.values())
    tile = Tile(**parameters) if given else choose(hk, d, multiprocessors, shared_limit, b=cache.b, length=cache.length)
    if (refusal := tile.refusal(hk, d, shared_limit)) is not None:
        raise BadField("tile", str(tile), refusal)
    shared_bytes = tile.shared_bytes(d, group)
    defines = tile.defines(nvrtc.element_type(q_BHD.dtype), group, d, paged=cache.paged)
    kernel = nvrtc.kernel(SOURCE, KERNEL, defines, shared_bytes=shared_bytes)
    shares = tile.shares(cache.b, cache.length, hk, d, multiprocessors)
    blocks = shares * hk // tile.heads
    out, (parts, tops, totals, arrived) = torch.empty_like(q_BHD), memory_of_parts(q_BHD, tile, blocks, hk, group)
    tensors = (*cache.tensors, out, parts, tops, totals, arrived)
    pointers = tuple(t.data_ptr() for t in tensors)
    sizes = (*(ctypes.c_int(n) for n in (cache.b, cache.length, hk, shares)), ctypes.c_float(LOG2_E / math.sqrt(d)))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 32 * tile.warps, *pointers, *sizes, shared_bytes=shared_bytes)
        return tensors[4]

    return launch


def memory_of_parts(q_BHD: Tensor, tile: Tile, blocks: int, hk: int, group: int) -> tuple[Tensor, ...]:
    """Two parts of each block: sums, maxima and totals in fp32; and a counter for each row, zero."""
    import torch

    heads, device = 2 * blocks * tile.heads * group, q_BHD.device
    sums = torch.empty((heads, q_BHD.shape[2]), dtype=torch.float32, device=device)
    tops, totals = (torch.empty(heads, dtype=torch.float32, device=device) for _ in range(2))
    return sums, tops, totals, torch.zeros(len(q_BHD) * hk // tile.heads, dtype=torch.int32, device=device)
