"""The variant that a user of `sum` or `mean` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

ONE_BLOCK_BYTES = 96 * 1024
"""An estimate: one block takes 1.3 µs and reads 60 to 70 bytes per ns; at most 64 bytes per cycle reach an SM from L2. The
kernels with a second stage take 3.2 to 3.5 µs up to 256 KiB on an H200. So they break even at about 128 KiB, above this limit."""
ONE_BLOCK_BESIDE_CLUSTER_BYTES = 128 * 1024
"""Up to which the kernel of one block is compiled for the size and has all loads in flight. H200: 17 KB take 1.55 us by it, 73 KB
1.96; by a cluster 2.09 and 2.42. Lines through these times do not meet below this limit, near which nothing was measured."""
CLUSTER_BYTES = 192 * 1024
"""An estimate from times on an H200: a cluster takes 2.42 us for 73 KB and 4.37 for 1.2 MB, and the kernel that waits for the
sums of others 2.62 and 2.86. Lines through them meet at 200 KB."""

FLAGGED_BYTES = 16 * 2**20
"""An estimate, not measured yet: above it 1 us is less than a fifth of the time."""


def reduction(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 128 KiB, a cluster up to 192 KiB (without clusters one block up to 96 KiB), a block that waits for the sums
    of others up to 16 MiB, else the persistent kernel.

    The persistent kernel is within 3 % of our fastest kernel with a second stage in each recorded case. Without its fence and its
    counter a sum takes two accesses of the L2 less, which is about 1 of its 3.8 us at 1.2 MB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [reduction(Problem(op="sum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (949, 2**15, 40000, 2**16, 2**23)]
    ['cuda_one_block', 'cuda_one_block', 'cuda_cluster', 'cuda_flagged', 'cuda_persistent']
    """
    size_bytes = row_bytes(problem)
    clusters = card.compute_capability >= (9, 0)
    fallback = ("cuda_persistent", "triton_two_pass")
    if size_bytes <= (ONE_BLOCK_BESIDE_CLUSTER_BYTES if clusters else ONE_BLOCK_BYTES):
        return ("cuda_one_block", *fallback)
    if size_bytes <= CLUSTER_BYTES and clusters:
        return ("cuda_cluster", *fallback)
    return ("cuda_flagged", *fallback) if size_bytes <= FLAGGED_BYTES else fallback
