"""The ops of matrix products. `matmul`: its cost, its presets and its variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.layouts import layout_ops
from kernelviz.ops.matmul.linear_op import LINEAR_OPS
from kernelviz.ops.matmul.reference import RULE, backward_bound, backward_reference, bound, reference
from kernelviz.ops.matmul.transposed import TRANSPOSE_MATMUL
from kernelviz.ops.matmul.variants import torch_eager, triton_grouped
from kernelviz.ops.matmul.variants_backward import cuda_wgmma_layouts, torch_compile
from kernelviz.ops.matmul.variants_cutlass import CUTLASS_VARIANTS
from kernelviz.ops.matmul.variants_fp32 import FP32_VARIANTS
from kernelviz.ops.matmul.variants_gluon import GLUON_VARIANTS
from kernelviz.ops.matmul.variants_mma import MMA_VARIANTS
from kernelviz.ops.matmul.variants_published import PUBLISHED_VARIANTS
from kernelviz.ops.matmul.variants_skinny import SKINNY_VARIANTS
from kernelviz.ops.matmul.variants_tf32 import cuda_wgmma_tf32
from kernelviz.ops.matmul.variants_triton import TRITON_VARIANTS
from kernelviz.ops.matmul.variants_wgmma import WGMMA_VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """A product and an addition for each of MNK terms; both factors read once, the product written once.

    >>> cost({"m": 2, "n": 3, "k": 4}, 2)
    Cost(work_flop=48, read_bytes=40, written_bytes=12)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(
        work_flop=2 * m * n * k, read_bytes=(m * k + k * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes
    )


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Two products of 2MNK operations; both factors and the gradient read once, two gradients written once.

    >>> backward_cost({"m": 2, "n": 3, "k": 4}, 2)
    Cost(work_flop=96, read_bytes=52, written_bytes=40)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    factors = m * k + k * n
    return Cost(
        work_flop=4 * m * n * k,
        read_bytes=(factors + m * n) * itemsize_bytes,
        written_bytes=factors * itemsize_bytes,
    )


_INPUTS = (TensorSpec(name="a_MK", axes=("m", "k")), TensorSpec(name="b_KN", axes=("k", "n")))


def _preset(name: str, caption: str, n: int, k: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,16,64,512,4096,8192", "n": str(n), "k": str(k)})


# Weights as the models' configurations give them: output features (n) by input features (k).
_PRESETS = (
    Preset(name="squares", caption="squares from 512 to 16,384", sizes={"m": "2^9..2^14", "n": "m", "k": "m"}),
    Preset(name="tall", caption="a tall first factor", sizes={"m": "16384", "n": "4096", "k": "4096"}),
    _preset("llama-3-8b", "Llama 3 8B, gate or up projection", 14336, 4096),
    _preset("llama-3-8b-qkv", "Llama 3 8B, query, key and value in one", 6144, 4096),
    _preset("llama-3-8b-down", "Llama 3 8B, down projection", 4096, 14336),
    _preset("llama-3-70b", "Llama 3 70B, gate or up projection", 28672, 8192),
    _preset("llama-3-70b-down", "Llama 3 70B, down projection", 8192, 28672),
    _preset("qwen2.5-7b", "Qwen2.5 7B, gate or up projection", 18944, 3584),
    _preset("deepseek-v3", "DeepSeek-V3, first projection of attention", 2112, 7168),
    _preset("deepseek-v3-query", "DeepSeek-V3, query up projection", 24576, 1536),
    _preset("deepseek-v3-output", "DeepSeek-V3, attention output", 7168, 16384),
    _preset("deepseek-v3-expert-up", "DeepSeek-V3, gate and up of an expert", 4096, 7168),
    _preset("deepseek-v3-expert-down", "DeepSeek-V3, down projection of an expert", 7168, 2048),
    _preset("gpt-2", "GPT-2, query, key and value in one", 2304, 768),
    _preset("bert-base", "BERT-base, first feed-forward layer", 3072, 768),
)

OPS = (
    Op(
        name="matmul",
        family="matrix product",
        summary="Product of two matrices",
        formula="C = A · B",
        axes=(
            Axis(name="m", caption="rows of A and C", default="2^9..2^13", cpu_default="2^6..2^9"),
            Axis(name="n", caption="columns of B and C", default="m", cpu_default="m"),
            Axis(name="k", caption="columns of A, rows of B", default="m", cpu_default="m"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        computes={"fp32": ("ieee", "tf32")},
        inputs=_INPUTS,
        outputs=(TensorSpec(name="c_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=RULE,
        baseline="torch_eager",
        best=best.matmul,
        first=("torch_eager", "triton_grouped", "cuda_naive", "cuda_tiled"),
        variants=(
            torch_eager,
            triton_grouped,
            *TRITON_VARIANTS,
            *FP32_VARIANTS,
            *MMA_VARIANTS,
            *WGMMA_VARIANTS,
            cuda_wgmma_tf32,
            *GLUON_VARIANTS,
            *CUTLASS_VARIANTS,
            *SKINNY_VARIANTS,
            # Of the backward pass only.
            torch_compile,
            cuda_wgmma_layouts,
            *PUBLISHED_VARIANTS,
        ),
        presets=_PRESETS,
        slab="m",
        backward=Backward(
            inputs=(*_INPUTS, TensorSpec(name="dc_MN", axes=("m", "n"))),
            outputs=(TensorSpec(name="da_MK", axes=("m", "k")), TensorSpec(name="db_KN", axes=("k", "n"))),
            cost=backward_cost,
            reference=backward_reference,
            bound=backward_bound,
            rule=f"of either product, with N and M terms: {RULE}",
        ),
    ),
    *LINEAR_OPS,
    TRANSPOSE_MATMUL,
    *layout_ops(_PRESETS),
)
