"""Sum and mean of a whole vector: read everything, write one number. What is left to do is to read fast and to meet once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Op, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.reduction import means, variants

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; the vector read once, one number written.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=itemsize_bytes)


def sum_reference(x_N: Tensor) -> Tensors:
    """Σ x, in the dtype of the input (float64 in the gate)."""
    return (x_N.sum(0, keepdim=True),)


def mean_reference(x_N: Tensor) -> Tensors:
    """Σ x / N, in the dtype of the input (float64 in the gate)."""
    return (x_N.mean(0, keepdim=True),)


def sum_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + √N (2 ‖x‖ + |y|) 2^-24: any order of additions in fp32, one rounding to the output's format.

    Of partial sums s₁ … s_N each addition errs by at most 2^-24 |s_k|, in no particular direction: together by about
    2^-24 √(Σ s_k²) / √3. The numbers come in no order, so s_k is k y / N plus a fluctuation of √k ‖x‖ / √N; the worst of all
    orders of adding, one accumulator, gives √N (‖x‖ / √2 + |y| / √3) 2^-24 / √3. The bound is 3 to 5 times that.
    """
    x_N, y_1 = inputs[0], outputs[0]
    drift_1 = problem.sizes["n"] ** 0.5 * (2 * x_N.norm() + y_1.abs()) * FP32_ROUNDOFF
    return (stored(y_1, problem.dtype) + drift_1,)


def mean_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of the sum, divided by N, and one division in fp32: 1.01 u |y| + (√N (2 ‖x‖ / N + |y|) + 2 |y|) 2^-24."""
    x_N, y_1 = inputs[0], outputs[0]
    n = problem.sizes["n"]
    drift_1 = (n**0.5 * (2 * x_N.norm() / n + y_1.abs()) + 2 * y_1.abs()) * FP32_ROUNDOFF
    return (stored(y_1, problem.dtype) + drift_1,)


SUM = Op(
    name="sum",
    family="reduction",
    summary="Sum of a whole vector",
    formula="y = Σ x",
    axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_N", axes=("n",)),),
    outputs=(TensorSpec(name="y_1", axes=(1,)),),
    cost=cost,
    reference=sum_reference,
    bound=sum_bound,
    rule="|error| ≤ 1.01 u |y| + √N (2 ‖x‖ + |y|) 2⁻²⁴: added in fp32 in any order, rounded once to the output's format",
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "cuda_atomic_per_block", "triton_two_pass", "cuda_persistent"),
    variants=variants.VARIANTS,
    presets=(
        Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
        Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
    ),
)
OPS = (
    SUM,
    replace(
        SUM,
        name="mean",
        summary="Mean of a whole vector",
        formula="y = Σ x / N",
        reference=mean_reference,
        bound=mean_bound,
        rule=(
            "|error| ≤ 1.01 u |y| + (√N (2 ‖x‖ / N + |y|) + 2 |y|) 2⁻²⁴: added in fp32 in any order, divided, rounded once "
            "to the output's format"
        ),
        variants=means.VARIANTS,
    ),
)
