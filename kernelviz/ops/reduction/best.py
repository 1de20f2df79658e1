"""The variant that a user of `sum` or `mean` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

ONE_BLOCK_BYTES = 96 * 1024
"""An estimate: one block takes 1.3 µs and reads 60 to 70 bytes per ns; at most 64 bytes per cycle reach an SM from L2. The
kernels with a second stage take 3.2 to 3.5 µs up to 256 KiB on an H200. So they break even at about 128 KiB, above this limit."""
ONE_BLOCK_BESIDE_CLUSTER_BYTES = 80 * 1024
"""H200: 71 KiB take 2.2 µs by one block, whose kernel is compiled for the size, and 2.4 by a cluster, which takes 0.7 µs longer
to start and exchange sums, and reads eight times as fast."""
CLUSTER_BYTES = 512 * 1024
"""An estimate: eight SMs read this in 1 µs, so that a cluster takes 2.9 µs."""

FLAGGED_BYTES = 16 * 2**20
"""An estimate, not measured yet: above it 1 us is less than a fifth of the time."""


def reduction(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 80 KiB, a cluster up to 512 KiB (without clusters one block up to 96 KiB), a block that waits for the sums
    of others up to 16 MiB, else the persistent kernel.

    The persistent kernel is within 3 % of our fastest kernel with a second stage in each recorded case. Without its fence and its
    counter a sum takes two accesses of the L2 less, which is about 1 of its 3.8 us at 1.2 MB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [reduction(Problem(op="sum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (949, 20480, 20481, 131073, 2**23)]
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
