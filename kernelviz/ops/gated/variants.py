"""The torch functions of the gated activations, and the variants of one of them, forward and backward, in ladder order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def swiglu(a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """silu(a) b."""
    from torch.nn import functional

    return functional.silu(a_MN) * b_MN


def geglu(a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """gelu(a) b with torch's approximation by tanh, as Liger defines it (and the models that use it)."""
    from torch.nn import functional

    return functional.gelu(a_MN, approximate="tanh") * b_MN


def ladder(function: Callable[[Tensor, Tensor], Tensor], gate: str, stored_gate: str) -> tuple[Variant, ...]:
    """The variants of one gated activation, forward and backward. `gate`: its type in cuda.cu."""
    tanh = gate == "TanhGelu"

    def torch_eager_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.kernels.autograd import backward_of

        return backward_of(function, (a_MN, b_MN), (dy_MN,), (0, 1))

    @variant(backend="torch", backward=torch_eager_backward)
    def torch_eager(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """The gate and the product as two torch ops: the gate's values are written, rounded and read again."""
        return lambda: function(a_MN, b_MN)

    def torch_compile_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.kernels.inductor import compiled_backward

        return compiled_backward(function, (a_MN, b_MN), (dy_MN,), (0, 1))

    @variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=torch_compile_backward)
    def torch_compile(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """torch.compile: inductor fuses gate and product into one kernel, and both gradients into another."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(function, a_MN, b_MN)

    @variant(backend="library", needs=("liger", "triton", "cuda"))
    def liger(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """Liger-Kernel's forward kernel: one Triton program a row, which holds the whole row of both matrices."""
        from kernelviz.ops.gated import liger as kernels

        return kernels.bind_forward(a_MN, b_MN, stored_gate)

    @variant(
        backend="library",
        needs=("liger", "triton", "cuda"),
        directions=("backward",),
        mutates=("a_MN", "b_MN"),
    )
    def liger_in_place(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        """Liger-Kernel's backward kernel, one program per row: the gradients are written over a and b."""
        from kernelviz.ops.gated import liger as kernels

        return kernels.bind_backward(a_MN, b_MN, dy_MN, stored_gate)

    def triton_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import triton as kernels

        return kernels.bind_gated_backward(a_MN, b_MN, dy_MN, tanh=tanh)

    @variant(backend="triton", needs=("triton", "cuda"), backward=triton_backward)
    def triton_block(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """Triton, 16 bytes of each input per thread, independent of rows; the gate uses a logistic function in fp32."""
        from kernelviz.ops.gated import triton as kernels

        return kernels.bind_gated(a_MN, b_MN, tanh=tanh)

    def triton_known_size_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import triton_known_size as kernels

        return kernels.bind_known_size_backward(a_MN, b_MN, dy_MN, tanh=tanh)

    @variant(backend="triton", needs=("triton", "cuda"), backward=triton_known_size_backward)
    def triton_known_size(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """Triton, up to 2^20 elements compiled for their number: no mask, loads as wide as it allows; others as triton_block."""
        from kernelviz.ops.gated import triton_known_size as kernels

        return kernels.bind_known_size(a_MN, b_MN, tanh=tanh)

    def cuda_scalar_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_scalar_backward(a_MN, b_MN, dy_MN, gate)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_scalar_backward)
    def cuda_scalar(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """CUDA C++, one element per thread: every load and store moves 4 bytes (2 in half precision)."""
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_scalar(a_MN, b_MN, gate)

    def cuda_vec16_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_vec16_backward(a_MN, b_MN, dy_MN, gate)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_vec16_backward, techniques=("vec16",))
    def cuda_vec16(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """CUDA C++, 16 bytes of each input per thread; one power and one reciprocal per element."""
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_vec16(a_MN, b_MN, gate)

    return (
        torch_eager,
        torch_compile,
        liger,
        liger_in_place,
        triton_block,
        triton_known_size,
        cuda_scalar,
        cuda_vec16,
    )
