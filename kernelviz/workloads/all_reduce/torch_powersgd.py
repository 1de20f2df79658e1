"""PowerSGD: a gradient matrix as the product of two narrow ones, after Vogels, Karimireddy and Jaggi, "PowerSGD: Practical
Low-Rank Gradient Compression for Distributed Optimization" (NeurIPS 2019), algorithms 1 and 2.

One step of subspace iteration on M = gradient + error: P = mean of M Q over the ranks, orthogonalised; Q = mean of Mᵀ P; what is
delivered is P Qᵀ. The difference stays as the error of the rank and is added to its next gradient (error feedback). Q begins the
next step (warm start). Instead of the matrix of n × m numbers, r (n + m) are sent.
"""

from collections.abc import Callable

import torch

Mean = Callable[[torch.Tensor], None]
"""Replaces a tensor by its mean over all ranks."""
_SMALLEST = 1e-8
"""Added to norms, as in the paper's code, so that a column of zeros is not divided by zero."""


class PowerSgd:
    """The compression of one matrix on one rank. `seed`: of the first Q, the same on all ranks."""

    def __init__(
        self, rows: int, columns: int, rank: int, *, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(columns, rank, generator=generator)
        self._q_MR = start.to(device, dtype)
        self.error_NM = torch.zeros(rows, columns, device=device, dtype=dtype)
        self.delivered_NM = torch.empty(rows, columns, device=device, dtype=dtype)
        self.sent_numbers = rank * (rows + columns)
        """So many numbers a rank gives to the collectives in a step."""

    def step(self, gradient_NM: torch.Tensor, mean: Mean) -> torch.Tensor:
        """Compress, exchange and decompress a gradient. Returns what is delivered in place of its mean, in memory that the next
        step overwrites."""
        matrix_NM = self.error_NM.add_(gradient_NM)
        p_NR = matrix_NM @ self._q_MR
        mean(p_NR)
        orthogonalise(p_NR)
        self._q_MR = matrix_NM.T @ p_NR
        mean(self._q_MR)
        torch.mm(p_NR, self._q_MR.T, out=self.delivered_NM)
        self.error_NM = matrix_NM.sub_(self.delivered_NM)
        return self.delivered_NM


def orthogonalise(columns_NR: torch.Tensor) -> None:
    """Make the columns orthonormal in place, by the modified Gram-Schmidt process (the paper's choice for few columns)."""
    for i in range(columns_NR.shape[1]):
        column = columns_NR[:, i : i + 1]
        column /= torch.linalg.vector_norm(column) + _SMALLEST
        rest = columns_NR[:, i + 1 :]
        rest -= column @ (column.T @ rest)


def low_rank_error(matrix: torch.Tensor, rank: int) -> float:
    """The least relative error (Frobenius norm) of any matrix of that rank: by the singular values that are left out (Eckart and
    Young 1936)."""
    values = torch.linalg.svdvals(matrix.double())
    return float(torch.linalg.vector_norm(values[rank:]) / torch.linalg.vector_norm(values))
