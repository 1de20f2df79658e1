"""Liger Kernel's normalisations, called below its autograd functions: exactly the kernels, and what its forward pass saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_backward, fused_add_rms_norm_forward
from liger_kernel.ops.layer_norm import layer_norm_backward, layer_norm_forward
from liger_kernel.ops.rms_norm import rms_norm_backward, rms_norm_forward

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.liger_rows import require_rows

if TYPE_CHECKING:
    import torch

CASTING = "llama"
"""Liger's default: the normalised row is stored in the format of x before it is multiplied by the weight."""


def bind_rmsnorm(x_MN: torch.Tensor, w_N: torch.Tensor, *, eps: float) -> Launch:
    """The op. Raises BadField for tensors that are not contiguous, and for rows of more than 65536 elements."""
    require_rows(x_MN=x_MN, w_N=w_N)

    def launch() -> torch.Tensor:
        y_MN: torch.Tensor = rms_norm_forward(x_MN, w_N, eps, 0.0, CASTING, None)[0]
        return y_MN

    return launch


def bind_rmsnorm_backward(x_MN: torch.Tensor, w_N: torch.Tensor, dy_MN: torch.Tensor, *, eps: float) -> Staged:
    """Its backward pass, not in place; raises as above."""
    require_rows(x_MN=x_MN, w_N=w_N, dy_MN=dy_MN)
    _, _, scale_M, block, warps, mode = rms_norm_forward(x_MN, w_N, eps, 0.0, CASTING, None)

    def forward() -> None:
        scale_M.copy_(rms_norm_forward(x_MN, w_N, eps, 0.0, CASTING, None)[2])

    def call() -> tuple[torch.Tensor, ...]:
        dx_MN, dw_N = rms_norm_backward(dy_MN, x_MN, w_N, scale_M, 0.0, mode, block, warps, False, None)
        return dx_MN, dw_N

    return Staged(forward, call)


def bind_layernorm(x_MN: torch.Tensor, w_N: torch.Tensor, b_N: torch.Tensor, *, eps: float) -> Launch:
    """The op. Raises BadField for tensors that are not contiguous, and for rows of more than 65536 elements."""
    require_rows(x_MN=x_MN, w_N=w_N, b_N=b_N)

    def launch() -> torch.Tensor:
        y_MN: torch.Tensor = layer_norm_forward(x_MN, w_N, b_N, eps)[0]
        return y_MN

    return launch


def bind_layernorm_backward(
    x_MN: torch.Tensor, w_N: torch.Tensor, b_N: torch.Tensor, dy_MN: torch.Tensor, *, eps: float
) -> Staged:
    """Its backward pass; raises as above."""
    require_rows(x_MN=x_MN, w_N=w_N, b_N=b_N, dy_MN=dy_MN)
    _, _, mean_M, scale_M, _, _ = layer_norm_forward(x_MN, w_N, b_N, eps)

    def forward() -> None:
        _, _, mean, scale, _, _ = layer_norm_forward(x_MN, w_N, b_N, eps)
        mean_M.copy_(mean)
        scale_M.copy_(scale)

    def call() -> tuple[torch.Tensor, ...]:
        dx_MN, dw_N, db_N = layer_norm_backward(dy_MN, x_MN, w_N, b_N, mean_M, scale_M)
        return dx_MN, dw_N, db_N

    return Staged(forward, call)


def bind_add_rmsnorm(x_MN: torch.Tensor, r_MN: torch.Tensor, w_N: torch.Tensor, *, eps: float) -> Launch:
    """The op, outputs in the order s, y; errors as above."""
    require_rows(x_MN=x_MN, r_MN=r_MN, w_N=w_N)

    def launch() -> tuple[torch.Tensor, ...]:
        y_MN, s_MN, *_ = fused_add_rms_norm_forward(x_MN, r_MN, w_N, eps, 0.0, CASTING)
        return s_MN, y_MN

    return launch


def bind_add_rmsnorm_backward(
    x_MN: torch.Tensor, r_MN: torch.Tensor, w_N: torch.Tensor, ds_MN: torch.Tensor, dy_MN: torch.Tensor, *, eps: float
) -> Staged:
    """Its backward pass, not in place; raises as above."""
    require_rows(x_MN=x_MN, r_MN=r_MN, w_N=w_N, ds_MN=ds_MN, dy_MN=dy_MN)
    _, s_MN, scale_M, block, warps, stages, mode = fused_add_rms_norm_forward(x_MN, r_MN, w_N, eps, 0.0, CASTING)

    def forward() -> None:
        _, s, scale, *_ = fused_add_rms_norm_forward(x_MN, r_MN, w_N, eps, 0.0, CASTING)
        s_MN.copy_(s)
        scale_M.copy_(scale)

    def call() -> tuple[torch.Tensor, ...]:
        dx_MN, _, dw_N = fused_add_rms_norm_backward(
            dy_MN, ds_MN, s_MN, w_N, scale_M, 0.0, mode, block, warps, stages, False
        )
        return dx_MN, dw_N

    return Staged(forward, call)
