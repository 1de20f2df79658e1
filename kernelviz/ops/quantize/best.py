"""The variant that a user of a quantisation of rows gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, few_long_rows, many_short_rows, row_bytes, slabs_of_rows, triton_vectorises

SHORT_ROW = 8192
"""H200, fp8: 8192 rows of 8192 take 47 us in Triton and 48 in clusters; 2048 rows of 32768 take 54 and 48."""
LONGEST_SLAB_ROW_BYTES = 256
"""`cuda_slab` has no kernel for longer rows."""
TINY_ROW_BYTES, FEWEST_TINY_BYTES = 16, 512
"""Several rows of less than 16 bytes are one vector, so that `cuda_slab` needs fewer bytes an SM (estimated)."""


def quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a row up to 8192 elements, and persistent clusters for longer rows; a block of CUDA C++ for short
    rows and those of no multiple of 16 elements; several blocks a row for rows of more than 1 MiB that are fewer than
    multiprocessors.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB. No cluster holds a
    row of more than 1 MiB, and one block a row would leave multiprocessors idle.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((512, 8192), (512, 131072), (512, 4099), (2**20, 64), (19, 2**20))
    >>> [quantize(Problem(op="quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_row', 'cuda_columns', 'cuda_registers', 'cuda_registers', 'cuda_split']
    """
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_registers")
    if problem.sizes["n"] > SHORT_ROW:
        return ("cuda_columns", "cuda_registers")
    return ("cuda_registers", "triton_row") if _uneven(problem, card) else ("triton_row", "cuda_registers")


def rmsnorm_quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row where rows of up to 8192 are no more than multiprocessors, and for short rows and those of no
    multiple of 16 elements; else Triton up to 2048 elements, and persistent clusters beyond; several blocks a row for rows of
    more than 1 MiB that are fewer than multiprocessors; several rows a thread or warp for many rows of up to 256 bytes.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB. H200, fp16: 19 rows
    of 24.8 million, one block each, take 5984 us; bf16: 180,692 rows of 2, bytes of each stored apart, take 8.12 us.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (32768, 2048), (8192, 8192), (32768, 2047), (19, 24_846_327), (180_692, 2), (2**16, 33))
    >>> [rmsnorm_quantize(Problem(op="rmsnorm_quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_fused', 'triton_fused', 'cuda_columns', 'cuda_fused', 'cuda_split', 'cuda_slab', 'cuda_slab']
    """
    n = problem.sizes["n"]
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_fused")
    if slabs_of_rows(problem, card, longest_bytes=LONGEST_SLAB_ROW_BYTES) or _many_tiny_rows(problem, card):
        return ("cuda_slab", "cuda_fused")
    if n <= SHORT_ROW and (problem.sizes["m"] <= card.multiprocessors or _uneven(problem, card)):
        return ("cuda_fused",)
    return ("triton_fused", "cuda_fused") if n <= 2048 else ("cuda_columns", "cuda_fused")


def _many_tiny_rows(problem: Problem, card: Card) -> bool:
    of_row = row_bytes(problem)
    return of_row < TINY_ROW_BYTES and problem.sizes["m"] * of_row >= FEWEST_TINY_BYTES * card.multiprocessors


def _uneven(problem: Problem, card: Card) -> bool:
    """Whether Triton cannot load rows as vectors, or they are too short for a program each."""
    return not triton_vectorises(problem.sizes["n"]) or many_short_rows(problem, card)
