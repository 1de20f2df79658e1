"""The steps of the Triton kernels of this folder: what may be tuned, and what fits. Imports neither torch nor triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelviz.core.problem import Problem
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES

OTHER_BYTES = 8192
"""Of shared memory beside keys and values, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """KiB of keys of a step of a program (and as much of values), its warps and pipeline stages, and programs of an SM."""

    keys_kib: int
    warps: int
    stages: int
    blocks: int

    def tokens(self, d: int) -> int:
        """Of a step.

        >>> Tile(keys_kib=16, warps=4, stages=3, blocks=2).tokens(128)
        64
        """
        return 512 * self.keys_kib // d

    @property
    def shared_bytes(self) -> int:
        return 2048 * self.keys_kib * self.stages + OTHER_BYTES

    def fitting(self, shared_bytes: int) -> Tile:
        """This tile, or one with fewer stages or shorter steps that fits a GPU with so much shared memory for a block.

        >>> Tile(keys_kib=32, warps=8, stages=3, blocks=1).fitting(99 * 1024)
        Tile(keys_kib=16, warps=8, stages=2, blocks=1)
        """
        tile = self
        while tile.shared_bytes > shared_bytes and (tile.stages > 2 or tile.keys_kib > 8):
            shorter = replace(tile, keys_kib=tile.keys_kib // 2)
            tile = replace(tile, stages=tile.stages - 1) if tile.stages > 2 else shorter
        return tile


PACKED = Tile(keys_kib=16, warps=4, stages=3, blocks=2)
"""As fast as any of four on an H200 where there are one or two waves of programs (8 heads, 8,192 and 65,536 tokens)."""
LEAST_TOKENS = 16
"""Of a step, because a factor of tl.dot has as many rows."""
ELEMENTS_OF_WARP = 1024
"""Of the keys of a short context: a thread has four 16-byte vectors of them, and as many of the values."""


@dataclass(frozen=True, slots=True)
class OneStep:
    """Tokens of the only step of a program, and its warps. Shared memory holds the keys and values of that step alone, so that
    more programs of an SM hide each other's latency. H200: 858 programs of 13 tokens with heads of 64, each with room for three
    steps of 128, took 10.7 us, and cuDNN 7.0."""

    tokens: int
    warps: int


def one_step(length: int, d: int, tile: Tile) -> OneStep | None:
    """The step for a context that is no longer than one of this tile; None for longer ones.

    >>> one_step(13, 64, PACKED), one_step(117, 64, PACKED), one_step(117, 128, PACKED)
    (OneStep(tokens=16, warps=1), OneStep(tokens=128, warps=4), None)
    """
    if length > tile.tokens(d):
        return None
    tokens = max(LEAST_TOKENS, 1 << (length - 1).bit_length())
    return OneStep(tokens, max(1, min(tile.warps, tokens * d // ELEMENTS_OF_WARP)))


SPLIT_SPACE = {"keys_kib": (16, 8, 32), "warps": (4, 2, 8), "stages": (3, 2, 4, 5), "blocks": (2, 1, 3, 4)}
SCHEDULED_SPACE = {"keys_kib": (32, 16, 8, 64), "warps": (8, 4, 2), "stages": (3, 2, 4, 5), "blocks": (1, 2, 3, 4)}
PAGED_SPACE = {"keys_kib": (8, 16, 32), "warps": (4, 2, 8), "stages": (5, 3, 4, 2), "blocks": (3, 2, 1, 4)}
"""What may be tuned, the default first. On an H200 more and shorter steps were faster with pages, which a table is read for."""


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: its programs do not fit on an SM."""
    tile = Tile(**configuration)
    if tile.shared_bytes * tile.blocks > MOST_SHARED_BYTES + OTHER_BYTES:
        return f"{tile.shared_bytes:,} bytes of shared memory for a program, {tile.blocks} programs an SM"
    return None
