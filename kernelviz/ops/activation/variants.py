"""The torch functions of the activations, and the variants of one activation in ladder order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def relu(x_N: Tensor) -> Tensor:
    """max(x, 0); NaN stays NaN."""
    return x_N.relu()


def sigmoid(x_N: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return x_N.sigmoid()


def silu(x_N: Tensor) -> Tensor:
    """x / (1 + exp(-x))."""
    from torch.nn import functional

    return functional.silu(x_N)


def gelu(x_N: Tensor) -> Tensor:
    """x times the normal distribution at x, by erf: torch's default, not its approximation by tanh."""
    from torch.nn import functional

    return functional.gelu(x_N)


def ladder(function: Callable[[Tensor], Tensor], *, fast: str = "", triton_too: str = "") -> tuple[Variant, ...]:
    """The variants of one activation. `fast`: what its cheap function does; `triton_too`: an accurate one in Triton as well."""
    name = function.__name__

    def torch_eager(x_N: Tensor) -> Launch:
        return lambda: function(x_N)

    torch_eager.__doc__ = f"torch's own {name}, one kernel that allocates its result."

    def torch_compile(x_N: Tensor) -> Launch:
        """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(function, x_N)

    def triton_erf(x_N: Tensor) -> Launch:
        from kernelviz.ops.activation import triton as kernels

        return kernels.bind_activation(x_N, triton_too)

    triton_erf.__doc__ = "Triton with libdevice's erf: the arithmetic, not the memory, sets its time."

    def triton_block(x_N: Tensor) -> Launch:
        from kernelviz.ops.activation import triton as kernels

        return kernels.bind_activation(x_N, name)

    triton_block.__doc__ = f"Triton, 16 bytes a thread; {fast}." if triton_too else "Triton, 16 bytes a thread."

    def triton_known_size(x_N: Tensor) -> Launch:
        """Triton, up to 2^20 elements, or 2^25 of whole vectors, compiled for their number: no mask; others as triton_block."""
        from kernelviz.ops.activation import triton_known_size as kernels

        return kernels.bind_known_size(x_N, name)

    def cuda_scalar(x_N: Tensor) -> Launch:
        """CUDA C++, one element per thread: every load and store moves 4 bytes (2 in half precision)."""
        from kernelviz.ops.activation import cuda as kernels

        return kernels.bind_scalar(x_N, name)

    def cuda_vec16(x_N: Tensor) -> Launch:
        from kernelviz.ops.activation import cuda as kernels

        return kernels.bind_vec16(x_N, name)

    cuda_vec16.__doc__ = "CUDA C++, 16 bytes a thread" + (
        "; accurate functions, as torch writes them." if fast else "."
    )

    def cuda_fast_math(x_N: Tensor) -> Launch:
        from kernelviz.ops.activation import cuda as kernels

        return kernels.bind_fast(x_N, f"{name}_fast")

    cuda_fast_math.__doc__ = f"CUDA C++, 16 bytes a thread (one element up to 2^16) and fast math: {fast}."
    triton_variant = variant(backend="triton", needs=("triton", "cuda"))
    cuda_variant = variant(backend="cuda", needs=("nvrtc", "cuda"))
    return (
        variant(backend="torch")(torch_eager),
        variant(backend="inductor", needs=("inductor",), slow_compile=True)(torch_compile),
        *((triton_variant(triton_erf),) if triton_too else ()),
        triton_variant(triton_block),
        triton_variant(triton_known_size),
        cuda_variant(cuda_scalar),
        cuda_variant(cuda_vec16),
        *((cuda_variant(cuda_fast_math),) if fast else ()),
    )
