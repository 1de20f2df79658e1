"""Ways to exchange a gradient between ranks, the synthetic gradient, and what proves that the exchange is right."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernelviz.workloads.all_reduce.torch_powersgd import PowerSgd

Sum = Callable[[torch.Tensor], None]
"""Replaces a tensor by its sum over all ranks."""
COMPONENTS = 16
NOISE = 0.1
SEED = 20261127


def matrix_shape(elements: int) -> tuple[int, int] | None:
    """Rows and columns of a gradient of so many elements as a matrix that is nearly square; None unless it is a power of two.

    >>> matrix_shape(256), matrix_shape(512), matrix_shape(768)
    ((16, 16), (32, 16), None)
    """
    if elements < 1 or elements & (elements - 1):
        return None
    rows = 1 << (elements.bit_length() // 2)
    return rows, elements // rows


def gradient(elements: int, *, rank: int, seed: int, device: torch.device) -> torch.Tensor:
    """A synthetic gradient of one rank, fp32: 16 components whose k-th has the strength 1 / k, which all ranks share, and noise
    of its own of a tenth of their norm. Gradients of networks have such a falling spectrum (Vogels et al. 2019); of pure
    noise, a low rank keeps next to nothing."""
    rows, columns = matrix_shape(elements) or (elements, 1)
    count = min(COMPONENTS, rows, columns)
    shared, own = (torch.Generator(device).manual_seed(s) for s in (seed, seed + 1 + rank))
    left = torch.randn(rows, count, generator=shared, device=device) / rows**0.5
    right = torch.randn(columns, count, generator=shared, device=device) / columns**0.5
    strengths = 1 / torch.arange(1, count + 1, device=device, dtype=torch.float32)
    signal: torch.Tensor = (left * strengths) @ right.T
    noise = torch.randn(rows, columns, generator=own, device=device)
    noise *= NOISE * torch.linalg.vector_norm(signal) / torch.linalg.vector_norm(noise)
    signal += noise
    return signal.flatten()


@dataclass(slots=True)
class Fp32:
    """The sum of fp32 numbers in place, as nccl-tests measures it."""

    gradient: torch.Tensor
    ranks: int
    buffer: torch.Tensor

    @property
    def sent_bytes(self) -> int:
        return self.buffer.nbytes

    def reset(self) -> None:
        """Put the gradient back into the buffer, outside of a timed region: sums of sums would overflow."""
        self.buffer.copy_(self.gradient)

    def call(self, add: Sum) -> None:
        add(self.buffer)

    def delivered(self, add: Sum) -> torch.Tensor:
        """The mean gradient that this exchange delivers."""
        self.reset()
        self.call(add)
        return self.buffer / self.ranks


@dataclass(slots=True)
class Bf16:
    """Round to bf16, sum in bf16, and convert back to fp32."""

    gradient: torch.Tensor
    ranks: int
    low: torch.Tensor
    buffer: torch.Tensor

    @property
    def sent_bytes(self) -> int:
        return self.low.nbytes

    def reset(self) -> None:
        """Nothing is to be put back."""

    def call(self, add: Sum) -> None:
        self.low.copy_(self.gradient)
        add(self.low)
        self.buffer.copy_(self.low)

    def delivered(self, add: Sum) -> torch.Tensor:
        """The mean gradient that this exchange delivers."""
        self.call(add)
        return self.buffer / self.ranks


class LowRank:
    """Compress by PowerSGD, exchange both factors, and decompress."""

    def __init__(self, gradient: torch.Tensor, ranks: int, rank: int) -> None:
        rows, columns = matrix_shape(gradient.numel()) or (gradient.numel(), 1)
        self._gradient_NM, self._ranks = gradient.view(rows, columns), ranks
        self._state = PowerSgd(rows, columns, rank, seed=SEED, device=gradient.device, dtype=gradient.dtype)

    @property
    def sent_bytes(self) -> int:
        return self._state.sent_numbers * self._gradient_NM.element_size()

    def reset(self) -> None:
        """The errors of earlier calls stay, as in training."""

    def call(self, add: Sum) -> torch.Tensor:
        def mean(tensor: torch.Tensor) -> None:
            add(tensor)
            tensor /= self._ranks

        return self._state.step(self._gradient_NM, mean)

    def delivered(self, add: Sum) -> torch.Tensor:
        """What this exchange delivers in place of the mean gradient, with the error of the calls before it added."""
        return self.call(add).flatten()


Exchange = Fp32 | Bf16 | LowRank
RANKS_OF_VARIANTS = {"powersgd_r1": 1, "powersgd_r2": 2, "powersgd_r4": 4}
EXACT_BOUNDS = {"fp32": 1e-6, "bf16": 1e-2}
"""The largest relative error of a right exchange: sums of fp32 round at 6e-8; bf16 rounds inputs and sum at 2^-9 each."""
LOW_RANK_BOUND = 1e-2
"""By how much, relative to the gradient, PowerSGD of several ranks in fp32 may differ from the same steps in float64 on the mean
gradient. Both are equal but for rounding, because all steps are linear in the gradient until the mean is taken."""


def exchange_of(variant: str, gradient: torch.Tensor, ranks: int) -> Exchange:
    """The exchange that a variant names, ready to be called."""
    if variant == "fp32":
        return Fp32(gradient, ranks, gradient.clone())
    if variant == "bf16":
        return Bf16(gradient, ranks, torch.empty_like(gradient, dtype=torch.bfloat16), torch.empty_like(gradient))
    return LowRank(gradient, ranks, RANKS_OF_VARIANTS[variant])


def relative_error(delivered: torch.Tensor, reference: torch.Tensor) -> float:
    """The norm of the difference over the norm of the reference, in the reference's format; infinite if it is not finite."""
    error = float(
        torch.linalg.vector_norm(delivered.to(reference.dtype) - reference) / torch.linalg.vector_norm(reference)
    )
    return error if error == error else float("inf")


def share_of_bound(variant: str, delivered: torch.Tensor, mean: torch.Tensor) -> float:
    """The error of the first exchange as a share of what a right one may have. `mean`: the exact mean in float64. PowerSGD is
    compared with the same algorithm on that mean."""
    rank = RANKS_OF_VARIANTS.get(variant)
    if rank is None:
        return relative_error(delivered, mean) / EXACT_BOUNDS[variant]
    alone = LowRank(mean, 1, rank).delivered(lambda tensor: None)
    difference = torch.linalg.vector_norm(delivered.double() - alone) / torch.linalg.vector_norm(mean)
    return float(difference) / LOW_RANK_BOUND if bool(torch.isfinite(difference)) else float("inf")
