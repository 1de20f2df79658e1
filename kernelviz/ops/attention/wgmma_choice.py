"""Which options of the CUDA C++ kernel of attention suit a problem. Imports no torch."""

from __future__ import annotations

from dataclasses import replace

from kernelviz.ops.attention.wgmma import Options

KEYS = {64: 128, 128: 128, 256: 80}
"""Keys of a tile by head dimension: what two warpgroups can keep in registers beside O (D = 256: 128 registers a thread)."""
LONG = 8192
"""Positions from which on causal attention of 128 elements is faster with tiles of 176 keys than of 128: 3 to 9 % on an H200."""
THREE_WARPGROUPS = 2048
"""Positions from which on heads of 64 are faster with three warpgroups: 1 to 13 % on an H200, and up to 10 % slower before."""


def first(dimension: int) -> Options:
    """The options of the first rung; other dimensions than those of `KEYS` are refused when the kernel is bound."""
    return Options(keys=KEYS.get(dimension, 128))


def ping_pong(dimension: int) -> Options:
    return replace(first(dimension), ping_pong=1)


def overlap(dimension: int) -> Options:
    return replace(ping_pong(dimension), overlap=1)


def persistent(dimension: int) -> Options:
    """O has shared memory of its own only where the tiles of a head of 256 leave room for it."""
    return replace(overlap(dimension), persistent=1, o_by_tma=int(dimension < 256))


def three_stages(dimension: int) -> Options:
    """Two sets of scores: 96 keys (64 with a dimension of 256) are as many as there are registers for."""
    return Options(keys=64 if dimension == 256 else 96, overlap=2, persistent=1)


def choose(length: int, dimension: int, *, causal: bool) -> Options:
    """The fastest options by what was measured on an H200 (2026-11-27; 1,024, 4,096 and 16,384 positions).

    >>> choose(1024, 128, causal=True).keys, choose(16384, 128, causal=True).keys, choose(4096, 64, causal=False).consumers
    (128, 176, 3)
    """
    options = persistent(dimension)
    if dimension == 64 and length >= THREE_WARPGROUPS:
        return replace(options, consumers=3, ping_pong=0)
    if dimension == 128 and causal and length >= LONG:
        return replace(options, keys=176, o_by_tma=0)
    if dimension == 256:
        return replace(options, ping_pong=0)
    return options
