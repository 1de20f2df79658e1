"""The variant that a user of `dropout` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor

FEW = 512
"""Elements a multiprocessor, up to which a call of Philox an element is hidden by the load: an estimate. H200: 7,099 fp16 take
1.83 us in triton_rand, where a thread makes eight calls, and 2.05 in cuda_philox as it was, where the end waited for the rest;
the same calls without a load, an element a thread, take 0.86 us for 7,533 elements, and a kernel with one load takes 1.25."""


def dropout(problem: Problem, card: Card) -> tuple[str, ...]:
    """A call of Philox an element up to 512 elements a multiprocessor, and else one for 128 bits, both in CUDA C++.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [dropout(Problem(op="dropout", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (64, 65536, 1048576)]
    ['cuda_scalar', 'cuda_scalar', 'cuda_philox']
    """
    if elements_a_multiprocessor(problem.sizes["n"], card) <= FEW:
        return ("cuda_scalar", "triton_rand", "cuda_philox")
    return ("cuda_philox", "triton_philox")
