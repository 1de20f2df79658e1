"""Quantisation of rows to 8 bits, each with a scale of its own: read wide, written narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Bound, Launch, Need, Op, Sizes, Tensors, TensorSpec, Variant, variant
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF
from kernelviz.ops.quantize.reference import dequantised, quantised, quantised_bound, scale_of

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (magnitude, maximum, product, rounding); read once; a byte each and 4 bytes a row written.

    >>> cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=8192, read_bytes=4096, written_bytes=2056)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * n + 4 * m)


def shown(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The numbers that the 8-bit ones stand for, and the scales."""
    q_MN, scale_M = outputs
    return dequantised(q_MN, scale_M), scale_M


def _bound_of(target: str) -> Bound:
    def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
        x_MN, scale_M = outputs
        return quantised_bound(x_MN, scale_M, target), scale_M * (4 * FP32_ROUNDOFF)

    bound.__doc__ = quantised_bound.__doc__
    return bound


def _variants(target: str) -> tuple[Variant, ...]:
    def function(x_MN: Tensor) -> tuple[Tensor, Tensor]:
        return quantised(x_MN, target)

    # On sm_80 Triton has no conversion to e4m3; CUDA C++ has one in software.
    triton_needs: tuple[Need, ...] = ("triton", "cuda", "sm_90") if target == "fp8" else ("triton", "cuda")

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor) -> Launch:
        """Torch ops in float32: magnitude, maximum, quotient, rounding and conversion each pass over the matrix."""
        return lambda: function(x_MN)

    @variant(backend="inductor", needs=("inductor",), late=True)
    def torch_compile(x_MN: Tensor) -> Launch:
        """torch.compile of these ops: inductor makes one kernel of them."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(function, x_MN)

    @variant(backend="triton", needs=triton_needs, sources=("triton.py",))
    def triton_row(x_MN: Tensor) -> Launch:
        """Triton, one program a row (or several short ones), kept in registers up to 64 KiB; longer ones are read twice."""
        from kernelviz.ops.quantize import triton as kernels

        return kernels.bind_quantize(x_MN, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
    def cuda_registers(x_MN: Tensor) -> Launch:
        """CUDA C++, a block a row of up to 64 KiB in registers, 8 or 16 bytes a store; longer ones are read twice."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_rows(x_MN, None, target)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda.cu", "cuda.py"))
    def cuda_cluster(x_MN: Tensor) -> Launch:
        """CUDA C++, a row of more than 64 KiB in the registers of a cluster of blocks: read once, whatever its length."""
        from kernelviz.ops.quantize import cuda as kernels

        return kernels.bind_cluster(x_MN, None, target)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
        sources=("cuda_columns.cu", "cuda_columns.py", "cuda.cu", "cuda.py"),
    )
    def cuda_columns(x_MN: Tensor) -> Launch:
        """CUDA C++, blocks and clusters that stay while rows stream through shared memory: some load while one is written."""
        from kernelviz.ops.quantize import cuda_columns as kernels

        return kernels.bind_columns(x_MN, None, target)

    return torch_eager, torch_compile, triton_row, cuda_registers, cuda_cluster, cuda_columns


def _op(target: str, caption: str, formula: str, step: str) -> Op:
    return Op(
        name=f"quantize_{target}",
        family="quantisation",
        summary=f"Rows to {caption}, each with its own scale",
        formula=formula,
        axes=AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(
            TensorSpec(name="q_MN", axes=("m", "n"), dtype=target),
            TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
        ),
        cost=cost,
        reference=lambda x_MN: (x_MN, scale_of(x_MN, target)),
        bound=_bound_of(target),
        rule=f"|q · scale − x| ≤ half a step of the format ({step}) and 8 |x| 2⁻²⁴ for fp32; scale: 4 · 2⁻²⁴ of itself",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_row", "cuda_registers"),
        variants=_variants(target),
        presets=presets("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "deepseek-v3"),
        slab="m",
        shown=shown,
        shows=(
            TensorSpec(name="dequantised_MN", axes=("m", "n"), dtype="fp32"),
            TensorSpec(name="scale_M", axes=("m",), dtype="fp32"),
        ),
    )


QUANTIZE_FP8 = _op(
    "fp8",
    "8-bit floating point, e4m3",
    "scale = max|x| / 448, q = fp8(x / scale)",
    "2^(e − 4) · scale where |x| / scale is in 2^e … 2^(e + 1), 2⁻¹⁰ · scale below 2⁻⁶",
)
QUANTIZE_INT8 = _op("int8", "8-bit whole numbers", "scale = max|x| / 127, q = round(x / scale)", "scale / 2")
