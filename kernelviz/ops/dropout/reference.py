"""What is checked of a dropout: the value of each element that is not dropped, and the statistics of the mask.

An element counts as kept if its output is not 0, and is not counted if its input is 0. Counts of kept elements are binomial; they
exceed six standard deviations by chance once in 500 million times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


PARTS = 64
"""Number of parts of the vector in each of which the share of kept elements is checked."""


LAGS = tuple(2**e for e in range(31))
"""Distances at which elements are compared: a mask that is shared by all elements of a 16-byte vector, or that repeats in
each block, agrees with itself far too often at one of them, since kernels divide the input at powers of two."""


SIGMAS = 6.0


def statistics(x_N: Tensor, mask_N: Tensor, otherwise: float, agreeing: float) -> Tensors:
    """Shares of kept elements: of all, of each part; shares of pairs at each lag that are kept or dropped together.

    A share of inputs that are all zero is not known; it is set to the expected value, `otherwise` or `agreeing`.
    """
    known_N = x_N != 0
    mask_N = mask_N & known_N
    return (
        _share(mask_N.sum()[None], known_N.sum()[None], otherwise),
        _share(_by_part(mask_N), _by_part(known_N), otherwise),
        _share(_pairs(known_N, mask_N), _pairs(known_N), agreeing),
    )


def allowed(x_N: Tensor, p: float) -> Tensors:
    """Six standard deviations of each statistic.

    Pairs that share an element are not independent: of three elements in a row at one lag all agree with probability
    p³ + q³, so the variance of a pair's agreement, a (1 - a) with a = p² + q², grows by 2 (p³ + q³ - a²).
    """
    q = 1 - p
    agree = p * p + q * q
    spread = agree * (1 - agree) + 2 * (p**3 + q**3 - agree**2)
    known_N = x_N != 0
    return (
        _deviation(p * q, known_N.sum()[None]),
        _deviation(p * q, _by_part(known_N)),
        _deviation(spread, _pairs(known_N)),
    )


def _deviation(variance: float, count: Tensor) -> Tensor:
    return SIGMAS * (variance / count.double().clamp(min=1)).sqrt()


def _share(part: Tensor, whole: Tensor, otherwise: float) -> Tensor:
    return (part.double() / whole.double().clamp(min=1)).where(whole > 0, otherwise)


def _by_part(flags_N: Tensor) -> Tensor:
    from torch.nn import functional

    length = -(-flags_N.numel() // PARTS)
    return functional.pad(flags_N, (0, PARTS * length - flags_N.numel())).view(PARTS, length).sum(1)


def _pairs(known_N: Tensor, mask_N: Tensor | None = None) -> Tensor:
    """At each lag, the pairs of which both are known; with `mask_N` those that also agree."""
    import torch

    counts = known_N.new_zeros(len(LAGS), dtype=torch.int64)
    for at, lag in enumerate(LAGS):
        if lag < known_N.numel():
            both = known_N[lag:] & known_N[:-lag]
            counts[at] = (both if mask_N is None else both & (mask_N[lag:] == mask_N[:-lag])).sum()
    return counts


P = 0.25
"""The probability with which an element is dropped. The scale of the others, 4/3, is no number of any format."""


KEEP_PROBABILITY = 1 - P


AGREEMENT_PROBABILITY = P * P + KEEP_PROBABILITY * KEEP_PROBABILITY
"""The probability that two elements are both kept or both dropped."""


def reference(x_N: Tensor) -> Tensors:
    """x / (1 - p), for what is kept; the probabilities that the shares of `statistics` must come near to."""
    return (
        x_N / KEEP_PROBABILITY,
        x_N.new_full((1,), KEEP_PROBABILITY),
        x_N.new_full((PARTS,), KEEP_PROBABILITY),
        x_N.new_full((len(LAGS),), AGREEMENT_PROBABILITY),
    )


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Two roundings of a kept value, of the scale (torch on a CPU rounds it to the output's format) and of the product.

    Six standard deviations of each share, see `allowed`.
    """
    return (stored(outputs[0], problem.dtype, times=2), *allowed(inputs[0], P))


def compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """Kept values as they are, x / (1 - p) in the place of dropped ones (exactly 0), and the statistics of the mask."""
    x_N, y_N = inputs[0], outputs[0]
    mask_N = y_N != 0
    value_N = y_N.double().where(mask_N, x_N.double() / KEEP_PROBABILITY)
    return (value_N, *statistics(x_N, mask_N, KEEP_PROBABILITY, AGREEMENT_PROBABILITY))
