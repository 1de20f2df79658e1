"""Which tiles of a matrix product fit a multiprocessor: what a configuration needs, computed before anything is compiled."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration

SHARED_BYTES = 227 * 1024
"""Of one thread block on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, "Technical Specifications")."""
MOST_ACCUMULATORS = 128
"""Registers of a thread for the tile of the product; with more, the operands and addresses do not fit into 255 registers."""


def pipeline_bytes(tile_m: int, tile_n: int, tile_k: int, stages: int, itemsize_bytes: int) -> int:
    """Shared memory of the tiles of A and B that are loaded ahead.

    >>> pipeline_bytes(128, 256, 64, 3, 2)
    147456
    """
    return (tile_m + tile_n) * tile_k * stages * itemsize_bytes


def too_much_shared(needed_bytes: int) -> str | None:
    """Why a configuration does not fit shared memory, or None."""
    if needed_bytes <= SHARED_BYTES:
        return None
    return f"it needs {needed_bytes} bytes of shared memory, a block has at most {SHARED_BYTES}"


def too_many_registers(tile_m: int, tile_n: int, threads: int) -> str | None:
    """Why the tile of the product does not fit the registers of so many threads, or None.

    >>> too_many_registers(128, 256, 256)
    >>> too_many_registers(128, 256, 128)
    'a thread would hold 256 elements of the product, at most 128 fit its registers'
    """
    held = tile_m * tile_n // threads
    if held <= MOST_ACCUMULATORS:
        return None
    return f"a thread would hold {held} elements of the product, at most {MOST_ACCUMULATORS} fit its registers"


def admits_pointers(configuration: Configuration, problem: Problem) -> str | None:
    """For tiles that are loaded through pointers: registers and shared memory suffice, and warps have work."""
    c = configuration
    itemsize_bytes = dtype(problem.dtype).itemsize_bytes
    tile_k = c["tile_k_bytes"] // itemsize_bytes
    # One loop of the two: the tile of the product then has memory of its own while the next tiles arrive.
    product = c["tile_m"] * c["tile_n"] * itemsize_bytes if c.get("flatten") else 0
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 32 * c["warps"])
        or too_much_shared(product + pipeline_bytes(c["tile_m"], c["tile_n"], tile_k, c["stages"], itemsize_bytes))
        or _too_large(c, problem)
    )


def admits_descriptors(configuration: Configuration, problem: Problem) -> str | None:
    """For tiles that TMA loads and stores: the part of the product that is being stored also lies in shared memory."""
    c = configuration
    pipeline = pipeline_bytes(c["tile_m"], c["tile_n"], c["tile_k"], c["stages"], 2)
    stored = c["tile_m"] * c["tile_n"] // c["parts"] * 2
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 32 * c["warps"])
        or too_much_shared(pipeline + stored)
        or _too_large(c, problem)
    )


def admits_warp_specialised(configuration: Configuration, problem: Problem) -> str | None:
    """As `admits_descriptors`, for two warpgroups that multiply: Triton divides the tile between them."""
    return admits_descriptors({**configuration, "warps": 8, "parts": 1}, problem)


def admits_gluon(configuration: Configuration, problem: Problem) -> str | None:
    """Two warpgroups that multiply, each with its own buffers for what it stores; each needs a multiple of 64 rows."""
    c = configuration
    if c["buffers"] > c["parts"]:
        return f"{c['buffers']} buffers for {c['parts']} parts of the product"
    if c["tile_n"] // c["parts"] < 32:
        return "a part of the product has fewer than 32 columns"
    if c["lead"] >= c["stages"]:
        return "one warpgroup would be ahead of the other by the whole ring"
    pipeline = pipeline_bytes(c["tile_m"], c["tile_n"], c["tile_k"], c["stages"], 2)
    stored = c["tile_m"] * c["tile_n"] // c["parts"] * c["buffers"] * 2
    barriers = 256
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 256)
        or too_much_shared(pipeline + stored + barriers)
        or _too_large(c, problem)
    )


def _too_large(c: Configuration, problem: Problem) -> str | None:
    """A tile of which more than half is outside the matrix is measured for no problem."""
    for axis, key in (("m", "tile_m"), ("n", "tile_n")):
        if c[key] > 2 * max(problem.sizes[axis], 16):
            return f"{key} is more than twice the size {axis} of the product"
    return None
