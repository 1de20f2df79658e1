"""How the variants of a linear layer with an activation bind its backward pass: dz = dy f'(z), dx = dz w, dw = dzᵀ x, db = Σ dz.

Each reads the z that a forward pass before the timing has saved, as autograd does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, Staged

if TYPE_CHECKING:
    from torch import Tensor

Layer = Callable[["Tensor", "Tensor", "Tensor"], "Tensor"]


def backward_of_ladder(name: str, layer: Layer) -> tuple[Callable[..., Launch], ...]:
    """The bind functions of torch_eager, torch_compile, triton_fused and cuda_wgmma_fused, in this order."""

    def eager(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, dy_MN: Tensor, *, compute: str | None = None) -> Launch:
        """Autograd: the derivative of the function, two products of cuBLAS, and a sum over the rows."""
        from kernelviz.ops.kernels.autograd import backward_of
        from kernelviz.ops.kernels.torch_precision import precision

        with precision(x_MK, compute):
            passes = backward_of(layer, (x_MK, w_NK, b_N), (dy_MN,), (0, 1, 2))
        return _in_precision(passes, x_MK, compute)

    def compiled(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, dy_MN: Tensor, *, compute: str | None = None) -> Launch:
        """As autograd, with the derivative and the sum over the rows in kernels of inductor."""
        from kernelviz.ops.kernels.inductor import compiled_backward
        from kernelviz.ops.kernels.torch_precision import precision

        with precision(x_MK, compute):
            passes = compiled_backward(layer, (x_MK, w_NK, b_N), (dy_MN,), (0, 1, 2))
        return _in_precision(passes, x_MK, compute)

    def triton(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, dy_MN: Tensor, *, compute: str | None = None) -> Launch:
        """dz and its sums over the rows in one pass, then two products of the kernel with strides."""
        from kernelviz.ops.kernels.layout import require_contiguous
        from kernelviz.ops.matmul import triton_linear_backward, triton_strided

        require_contiguous(x_MK=x_MK, w_NK=w_NK, b_N=b_N, dy_MN=dy_MN)
        z_MN, forward = _saved(x_MK, w_NK, b_N, compute)
        dz_MN, derivative = triton_linear_backward.bind_derivative(z_MN, dy_MN, function=name)
        dx = triton_strided.bind_strided(dz_MN, w_NK, compute=compute)
        dw = triton_strided.bind_strided(dz_MN.t(), x_MK, compute=compute)
        return Staged(forward, _three(derivative, dx, dw))

    def cuda(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, dy_MN: Tensor) -> Launch:
        """dz and its sums over the rows in one pass, then two products of wgmma kernels, one of which reads dz transposed."""
        from kernelviz.ops.kernels.layout import require_contiguous
        from kernelviz.ops.kernels.limits import limits
        from kernelviz.ops.matmul import linear_backward, wgmma, wgmma_choice, wgmma_layouts

        require_contiguous(x_MK=x_MK, w_NK=w_NK, b_N=b_N, dy_MN=dy_MN)
        z_MN, forward = _saved(x_MK, w_NK, b_N, None)
        dz_MN, derivative = linear_backward.bind_derivative(z_MN, dy_MN, function=name)
        (m, n), k = dz_MN.shape, x_MK.shape[1]
        dx = wgmma.bind(dz_MN, w_NK, wgmma_choice.choose(m, k, n, limits(dz_MN.device)[0]))
        dw = wgmma_layouts.bind_tn(dz_MN, x_MK, (0, 0, 0, 0), names=("n", "k"))
        return Staged(forward, _three(derivative, dx, dw))

    return eager, compiled, triton, cuda


def _saved(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, compute: str | None) -> tuple[Tensor, Callable[[], object]]:
    """Memory for z, and the forward pass that writes it there."""
    import torch

    from kernelviz.ops.kernels.torch_precision import precision

    z_MN = torch.empty((x_MK.shape[0], w_NK.shape[0]), dtype=x_MK.dtype, device=x_MK.device)

    def forward() -> None:
        with precision(x_MK, compute if x_MK.is_cuda else None):  # Triton's interpreter has tensors of the processor
            torch.addmm(b_N, x_MK, w_NK.t(), out=z_MN)

    return z_MN, forward


def _in_precision(passes: Staged, x_MK: Tensor, compute: str | None) -> Staged:
    """Both passes with the setting of torch. torch.compile compiles again where a setting has changed."""
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    def forward() -> None:
        with precision(x_MK, compute):
            passes.forward()

    return Staged(forward, in_precision(passes.call, x_MK, compute))


def _three(derivative: Launch, dx: Launch, dw: Launch) -> Launch:
    """The three steps one after the other. `derivative` returns db."""
    import torch

    def launch() -> Tensors:
        results = derivative(), dx(), dw()
        db_N, dx_MK, dw_NK = (r for r in results if isinstance(r, torch.Tensor))
        return dx_MK, dw_NK, db_N

    return launch
