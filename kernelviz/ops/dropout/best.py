"""The variant that a user of `dropout` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor

FEW = 768
"""Elements a multiprocessor, three blocks of 256, up to which a call of Philox an element is hidden by the load. H200: 4,096 fp32
take 1.25 us with a call an element and 1.23 with one for 128 bits, 81,967 bf16 1.53 and 1.71, but 131,072 fp16 1.77 and 1.71."""


def dropout(problem: Problem, card: Card) -> tuple[str, ...]:
    """A call of Philox an element up to 768 elements a multiprocessor, and else one for 128 bits, both in CUDA C++.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [dropout(Problem(op="dropout", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (64, 65536, 1048576)]
    ['cuda_scalar', 'cuda_scalar', 'cuda_philox']
    """
    if elements_a_multiprocessor(problem.sizes["n"], card) <= FEW:
        return ("cuda_scalar", "triton_rand", "cuda_philox")
    return ("cuda_philox", "triton_philox")
