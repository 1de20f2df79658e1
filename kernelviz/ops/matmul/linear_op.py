"""`linear_relu`, `linear_gelu` and `linear_silu`: a linear layer whose activation can be fused into the matrix product."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, CostModel, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.variant import Variant
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.fusion import linear_fusion
from kernelviz.ops.matmul.linear_backward_reference import (
    BACKWARD_RULE,
    backward_bound_of,
    backward_reference_of,
    gelu_derivative,
    relu_derivative,
    silu_derivative,
)
from kernelviz.ops.matmul.linear_reference import Function, bound_of, linear
from kernelviz.ops.matmul.linear_variants import Name, cuda_published, gelu, ladder, relu, silu
from kernelviz.ops.matmul.variants_cutlass import cutlass_fused_of

if TYPE_CHECKING:
    from torch import Tensor


def cost_of(flop: int) -> CostModel:
    """The product's 2MNK, the sum with the bias and `flop` operations of the function for each element of the result.

    >>> cost_of(1)({"m": 2, "n": 3, "k": 4}, 2)
    Cost(work_flop=60, read_bytes=46, written_bytes=12)
    """

    def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        return Cost(
            work_flop=2 * m * n * k + (1 + flop) * m * n,
            read_bytes=(m * k + k * n + n) * itemsize_bytes,
            written_bytes=m * n * itemsize_bytes,
        )

    return cost


def backward_cost_of(flop: int) -> CostModel:
    """Two products of 2MNK operations; `flop` operations for dz and an addition for db of each element of z. The z that the
    forward pass saved, its gradient, x and w are read once, three gradients written once.

    >>> backward_cost_of(1)({"m": 2, "n": 3, "k": 4}, 2)
    Cost(work_flop=108, read_bytes=64, written_bytes=46)
    """

    def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        factors = m * k + k * n
        return Cost(
            work_flop=4 * m * n * k + (1 + flop) * m * n,
            read_bytes=(factors + 2 * m * n) * itemsize_bytes,
            written_bytes=(factors + n) * itemsize_bytes,
        )

    return cost


_INPUTS = (
    TensorSpec(name="x_MK", axes=("m", "k")),
    TensorSpec(name="w_NK", axes=("n", "k")),
    TensorSpec(name="b_N", axes=("n",)),
)


def _preset(name: str, caption: str, n: int, k: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,16,64,512,4096,8192", "n": str(n), "k": str(k)})


def _op(
    function: Function,
    name: Name,
    formula: str,
    slack: Callable[[Tensor], Tensor],
    slack_rule: str,
    derivative: Function,
    *,
    flop: int,
    derivative_flop: int,
    published: tuple[Variant, ...] = (),
    presets: tuple[Preset, ...] = (),
) -> Op:
    def reference(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Tensors:
        return (function(linear(x_MK, w_NK, b_N)),)

    variants = (*ladder(name), cutlass_fused_of(name), *published)
    return Op(
        name=f"linear_{name}",
        family="matrix product",
        summary=f"{name} of a linear layer: a product with weights stored by output features, and a bias",
        formula=formula,
        axes=(
            Axis(name="m", caption="rows (tokens)", default="2^9..2^13", cpu_default="2^6..2^9"),
            Axis(name="n", caption="output features", default="m", cpu_default="m"),
            Axis(name="k", caption="input features", default="m", cpu_default="m"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        computes={"fp32": ("ieee", "tf32")},
        inputs=_INPUTS,
        outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
        cost=cost_of(flop),
        reference=reference,
        bound=bound_of(function, slack),
        rule=(
            f"|error| ≤ max |f(z ± e) − y| + {slack_rule} 2⁻²⁴ + 1.01 u |y|, z = x wᵀ + b, e = max(√K, min(K, 8)) 2⁻²⁴ Σ|x||w| + "
            "2⁻²³ (|z| + |b|) + u (|z| + |z − b|); with tf32 also 2⁻⁹ |z − b| + 3·2⁻¹⁰ √Σx²w²"
        ),
        baseline="torch_eager",
        best=best.linear,
        first=("torch_eager", "torch_compile", "triton_fused", "cuda_wgmma_fused"),
        variants=variants,
        presets=presets,
        slab="m",
        backward=Backward(
            inputs=(*_INPUTS, TensorSpec(name="dy_MN", axes=("m", "n"))),
            outputs=(
                TensorSpec(name="dx_MK", axes=("m", "k")),
                TensorSpec(name="dw_NK", axes=("n", "k")),
                TensorSpec(name="db_N", axes=("n",)),
            ),
            cost=backward_cost_of(derivative_flop),
            reference=backward_reference_of(derivative),
            bound=backward_bound_of(derivative),
            rule=BACKWARD_RULE,
        ),
        fusion=linear_fusion(name, flop),
    )


LINEAR_OPS = (
    _op(
        relu,
        "relu",
        "y = max(x wᵀ + b, 0)",
        lambda z_MN: z_MN.new_zeros(()),
        "0",
        relu_derivative,
        flop=1,
        derivative_flop=1,
        published=(cuda_published,),
    ),
    _op(
        gelu,
        "gelu",
        "y = z (1 + erf(z / √2)) / 2, z = x wᵀ + b",
        lambda z_MN: 8 * z_MN.abs(),
        "8 |z|",
        gelu_derivative,
        flop=8,
        derivative_flop=12,
        presets=(
            _preset("gpt-2", "GPT-2, first feed-forward layer", 3072, 768),
            _preset("bert-base", "BERT-base, first feed-forward layer", 3072, 768),
        ),
    ),
    _op(
        silu,
        "silu",
        "y = z / (1 + exp(−z)), z = x wᵀ + b",
        lambda z_MN: (8 + 2 * z_MN.abs()) * z_MN.abs(),
        "(8 + 2 |z|) |z|",
        silu_derivative,
        flop=5,
        derivative_flop=8,
        presets=(
            _preset("llama-3-8b", "Llama 3 8B, gate projection", 14336, 4096),
            _preset("qwen2.5-7b", "Qwen2.5 7B, gate projection", 18944, 3584),
        ),
    ),
)
