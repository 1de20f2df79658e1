"""The ops `scaled_matmul` and `block_scaled_matmul`: products of 8-bit floats with scales."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Blocks, Preset, Sizes, TensorSpec
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.reference_fp8 import (
    BLOCK,
    FAST,
    PRECISE,
    block_bound,
    block_reference,
    bound,
    reference,
)
from kernelviz.ops.matmul.variants_fp8 import SCALED_VARIANTS
from kernelviz.ops.matmul.variants_fp8_blocks import BLOCK_SCALED_VARIANTS

_AXES = (
    Axis(name="m", caption="rows of A and C", default="2^9..2^13", cpu_default="2^6..2^9"),
    Axis(name="n", caption="columns of C, rows of B", default="m", cpu_default="m"),
    Axis(name="k", caption="columns of A and B", default="m", cpu_default="m"),
)
_MATRICES = (TensorSpec(name="a_MK", axes=("m", "k")), TensorSpec(name="b_NK", axes=("n", "k")))
_OUTPUTS = (TensorSpec(name="c_MN", axes=("m", "n"), dtype="bf16"),)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """A product and an addition for each of MNK terms; both factors and two scales read once, the product written in bf16.

    >>> cost({"m": 2, "n": 3, "k": 4}, 1)
    Cost(work_flop=48, read_bytes=28, written_bytes=12)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(work_flop=2 * m * n * k, read_bytes=(m * k + n * k) * itemsize_bytes + 8, written_bytes=2 * m * n)


def block_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """As of `scaled_matmul`, with a scale for each 128 of K of a row of A and for each 128×128 of B.

    >>> block_cost({"m": 2, "n": 3, "k": 200}, 1)
    Cost(work_flop=2400, read_bytes=1024, written_bytes=12)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    blocks_of_k = -(-k // BLOCK)
    scales = m * blocks_of_k + -(-n // BLOCK) * blocks_of_k
    return Cost(
        work_flop=2 * m * n * k, read_bytes=(m * k + n * k) * itemsize_bytes + 4 * scales, written_bytes=2 * m * n
    )


def _preset(name: str, caption: str, n: int, k: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "64,512,4096,8192", "n": str(n), "k": str(k)})


# Weights as the models' configurations give them: output features (n) by input features (k).
_PRESETS = (
    _preset("deepseek-v3", "DeepSeek-V3, first projection of attention", 2112, 7168),
    _preset("deepseek-v3-query", "DeepSeek-V3, query up projection", 24576, 1536),
    _preset("deepseek-v3-output", "DeepSeek-V3, attention output", 7168, 16384),
    _preset("deepseek-v3-expert-up", "DeepSeek-V3, gate and up of an expert", 4096, 7168),
    _preset("deepseek-v3-expert-down", "DeepSeek-V3, down projection of an expert", 7168, 2048),
    _preset("llama-3-8b", "Llama 3 8B, gate or up projection", 14336, 4096),
    _preset("llama-3-70b", "Llama 3 70B, gate or up projection", 28672, 8192),
)
_ACCUMULATED = "2⁻¹³ (1.5 √L (|c| + √Σa²b²) + L/64 |c| + L/2 c² / Σ|a||b|)"

FP8_OPS = (
    Op(
        name="scaled_matmul",
        family="matrix product",
        summary="Product of two matrices of 8-bit floats (e4m3), each with one scale",
        formula="C = s_A · s_B · A · Bᵀ",
        axes=_AXES,
        dtypes=("fp8",),
        computes={"fp8": (FAST, PRECISE)},
        inputs=(
            *_MATRICES,
            TensorSpec(name="a_scale", axes=(1,), dtype="fp32", scales=True),
            TensorSpec(name="b_scale", axes=(1,), dtype="fp32", scales=True),
        ),
        outputs=_OUTPUTS,
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            f"|error| ≤ 1.01 · 2⁻⁸ |c| + max(√K, min(K, 8)) 2⁻²⁴ Σ|a||b| + "
            f"{_ACCUMULATED}: a tensor core adds up L terms with 13 fraction bits, "
            f"all K with {FAST}, 128 with {PRECISE}"
        ),
        baseline="torch_eager",
        best=best.fp8,
        first=("torch_eager", "triton_grouped", "cuda_wgmma", "cuda_wgmma_two_level"),
        variants=SCALED_VARIANTS,
        presets=_PRESETS,
        slab="m",
    ),
    Op(
        name="block_scaled_matmul",
        family="matrix product",
        summary="Product of two matrices of 8-bit floats (e4m3), with a scale for each 1×128 of A and each 128×128 of B",
        formula="C = (s_A ∘ A) · (s_B ∘ B)ᵀ",
        axes=_AXES,
        dtypes=("fp8",),
        inputs=(
            *_MATRICES,
            TensorSpec(name="a_scale", axes=(Blocks("k", BLOCK), "m"), dtype="fp32", scales=True),
            TensorSpec(name="b_scale", axes=(Blocks("n", BLOCK), Blocks("k", BLOCK)), dtype="fp32", scales=True),
        ),
        outputs=_OUTPUTS,
        cost=block_cost,
        reference=block_reference,
        bound=block_bound,
        rule=(
            f"|error| ≤ 1.01 · 2⁻⁸ |c| + max(√K, min(K, 8)) 2⁻²⁴ Σ|a||b| + "
            f"{_ACCUMULATED} with L = 128 and a, b times their scales: "
            "a tensor core adds up 128 terms with 13 fraction bits, the rest is fp32"
        ),
        baseline="torch_eager",
        best=best.fp8,
        first=("torch_eager", "torch_scaled_mm", "triton_grouped", "cuda_wgmma"),
        variants=BLOCK_SCALED_VARIANTS,
        presets=_PRESETS,
    ),
)
