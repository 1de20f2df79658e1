"""The op `transpose_matmul`: the product of a transposed matrix, whose transposition the loads of the product can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.fusion import TRANSPOSED
from kernelviz.ops.matmul.reference import RULE, product_bound
from kernelviz.ops.matmul.variants_transposed import TRANSPOSED_VARIANTS

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """As of `matmul`: both factors read once, the product written once. A copy of A would read and write another 2MK elements.

    >>> cost({"m": 2, "n": 3, "k": 4}, 2)
    Cost(work_flop=48, read_bytes=40, written_bytes=12)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(
        work_flop=2 * m * n * k, read_bytes=(m * k + k * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes
    )


def reference(a_KM: Tensor, b_KN: Tensor) -> Tensors:
    """aᵀ b, in the dtype of the inputs (float64 in the gate)."""
    return (a_KM.t() @ b_KN,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of `matmul`, because a transposition rounds nothing."""
    a_KM, b_KN = inputs
    return (product_bound(problem, a_KM.t(), b_KN, outputs[0]),)


TRANSPOSE_MATMUL = Op(
    name="transpose_matmul",
    family="matrix product",
    summary="Product of a transposed matrix and another, as in the gradient of weights",
    formula="C = Aᵀ · B",
    axes=(
        Axis(name="m", caption="columns of A, rows of C", default="2^9..2^13", cpu_default="2^6..2^9"),
        Axis(name="n", caption="columns of B and C", default="m", cpu_default="m"),
        Axis(name="k", caption="rows of A and B", default="m", cpu_default="m"),
    ),
    dtypes=("bf16", "fp16", "fp32"),
    computes={"fp32": ("ieee", "tf32")},
    inputs=(TensorSpec(name="a_KM", axes=("k", "m")), TensorSpec(name="b_KN", axes=("k", "n"))),
    outputs=(TensorSpec(name="c_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=RULE,
    baseline="torch_eager",
    best=best.layouts,
    first=("contiguous_then_matmul", "torch_eager", "triton_strided", "triton_descriptors", "cuda_wgmma"),
    variants=TRANSPOSED_VARIANTS,
    presets=(
        # The gradient of a layer's weights, xᵀ dy, as in the models' presets of matmul: k counts tokens.
        Preset(
            name="llama-3-8b",
            caption="Llama 3 8B, gradient of the gate projection's weights",
            sizes={"m": "4096", "n": "14336", "k": "512,4096,8192"},
        ),
        Preset(
            name="gpt-2",
            caption="GPT-2, gradient of the first feed-forward layer's weights",
            sizes={"m": "768", "n": "3072", "k": "512,4096,8192"},
        ),
    ),
    fusion=TRANSPOSED,
)
