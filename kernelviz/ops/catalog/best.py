"""What the rule of an op gets and returns: the rule names the variant that a user should get for a problem on a card."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem

TMA_BYTES = 16
"""Rows that TMA copies begin at multiples of this (CUDA C++ Programming Guide, "Tensor Memory Access")."""

TRITON_DIVISOR = 16
"""Triton compiles a kernel for integer arguments that are multiples of this (`tt.divisibility`)."""
SLAB_BYTES = 4096
"""The smallest piece of short rows in shared memory: a 16-byte vector of each of 256 threads."""
FEW_SLABS = 4
"""Of a multiprocessor, up to which a ring of slabs does not pay for its start, and programs of Triton have several rows each.
H200: 11,069 rows of 31 fp32, which are 2.5, take argmax 1.85 us by programs and 2.31 as slabs, 4,931 of 62 the backward pass of
cross_entropy 1.82 and 2.54; 32,768 of 64 bf16, which are 7.8, take argmax 3.55 through a ring and 3.59 in torch_compile."""
CLUSTER_ROW_BYTES = 2**20
"""Of a row. Longer ones take one block each in the kernels that keep rows on chip."""
ON_CHIP_BYTES = 2**17
"""A multiprocessor's share of rows that are all on chip at once: half of its registers."""
SHORT_ROW_BYTES = 2048
"""An H200 starts a program each 0.6 ns: 2^20 programs took 631 us, for rows of 256 bytes and with 1 KiB for half as many rows;
rows of 2 KiB take as long as their bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """The facts of a GPU that a rule may use."""

    compute_capability: tuple[int, int]
    multiprocessors: int
    l2_bytes: int


H200 = Card(compute_capability=(9, 0), multiprocessors=132, l2_bytes=60 * 2**20)
"""The card of the rules' examples. An H100 differs in the size of its L2 cache only."""

Rule = Callable[[Problem, Card], tuple[str, ...]]
"""Names of variants, the best first. Those that the problem or the card does not allow are passed over.

The first paragraph of its docstring is the rule in one sentence, and it has an example. It is a pure function of sizes, number
format, compute precision, direction and card, and belongs in a module that no kernel imports, so that a change of a rule changes
no source digest.
"""


def sentence(rule: Rule) -> str:
    """The rule in one sentence.

    >>> def newest(problem, card):
    ...     '''The last variant,
    ...     at every size.
    ...
    ...     More.'''
    >>> sentence(newest)
    'The last variant, at every size.'
    """
    return " ".join((inspect.getdoc(rule) or "").partition("\n\n")[0].split())


def whole_vectors(problem: Problem, *axes: str) -> bool:
    """Whether rows of each of these lengths begin at multiples of 16 bytes, as TMA needs.

    >>> product = Problem(op="matmul", sizes={"m": 7, "n": 64, "k": 100}, dtype="bf16")
    >>> whole_vectors(product, "n"), whole_vectors(product, "n", "k")
    (True, False)
    """
    elements = TMA_BYTES // dtype_named(problem.dtype).itemsize_bytes
    return all(problem.sizes[axis] % elements == 0 for axis in axes)


def row_bytes(problem: Problem, columns: str = "n") -> int:
    """Bytes of a row of that many elements of the problem's number format.

    >>> row_bytes(Problem(op="softmax", sizes={"m": 2, "n": 100}, dtype="bf16"))
    200
    """
    return problem.sizes[columns] * dtype_named(problem.dtype).itemsize_bytes


ONE_PROGRAM = 1024
"""Elements of a row that a program of Triton has in registers. H200: 5 rows of 3 take 1.4 us by a program each in rmsnorm, 2.0 by
persistent programs and 2.3 in CUDA C++; of cross_entropy_with_grad 5 rows of 44 take 1.39 and in CUDA C++ 3.21, 8 of 1168 1.99
in both. Of rmsnorm, 16 rows of 4096 take 2.1, 2.0 and 2.1; nothing between was measured."""
ONE_ELEMENT_A_THREAD = 2**15
"""Up to which elementwise kernels with one element a thread are fastest. H200: `copy` in fp32 of 3,008 takes 1.23 us with one,
1.29 with vectors and 1.30 in Triton's blocks, of 18,104 it takes 1.32, 1.36 and 1.42; `mul` in fp16 of 322 takes 1.20, 1.25."""


