"""The variant that a user of `cumsum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

ONE_BLOCK_BYTES = 64 * 1024
"""One tile of the largest block. One SM reads and writes it in about 2 µs, after 1.3 µs of launch and first load; look-back takes
3.7 to 4.0 µs up to 256 KiB on an H200."""
ONE_BLOCK_BESIDE_CLUSTER_BYTES, ONE_BLOCK_BESIDE_CLUSTER = 10 * 1024, 2**12
"""Bytes, and elements. Up to 8 KiB the kernel is compiled for the size. H200: 3448 fp32 take 2.03 us by one block and 2.19 by a
cluster, 7097 bf16 2.38 and 2.24; 1400 fp16 take 1.41 us by it and 2.06 by a cluster; by the kernel for
any size, 11,622 fp32 take 3.31 and 2.48, and 5000 bf16 took 2.26 and 2.28 in its earlier form."""
CLUSTER_BYTES, FP32_CLUSTER_BYTES = 512 * 1024, 256 * 1024
"""What the blocks of a cluster hold; and where looking back takes as long, since elements are half as many. H200: 91,449 fp32
take 4.60 us in a cluster and 4.15 with look-back; 128,147 of 16 bits 4.34 and 6.81."""
MANY = 2**24
"""H200, 16 bits: 7.7 million elements take 16.8 us in one pass and 19.2 in three kernels, 81 million 139 and 126. Lines through
these times meet at 19 million."""


def scan(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 10 KiB or 2^12 elements, a cluster up to 512 KiB of 16-bit elements and 256 KiB of fp32 (without clusters
    one block up to 64 KiB), else decoupled look-back, but three kernels for more than 2^24 elements of 16 bits.

    Tiles are looked back at one after the other, whatever their format, which takes longer than reading 16-bit elements a
    second time.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [scan(Problem(op="cumsum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (4096, 4097, 91449)]
    ['cuda_one_block', 'cuda_cluster', 'cuda_look_back']
    >>> scan(Problem(op="cumsum", sizes={"n": 2**26}, dtype="bf16"), H200)[0]
    'cuda_three_kernels'
    """
    n = problem.sizes["n"]
    size_bytes = row_bytes(problem)
    clusters = card.compute_capability >= (9, 0)
    fallback = ("cuda_look_back", "triton_three_kernels")
    of_one_block = ONE_BLOCK_BESIDE_CLUSTER_BYTES if clusters else ONE_BLOCK_BYTES
    if size_bytes <= of_one_block or n <= ONE_BLOCK_BESIDE_CLUSTER:
        return ("cuda_one_block", *fallback)
    if size_bytes <= (FP32_CLUSTER_BYTES if problem.dtype == "fp32" else CLUSTER_BYTES) and clusters:
        return ("cuda_cluster", *fallback)
    if problem.dtype != "fp32" and n > MANY:
        return ("cuda_three_kernels", "cuda_look_back")
    return fallback
