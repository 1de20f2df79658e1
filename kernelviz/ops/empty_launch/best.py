"""The variant that a user of `empty_launch` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def launches(problem: Problem, card: Card) -> tuple[str, ...]:
    """A captured graph of all launches of a CUDA C++ kernel.

    H200, launched into the stream: 2 take 1.69 us in a graph and 2.38 apart, 16 take 13.8 and 24.9, 256 take 222 and 3612, when
    the host is slower than the GPU. Where the separate launches are captured and replayed as well, one graph in another gains
    nothing: 3 take 3.13 and 2.47, 8 take 7.40 and 7.75, 64 take 61 and 54.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [launches(Problem(op="empty_launch", sizes={"k": k}, dtype="fp32"), H200)[0] for k in (8, 64)]
    ['cuda_graph', 'cuda_graph']
    """
    return ("cuda_graph", "cuda_launches")