def triton_vectorises(length: int) -> bool:
    """Whether a Triton kernel with the mask `index < length` loads 16 bytes a thread at once.

    Triton compiles such a kernel twice: for lengths that are multiples of 16, where a vector is masked as a whole, and for all
    others, where each element is loaded alone. CUDA C++ kernels load vectors in both cases.

    >>> [triton_vectorises(length) for length in (4096, 4104, 4099)]
    [True, False, False]
    """
    return length % TRITON_DIVISOR == 0


def elements_a_multiprocessor(elements: int, card: Card) -> int:
    """The most elements that a multiprocessor gets if all get about as many.

    Up to 256, no multiprocessor has more than one block of 256 threads with an element each, so latency sets the time. Up to
    1024, one element a thread takes half of the threads that it holds.

    >>> elements_a_multiprocessor(2**15, H200), elements_a_multiprocessor(2**17, H200)
    (249, 993)
    """
    return -(-elements // card.multiprocessors)


def few_slabs(problem: Problem, card: Card, *, columns: str = "n") -> bool:
    """Whether all rows together are at most four pieces of 4 KiB for each multiprocessor.

    >>> shapes = ((5000, 21), (2**20, 21), (500, 1000))
    >>> [few_slabs(Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16"), H200) for m, n in shapes]
    [True, False, True]
    """
    return problem.sizes["m"] * row_bytes(problem, columns) <= FEW_SLABS * SLAB_BYTES * card.multiprocessors


def few_long_rows(problem: Problem, card: Card, *, longest_bytes: int = CLUSTER_ROW_BYTES) -> bool:
    """Whether rows are longer than a cluster keeps, and fewer than four for each multiprocessor: several blocks share each row.

    H200: add_rmsnorm of 160 rows of 2,081,216 bf16 takes 943 us in parts of rows, and 1,753 with a block a row, of which 132 run
    at once.

    >>> shapes = ((4, 2**22), (200, 2**22), (600, 2**22), (4, 8192))
    >>> [few_long_rows(Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16"), H200) for m, n in shapes]
    [True, True, False, False]
    """
    return problem.sizes["m"] < 4 * card.multiprocessors and row_bytes(problem) > longest_bytes


def all_on_chip(problem: Problem, card: Card) -> bool:
    """Whether all rows together fit into half of the registers of all multiprocessors: persistent clusters have no next rows.

    H200, by a block or cluster a row and by persistent ones: quantize_fp8 of 32 rows of 93,924 fp32 7.90 and 9.25 us, with a
    normalisation of 27 of 80,016 6.12 and 7.26; quantize_int8 of 256 rows of 131,072 fp32 61.4 and 41.9, of 60 of 392,336 fp16
    27.8 and 19.8; norm_activation of 16 rows of 118,016 fp16 8.05 and 8.97, of 386 of 12,004 fp32, a few more, 12.2 and 14.1, of
    392 of 65,240 bf16 41.8 and 37.2.

    >>> shapes = ((32, 93_924), (256, 131_072), (512, 8192))
    >>> [all_on_chip(Problem(op="quantize_fp8", sizes={"m": m, "n": n}, dtype="fp32"), H200) for m, n in shapes]
    [True, False, True]
    """
    return problem.sizes["m"] * row_bytes(problem) <= ON_CHIP_BYTES * card.multiprocessors


def tiles(rows: int, columns: int, of: tuple[int, int]) -> int:
    """Tiles of this height and width that cover a matrix.

    >>> tiles(300, 256, (128, 256))
    3
    """
    return -(-rows // of[0]) * -(-columns // of[1])
