"""The ops `matmul_nt` and `matmul_tt`: matrix products with factors that are stored transposed, named as BLAS names them.

The layout of a factor is the shape in which the op's inputs declare it, so each layout is an op: its inputs, reference, variants
and test sizes differ, and documents, links, commands and pages name it as they name every op. `matmul` is NN,
`transpose_matmul` TN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Tensors, TensorSpec
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.layout_variants import layout_ladder
from kernelviz.ops.matmul.reference import RULE, product_bound
from kernelviz.ops.matmul.transposed import cost

if TYPE_CHECKING:
    from torch import Tensor


def reference_nt(a_MK: Tensor, b_NK: Tensor) -> Tensors:
    """a bᵀ, in the dtype of the inputs (float64 in the gate)."""
    return (a_MK @ b_NK.t(),)


def reference_tt(a_KM: Tensor, b_NK: Tensor) -> Tensors:
    """aᵀ bᵀ, in the dtype of the inputs (float64 in the gate)."""
    return (a_KM.t() @ b_NK.t(),)


def bound_nt(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of `matmul`, because a transposition rounds nothing."""
    a_MK, b_NK = inputs
    return (product_bound(problem, a_MK, b_NK.t(), outputs[0]),)


def bound_tt(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of `matmul`, because a transposition rounds nothing."""
    a_KM, b_NK = inputs
    return (product_bound(problem, a_KM.t(), b_NK.t(), outputs[0]),)


def layout_ops(presets: tuple[Preset, ...]) -> tuple[Op, ...]:
    """Both ops. `presets` are those of `matmul`: a layer's weights are stored by output features, so they are those of NT."""
    return (
        _op(
            "matmul_nt",
            "Product of a matrix and a transposed one, as of a layer's weights stored by output features",
            "C = A · Bᵀ",
            TensorSpec(name="a_MK", axes=("m", "k")),
            reference_nt,
            bound_nt,
            a_transposed=False,
            presets=presets,
            slab="m",
        ),
        _op(
            "matmul_tt",
            "Product of two transposed matrices",
            "C = Aᵀ · Bᵀ",
            TensorSpec(name="a_KM", axes=("k", "m")),
            reference_tt,
            bound_tt,
            a_transposed=True,
        ),
    )


def _op(
    name: str,
    summary: str,
    formula: str,
    a: TensorSpec,
    reference: Callable[..., Tensors],
    bound: Callable[[Problem, Tensors, Tensors], Tensors],
    *,
    a_transposed: bool,
    presets: tuple[Preset, ...] = (),
    slab: str | None = None,
) -> Op:
    b = TensorSpec(name="b_NK", axes=("n", "k"))
    return Op(
        name=name,
        family="matrix product",
        summary=summary,
        formula=formula,
        axes=(
            Axis(name="m", caption="rows of C", default="2^9..2^13", cpu_default="2^6..2^9"),
            Axis(name="n", caption="rows of B, columns of C", default="m", cpu_default="m"),
            Axis(name="k", caption="terms of each element of C", default="m", cpu_default="m"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        computes={"fp32": ("ieee", "tf32")},
        inputs=(a, b),
        outputs=(TensorSpec(name="c_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=RULE,
        baseline="torch_eager",
        best=best.layouts,
        first=("torch_eager", "triton_strided", "triton_descriptors", "cuda_wgmma"),
        variants=layout_ladder(a_transposed=a_transposed, a_name=a.name, b_name=b.name),
        presets=presets,
        slab=slab,
    )
