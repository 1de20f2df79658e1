"""The variants of a linear layer with an activation, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernelviz.ops.catalog.variant import Launch, Variant, variant
from kernelviz.ops.matmul.linear_backward_variants import backward_of_ladder

if TYPE_CHECKING:
    from torch import Tensor

Name = Literal["relu", "gelu", "silu"]


def relu(z_MN: Tensor) -> Tensor:
    """max(z, 0); NaN stays NaN."""
    return z_MN.relu()


def gelu(z_MN: Tensor) -> Tensor:
    """z times the normal distribution at z, by erf."""
    from torch.nn import functional

    return functional.gelu(z_MN)


def silu(z_MN: Tensor) -> Tensor:
    """z / (1 + exp(-z))."""
    from torch.nn import functional

    return functional.silu(z_MN)


def _linear_relu(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.linear(x_MK, w_NK, b_N).relu()


def _linear_gelu(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.gelu(functional.linear(x_MK, w_NK, b_N))


def _linear_silu(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.silu(functional.linear(x_MK, w_NK, b_N))


LAYERS = {"relu": _linear_relu, "gelu": _linear_gelu, "silu": _linear_silu}


def ladder(name: Name) -> tuple[Variant, ...]:
    """The variants for one activation."""
    layer = LAYERS[name]
    eager_backward, compiled_backward, triton_backward, cuda_backward = backward_of_ladder(name, layer)

    @variant(backend="torch", backward=eager_backward)
    def torch_eager(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, *, compute: str | None = None) -> Launch:
        """As a model computes it: functional.linear, where cuBLAS adds the bias, then the function in a kernel of its own."""
        from kernelviz.ops.kernels.torch_precision import in_precision

        return in_precision(lambda: layer(x_MK, w_NK, b_N), x_MK, compute)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=compiled_backward)
    def torch_compile(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, *, compute: str | None = None) -> Launch:
        """torch.compile of the layer: inductor leaves the product to cuBLAS and fuses bias and function into one kernel."""
        from kernelviz.ops.kernels.inductor import compiled
        from kernelviz.ops.kernels.torch_precision import in_precision, precision

        # torch.compile compiles again where a setting has changed.
        with precision(x_MK, compute):
            run = compiled(layer, x_MK, w_NK, b_N)
        return in_precision(run, x_MK, compute)

    @variant(
        backend="triton",
        needs=("triton", "cuda"),
        techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
        backward=triton_backward,
    )
    def triton_fused(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, *, compute: str | None = None) -> Launch:
        """Triton: bias and function are applied to the sums in registers, so z is never in memory."""
        from kernelviz.ops.matmul import triton_linear as kernels

        return kernels.bind_linear(x_MK, w_NK, b_N, function=name, compute=compute)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90a"),
        dtypes=("bf16", "fp16"),
        techniques=("tma", "wgmma", "warp_specialised", "multicast"),
        backward=cuda_backward,
    )
    def cuda_wgmma_fused(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++: the kernel of cuda_wgmma_by_size of matmul, with bias and function before TMA stores the result."""
        from kernelviz.ops.kernels.limits import limits
        from kernelviz.ops.matmul import wgmma, wgmma_choice

        options = wgmma_choice.choose(x_MK.shape[0], w_NK.shape[0], x_MK.shape[1], limits(x_MK.device)[0])
        return wgmma.bind_linear(x_MK, w_NK, b_N, options, name)

    return torch_eager, torch_compile, triton_fused, cuda_wgmma_fused


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("fp32",), computes=("ieee",), only_when_named=True)
def cuda_published(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Launch:
    """Published as fused GEMM and ReLU (source 5), with a bias added. Slow: nothing is reused. NaN gives 0; wᵀ is not timed."""
    from kernelviz.ops.matmul import published as kernels

    return kernels.bind_published_linear(x_MK, w_NK, b_N)
