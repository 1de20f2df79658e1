"""What is checked of random numbers: that they are at least 0 and below 1, and statistics of independent uniform numbers.

No two generators draw the same numbers, so their values cannot be compared. A share of n independent events of probability p
differs from p by more than `_allowed` says once in 33 million times at most (Bernstein's inequality, which holds for small n,
too; for large n it is six standard deviations, and the chance is one in 500 million).
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

BINS = 32
"""Equal parts of the interval from 0 to 1, and of the intervals of FINE. In bf16 a part holds 8 multiples of 2^-8."""
PARTS = 64
"""Parts of the vector in each of which the mean is checked."""
LAGS = tuple(2**e for e in range(31))
"""Distances at which elements are compared: numbers that a 16-byte vector shares, or that repeat in each block, agree too often
at one of them, since kernels divide the output at powers of two."""
LEVEL = 18.0
"""The logarithm of the chance in Bernstein's inequality: six standard deviations squared, halved."""
FINE = {"fp32": 14, "fp16": 5, "bf16": 3}
"""The position within an interval of 2^-FINE is uniform, too. It shows whether a number has as many random bits as its format."""
BITS = {"fp32": 24, "fp16": 11, "bf16": 8}
"""Bits of a format's significand. A number that is rounded to the format is in another part by 2^-BITS at most."""


def reference(like_1: Tensor, n: int) -> Tensors:
    """No number outside, shares of 1/32, means of 1/2, and half of the pairs on the same side of 1/2, whatever n is."""
    return (
        like_1.new_zeros(1),
        like_1.new_full((BINS,), 1 / BINS),
        like_1.new_full((BINS,), 1 / BINS),
        like_1.new_full((PARTS,), 0.5),
        like_1.new_full((len(LAGS),), 0.5),
    )


def compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """How many numbers are outside, and the statistics that `reference` says. What cannot be computed has its expected value."""
    import torch

    (y_N,) = outputs
    n, name = y_N.numel(), {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}[y_N.dtype]
    outside = y_N.new_zeros(1, dtype=torch.float64)
    coarse, fine = (y_N.new_zeros(BINS, dtype=torch.float64) for _ in range(2))
    means = y_N.new_full((PARTS,), 0.5, dtype=torch.float64)
    for at, part_N in enumerate(torch.split(y_N, part_length(n))):  # in parts, because every number is widened
        wide_N = part_N.float()
        outside += (~((wide_N >= 0) & (wide_N < 1))).sum()
        wide_N = wide_N.nan_to_num(0.0).clamp(0.0, 1.0)
        means[at] = wide_N.mean(dtype=torch.float64)
        coarse += _counts(wide_N)
        fine += _counts((wide_N * 2 ** FINE[name]).frac_())
    high_N, agreeing = y_N >= 0.5, y_N.new_full((len(LAGS),), 0.5, dtype=torch.float64)
    for at, lag in enumerate(LAGS):
        if lag < n:
            agreeing[at] = (high_N[lag:] == high_N[:-lag]).sum() / (n - lag)
    return outside, coarse / n, fine / n, means, agreeing


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Nothing may be outside. Shares and means: Bernstein's inequality, and what rounding to the format may move."""
    n, step, like_1 = problem.sizes["n"], 2.0 ** -BITS[problem.dtype], inputs[0]
    share = _allowed(n, (1 / BINS) * (1 - 1 / BINS)) + 2 * step
    lengths = [max(1, min(part_length(n), n - at * part_length(n))) for at in range(PARTS)]
    return (
        like_1.new_zeros(1),
        like_1.new_full((BINS,), share),
        like_1.new_full((BINS,), share),
        like_1.new_tensor([_allowed(length, 1 / 12, largest=0.5) + step for length in lengths]),
        like_1.new_tensor([_allowed(max(1, n - lag), 1 / 4) + step for lag in LAGS]),
    )


def part_length(n: int) -> int:
    """Elements of a part; the last one may have fewer, and there may be fewer than 64 parts.

    >>> part_length(1), part_length(64), part_length(65)
    (1, 1, 2)
    """
    return -(-n // PARTS)


def _allowed(count: int, variance: float, largest: float = 1.0) -> float:
    """The largest distance of the mean of `count` independent numbers from what is expected of them.

    `variance` is that of each number, `largest` the most that one differs from its expected value.

    >>> round(_allowed(1, 1 / 32), 1), round(_allowed(2**28, 1 / 32) / (2**28 * 32) ** -0.5, 2)
    (12.1, 6.0)
    """
    spread = LEVEL * largest / 3
    return (spread + sqrt(spread**2 + 2 * LEVEL * count * variance)) / count


def _counts(position_N: Tensor) -> Tensor:
    """How many positions between 0 and 1 are in each of 32 equal parts."""
    import torch

    counts: Tensor = torch.bincount((position_N * BINS).to(torch.int32).clamp_(0, BINS - 1), minlength=BINS).double()
    return counts
