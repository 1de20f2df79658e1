"""The variants of `norm_activation` and of `batchnorm_relu` in the order of their ladders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant
from kernelviz.ops.norm_activation.reference import EPS, channel_scale, layer_normalised

if TYPE_CHECKING:
    from torch import Tensor

LONGEST_ROW = 2**31 - 1
"""The kernels count the elements of a row in 32 bits."""


def _layernorm_gelu(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.gelu(functional.layer_norm(x_MN, tuple(w_N.shape), w_N, b_N, EPS))


def _batchnorm_relu_composite(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    return ((x_MN.float() - mean_N) * channel_scale(variance_N, w_N) + b_N).relu().to(x_MN.dtype)


def layernorm_gelu_variants() -> tuple[Variant, ...]:
    """The variants of `norm_activation`."""

    @variant(backend="torch")
    def composite_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
        from torch.nn import functional

        return lambda: functional.gelu(layer_normalised(x_MN.float(), w_N.float(), b_N.float())).to(x_MN.dtype)

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """torch.nn.functional.layer_norm, then gelu: two kernels, so twice the traffic."""
        return lambda: _layernorm_gelu(x_MN, w_N, b_N)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """torch.compile of the two: inductor fuses them into one kernel."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_layernorm_gelu, x_MN, w_N, b_N)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_stepwise(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Triton, a kernel of the normalisation and one of gelu, both near the memory's bandwidth: what fusing alone saves."""
        from kernelviz.ops.norm_activation import stepwise

        return stepwise.bind_layernorm_then_gelu(x_MN, w_N, b_N, eps=EPS)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_erf(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Triton, one program per row, gelu with libdevice's erf: its arithmetic takes about as long as the memory traffic."""
        from kernelviz.ops.norm_activation import triton as kernels

        return kernels.bind_layernorm_gelu(x_MN, w_N, b_N, eps=EPS, exact=True)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Triton, the same with gelu as x⁺ − |x| 2^Q(|x|), Q a polynomial: a third of the instructions."""
        from kernelviz.ops.norm_activation import triton as kernels

        return kernels.bind_layernorm_gelu(x_MN, w_N, b_N, eps=EPS, exact=False)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, one block per row in registers as 16-byte vectors, gelu by polynomial; rows beyond 64 KiB are read twice."""
        from kernelviz.ops.norm_activation import cuda as kernels

        return kernels.bind_rows(x_MN, w_N, b_N, eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
    def cuda_cluster(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, the same with rows of more than 64 KiB in the registers of a cluster of blocks."""
        from kernelviz.ops.norm_activation import cuda as kernels

        return kernels.bind_cluster(x_MN, w_N, b_N, eps=EPS)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
    )
    def cuda_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, persistent clusters with fixed columns: weight and bias stay in registers, tensor cores sum the moments."""
        from kernelviz.ops.norm_activation import cuda as kernels

        return kernels.bind_columns(x_MN, w_N, b_N, eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_slab(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, many short rows as one piece through shared memory, few with lanes each; longer ones as `cuda_fused`."""
        from kernelviz.ops.norm_activation import cuda_known_length as kernels

        return kernels.bind_few_or_slab(x_MN, w_N, b_N, eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
    def cuda_slab_stages(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, slabs in flight by bulk copies; tiny rows in registers."""
        from kernelviz.ops.kernels.row_slabs import RING
        from kernelviz.ops.norm_activation import cuda_slab as kernels

        return kernels.bind_slab(x_MN, w_N, b_N, eps=EPS, ring=RING)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_split(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, several blocks share each of a few long rows, in two launches; otherwise as `cuda_fused`."""
        from kernelviz.ops.norm_activation import cuda_split as kernels

        return kernels.bind_split(x_MN, w_N, b_N, eps=EPS)

    return (
        composite_eager,
        torch_eager,
        torch_compile,
        triton_stepwise,
        triton_erf,
        triton_fused,
        cuda_fused,
        cuda_cluster,
        cuda_columns,
        cuda_slab,
        cuda_slab_stages,
        cuda_split,
    )


def batchnorm_relu_variants() -> tuple[Variant, ...]:
    """The variants of `batchnorm_relu`."""

    @variant(backend="torch")
    def composite_eager(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
        return lambda: _batchnorm_relu_composite(x_MN, mean_N, variance_N, w_N, b_N)

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """torch.nn.functional.batch_norm, then relu in place: two passes over the matrix."""
        from torch.nn import functional

        return lambda: functional.batch_norm(x_MN, mean_N, variance_N.abs(), w_N, b_N, eps=EPS).relu_()

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """torch.compile of the composite: inductor fuses it into one kernel, which computes the root for each element."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_batchnorm_relu_composite, x_MN, mean_N, variance_N, w_N, b_N)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_stepwise(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Triton, a kernel of the normalisation and one of relu, both near the memory's bandwidth: what fusing alone saves."""
        from kernelviz.ops.norm_activation import stepwise

        return stepwise.bind_batchnorm_then_relu(x_MN, mean_N, variance_N, w_N, b_N, eps=EPS)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_fused(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Triton, a program for a few rows of the same channels, with one factor and summand; few elements one a thread."""
        from kernelviz.ops.norm_activation import triton_few as kernels

        return kernels.bind_few_or_rows(x_MN, mean_N, variance_N, w_N, b_N, eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), largest={"n": LONGEST_ROW})
    def cuda_columns(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """CUDA C++, a thread keeps the factors of 16 bytes of channels in registers and loops over rows, four loads in flight."""
        from kernelviz.ops.norm_activation import cuda as kernels

        return kernels.bind_batchnorm(x_MN, mean_N, variance_N, w_N, b_N, eps=EPS)

    return composite_eager, torch_eager, torch_compile, triton_stepwise, triton_fused, cuda_columns
