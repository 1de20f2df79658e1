"""The variant that a user of a gated activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises

A_THREAD = 2**17
"""H200: 87,552 fp16 take 1.57 us backward with an element a thread, 1.66 in Triton's blocks and 1.69 with vectors; 283,635 bf16
forward 2.19, 2.30 and 1.85."""
A_THREAD_WIDE_BACKWARD = 2**21
"""H200, fp32: 543,075 take 3.88 us with an element a thread and 4.09 with vectors: a warp's elements fill whole lines, and few
registers leave room for more threads. From 2 to 4 million take as long, 8 million 12 % longer."""
KNOWN_PAIRS = 2**20
"""Up to which a kernel for the size is fastest for even numbers of elements, which it loads in pairs or more at once, and for
fp32, of which a warp loads a line in single elements. H200: 929,713 fp32 take 3.90 us so and 4.06 with vectors and a rest,
293,832 fp16 take 1.69 us so, 1.68 with vectors and a rest and 2.30 in Triton's blocks; backward, 717,518 bf16 take 3.18, 3.37 and
6.43."""


def gated(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^17 elements, and backward up to 2^21 of fp32; else Triton's blocks for multiples of 16
    elements, Triton compiled for the size for other even numbers and for fp32 up to 2^20, and 16-byte vectors of CUDA C++.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (8191, 8191), (74, 2373), (75, 2373), (4, 4))
    >>> [gated(Problem(op="swiglu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_block', 'cuda_vec16', 'triton_known_size', 'cuda_vec16', 'cuda_scalar']
    """
    elements = problem.sizes["m"] * problem.sizes["n"]
    wide_backward = problem.direction == "backward" and problem.dtype == "fp32"
    if elements <= (A_THREAD_WIDE_BACKWARD if wide_backward else A_THREAD):
        return ("cuda_scalar", "cuda_vec16")
    if triton_vectorises(elements):
        return ("triton_block", "cuda_vec16")
    if (elements % 2 == 0 or problem.dtype == "fp32") and elements <= KNOWN_PAIRS:
        return ("triton_known_size", "cuda_vec16")
    return ("cuda_vec16", "triton_block")
