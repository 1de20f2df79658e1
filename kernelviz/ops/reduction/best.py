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


def reduction(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 128 KiB (96 KiB on a card without clusters), else a block that waits for the sums of others.

    Without its fence and its counter a sum takes two accesses of the L2 less than in the persistent kernel, which is about 1 of
    its 3.8 us at 1.2 MB. H200, us with flags and in the persistent kernel: 6.77 and 7.63 for 18 MB, 9.79 and 10.5 for 32 MB,
    22.6 and 23.5 for 91 MB, 91.2 and 94.1 for 398 MB; of 17 sums of more than 16 MiB, the persistent kernel was ahead for two,
    of 9.8 million unaligned 16-bit numbers (8.35 and 8.95) and of 22 million (13.94 and 14.03). Between 128 KiB and 192 KiB a
    cluster takes as long as flags: 2.71 us and 2.65 for 152 KB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [reduction(Problem(op="sum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (949, 2**15, 40000, 2**23)]
    ['cuda_one_block', 'cuda_one_block', 'cuda_flagged', 'cuda_flagged']
    """
    most_bytes = ONE_BLOCK_BESIDE_CLUSTER_BYTES if card.compute_capability >= (9, 0) else ONE_BLOCK_BYTES
    fallback = ("cuda_persistent", "triton_two_pass")
    return ("cuda_one_block" if row_bytes(problem) <= most_bytes else "cuda_flagged", *fallback)
