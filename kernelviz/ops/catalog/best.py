"""What the rule of an op gets and returns: the rule names the variant that a user should get for a problem on a card."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem

TMA_BYTES = 16
"""Rows that TMA copies begin at multiples of this (CUDA C++ Programming Guide, "Tensor Memory Access")."""


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


def tiles(rows: int, columns: int, of: tuple[int, int]) -> int:
    """Tiles of this height and width that cover a matrix.

    >>> tiles(300, 256, (128, 256))
    3
    """
    return -(-rows // of[0]) * -(-columns // of[1])
