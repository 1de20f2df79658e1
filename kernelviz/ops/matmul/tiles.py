"""Which tiles of a matrix product fit a multiprocessor: what a configuration needs, computed before anything is compiled."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration

SHARED_BYTES = 227 * 1024
"""Of one thread block on compute capability 9.0 and 10.0 (CUDA C++ Programming Guide, "Technical Specifications")."""
BARRIER_BYTES = 1024
"""Room for mbarriers and what Triton passes between partitions: 24 to 544 bytes in the kernels here (Triton 3.6, 3.7)."""
LEAST_AHEAD_BYTES = 64 * 1024
"""Little's law: 4.8 TB/s (H200) times 1 µs, the latency of memory under load, over 132 SMs is 36 KB; twice that to be safe."""
FEWEST_COLUMNS = 32
TOO_NARROW = f"a part of the product would have fewer than {FEWEST_COLUMNS} columns"
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
    elements = tile_m * tile_n // threads
    if elements <= MOST_ACCUMULATORS:
        return None
    return f"a thread would hold {elements} elements of the product, at most {MOST_ACCUMULATORS} fit its registers"


def shared_bytes_of_pointers(c: Configuration, itemsize_bytes: int) -> int:
    """Shared memory, at least, of a kernel that loads through pointers."""
    # `flatten` makes one loop of two: what is being stored then has memory of its own while the next tiles arrive. That was half
    # of the tile of the product or all of it (Triton 3.6, 3.7).
    product = c["tile_m"] * c["tile_n"] * itemsize_bytes // 2 if c.get("flatten") else 0
    tile_k = c["tile_k_bytes"] // itemsize_bytes
    return product + pipeline_bytes(c["tile_m"], c["tile_n"], tile_k, c["stages"], itemsize_bytes)


def shared_bytes_of_descriptors(c: Configuration) -> int:
    """Shared memory, at most, of a kernel that loads and stores 16-bit elements by TMA: what is being stored lies there too."""
    stored = c["tile_m"] * c["tile_n"] // c.get("parts", 1) * c.get("buffers", 1) * 2
    return pipeline_bytes(c["tile_m"], c["tile_n"], c["tile_k"], c["stages"], 2) + stored + BARRIER_BYTES


def admits_pointers(configuration: Configuration, problem: Problem) -> str | None:
    """For tiles that are loaded through pointers: registers and shared memory suffice, and the tile fits the product."""
    c = configuration
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 32 * c["warps"])
        or too_much_shared(shared_bytes_of_pointers(c, dtype(problem.dtype).itemsize_bytes))
        or _too_large(c, problem, smallest=16)
    )


def admits_descriptors(configuration: Configuration, problem: Problem) -> str | None:
    """For tiles that TMA loads and stores."""
    c = configuration
    if c["parts"] > 1 and c["tile_n"] // c["parts"] < FEWEST_COLUMNS:
        return TOO_NARROW
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 32 * c["warps"])
        or too_much_shared(shared_bytes_of_descriptors(c))
        or _too_little_ahead(c)
        or _too_large(c, problem, smallest=64)
    )


def admits_warp_specialised(configuration: Configuration, problem: Problem) -> str | None:
    """For two warpgroups that multiply, between which Triton divides the tile."""
    return _admits_two_warpgroups(configuration, problem)


def admits_gluon(configuration: Configuration, problem: Problem) -> str | None:
    """For two warpgroups that multiply, each with its own buffers for what it stores."""
    c = configuration
    if c["buffers"] > c["parts"]:
        return f"{c['buffers']} buffers for {c['parts']} parts of the product"
    if c["tile_n"] // c["parts"] < FEWEST_COLUMNS:
        return TOO_NARROW
    if c["lead"] >= c["stages"]:
        return "one warpgroup would be ahead of the other by the whole ring"
    return _admits_two_warpgroups(c, problem)


def _admits_two_warpgroups(c: Configuration, problem: Problem) -> str | None:
    return (
        too_many_registers(c["tile_m"], c["tile_n"], 256)
        or too_much_shared(shared_bytes_of_descriptors(c))
        or _too_little_ahead(c)
        or _too_large(c, problem, smallest=128)
    )


def _too_little_ahead(c: Configuration) -> str | None:
    """One block runs on an SM: what it loads ahead is all that is in flight there."""
    ahead = pipeline_bytes(c["tile_m"], c["tile_n"], c["tile_k"], c["stages"], 2)
    return None if ahead >= LEAST_AHEAD_BYTES else f"it loads only {ahead} bytes ahead, too few to hide the latency"


def _too_large(c: Configuration, problem: Problem, *, smallest: int) -> str | None:
    """Why a tile is not measured of which more than half is outside the product, unless it is the smallest that there is."""
    for axis, key in (("m", "tile_m"), ("n", "tile_n")):
        if c[key] > max(2 * problem.sizes[axis], smallest):
            return f"{key} is more than twice the size {axis} of the product"
    return None
