"""The variants of the quantising ops in the order of their ladders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Need, Variant, variant
from kernelviz.ops.quantize.reference import EPS, SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor


def quantised(x_MN: Tensor, target: str) -> tuple[Tensor, Tensor]:
    """Rows quantised to fp8 or int8 by torch ops in float32, and their scales."""
    import torch

    wide_MN = x_MN.float()
    scale_M = wide_MN.abs().amax(-1).clamp(min=SMALLEST) / largest(target)
    value_MN = wide_MN / scale_M[:, None]
    if target == "int8":
        return value_MN.round().to(torch.int8), scale_M
    # Clamped, because in fp32 the largest element divided by the scale may be slightly more than 448, which would become NaN.
    return value_MN.clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale_M


def _rmsnorm_composite(x_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    wide_MN = x_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return quantised(wide_MN * scale_M1 * w_N.float(), "fp8")


def rows_variants(target: str) -> tuple[Variant, ...]:
    """The variants of `quantize_fp8` or `quantize_int8`."""

    # On sm_80 Triton has no conversion to e4m3; CUDA C++ has one in software.
    triton_needs: tuple[Need, ...] = ("triton", "cuda", "sm_90") if target == "fp8" else ("triton", "cuda")

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor) -> Launch:
        """Torch ops in float32: magnitude, maximum, quotient, rounding and conversion are each a pass over the matrix."""
        return lambda: quantised(x_MN, target)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor) -> Launch:
        """torch.compile of these ops: inductor fuses them into one kernel."""
        from kernelviz.ops.kernels.inductor import compiled

        def quantise(x_MN: Tensor) -> tuple[Tensor, Tensor]:
            return quantised(x_MN, target)

        return compiled(quantise, x_MN)

    @variant(backend="triton", needs=triton_needs)
    def triton_row(x_MN: Tensor) -> Launch:
        """Triton, one program per row (or several short ones), kept in registers up to 64 KiB; longer rows are read twice."""
        from kernelviz.ops.quantize import triton as kernels

        return kernels.bind_quantize(x_MN, target)

    @variant(backend="triton", needs=triton_needs)
    def triton_known_length(x_MN: Tensor) -> Launch:
        """Triton, compiled for the number and length of rows of up to 1024: as many rows a program as are 1024 elements."""
        from kernelviz.ops.quantize import triton_known_length as kernels

        return kernels.bind_quantize(x_MN, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_registers(x_MN: Tensor) -> Launch:
        """CUDA C++, one block per row of up to 64 KiB in registers, 8 or 16 bytes per store; longer rows are read twice."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_rows(x_MN, None, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
    def cuda_cluster(x_MN: Tensor) -> Launch:
        """CUDA C++, a row of more than 64 KiB in the registers of a cluster of blocks, so that it is read only once."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_cluster(x_MN, None, target)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
    )
    def cuda_columns(x_MN: Tensor) -> Launch:
        """CUDA C++, persistent blocks and clusters: the next rows are prefetched into shared memory while one is stored."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_columns(x_MN, None, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
    def cuda_slab(x_MN: Tensor) -> Launch:
        """CUDA C++, few rows with lanes or a block each, many up to 4 KiB in registers or slabs; others as `cuda_registers`."""
        from kernelviz.ops.quantize import cuda_known_rows as kernels

        return kernels.bind_rows_or_slab(x_MN, None, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_split(x_MN: Tensor) -> Launch:
        """CUDA C++, several blocks for each of a few long rows, in two launches; other rows as `cuda_registers`."""
        from kernelviz.ops.quantize import cuda_split as kernels

        return kernels.bind_split(x_MN, None, target)

    in_cuda = (cuda_registers, cuda_cluster, cuda_columns, cuda_slab, cuda_split)
    return torch_eager, torch_compile, triton_row, triton_known_length, *in_cuda


def rmsnorm_variants() -> tuple[Variant, ...]:
    """The variants of `rmsnorm_quantize_fp8`."""

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
        """torch.nn.functional.rms_norm, then torch ops that quantise: the normalised rows are written and read again."""
        from torch.nn import functional

        shape = tuple(w_N.shape)
        return lambda: quantised(functional.rms_norm(x_MN, shape, w_N, EPS), "fp8")

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor, w_N: Tensor) -> Launch:
        """torch.compile of both, with the normalisation as single ops: inductor fuses them into one kernel."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_rmsnorm_composite, x_MN, w_N)

    @variant(backend="triton", needs=("triton", "cuda", "sm_90"))
    def triton_fused(x_MN: Tensor, w_N: Tensor) -> Launch:
        """Triton, one program per row (or several short ones): mean square and maximum from the same registers, stored as fp8."""
        from kernelviz.ops.quantize import triton as kernels

        return kernels.bind_rmsnorm_quantize(x_MN, w_N, eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_fused(x_MN: Tensor, w_N: Tensor) -> Launch:
        """CUDA C++, mean square and maximum in one reduction, because max|x w| does not need the scale of the norm."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_rows(x_MN, w_N, "fp8", eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
    def cuda_cluster(x_MN: Tensor, w_N: Tensor) -> Launch:
        """CUDA C++, the same with rows of more than 64 KiB in the registers of a cluster of blocks."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_cluster(x_MN, w_N, "fp8", eps=EPS)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
    )
    def cuda_columns(x_MN: Tensor, w_N: Tensor) -> Launch:
        """CUDA C++, persistent clusters with fixed columns: the weight stays in registers, rows stream through shared memory."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_columns(x_MN, w_N, "fp8", eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
    def cuda_slab(x_MN: Tensor, w_N: Tensor) -> Launch:
        """CUDA C++, few rows with lanes or a block each, many up to 4 KiB in registers or slabs; longer ones as `cuda_fused`."""
        from kernelviz.ops.quantize import cuda_known_rows as kernels

        return kernels.bind_rows_or_slab(x_MN, w_N, "fp8", eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_split(x_MN: Tensor, w_N: Tensor) -> Launch:
        """CUDA C++, several blocks for each of a few long rows, in two launches; other rows as `cuda_fused`."""
        from kernelviz.ops.quantize import cuda_split as kernels

        return kernels.bind_split(x_MN, w_N, "fp8", eps=EPS)

    return torch_eager, torch_compile, triton_fused, cuda_fused, cuda_cluster, cuda_columns, cuda_slab, cuda_split
