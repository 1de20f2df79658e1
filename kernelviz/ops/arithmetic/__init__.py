"""Elementwise sum, product and quotient: the plainest memory-bound ops, two reads and one write an element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.arithmetic.ladder import ladder
from kernelviz.ops.arithmetic.published import PUBLISHED
from kernelviz.ops.catalog.op import Axis, Op, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """N operations; x and y read, the result written.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=8192, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=2 * n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def add_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The sum, in the dtype of the inputs (float64 in the gate)."""
    return (x_N + y_N,)


def mul_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The product, in the dtype of the inputs (float64 in the gate)."""
    return (x_N * y_N,)


def div_reference(x_N: Tensor, y_N: Tensor) -> Tensors:
    """The quotient, in the dtype of the inputs (float64 in the gate): infinite or NaN where y is 0, as IEEE 754 has it."""
    return (x_N / y_N,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding of the exact result to the output's format, in fp32 first where the format is narrower: 1.01 u |result|."""
    return (stored(outputs[0], problem.dtype),)


def div_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """One rounding to the output's format of a quotient that is within 2 ulp in fp32, which is at most 4 · 2^-24 of it.

    That is what PTX promises of div.full, to which Triton and so torch.compile turn every fp32 quotient. div.approx, as fast
    mathematics has it, gives 0 for divisors beyond 2^126 and is refused there.
    """
    return (stored(outputs[0], problem.dtype) + 4 * FP32_ROUNDOFF * outputs[0].abs(),)


def quotients(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The outputs in fp32; where one is infinite because fp16 holds nothing so large, the quotient that overflowed.

    Two normal numbers have a quotient above 65520 in 1 of 80,000 cases. From there on an infinity is the right answer in
    fp16, and only there is it taken for one: anywhere else it stays infinite, which the reference is not.
    """
    import torch

    (x_N, y_N), (z_N,) = inputs, outputs
    wide_N = z_N.float()
    if z_N.dtype == torch.float16:
        at = torch.isinf(z_N).nonzero()[:, 0]
        exact = x_N[at].float() / y_N[at].float()
        # 65520: half a step beyond the largest number. From there on the nearest is infinity.
        right = (exact.abs() >= 65520) & (exact.sign() == wide_N[at].sign())
        wide_N[at] = torch.where(right, exact, wide_N[at])
    return (wide_N,)


_AXES = (Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),)
_DTYPES = ("fp32", "fp16", "bf16")
_INPUTS = (TensorSpec(name="x_N", axes=("n",)), TensorSpec(name="y_N", axes=("n",)))
_OUTPUTS = (TensorSpec(name="z_N", axes=("n",)),)
_FIRST = (
    "torch_eager",
    "torch_compile",
    "triton_block",
    "triton_adaptive",
    "cuda_scalar",
    "cuda_vec16",
    "cuda_adaptive",
)
_LARGE = Preset(name="large", caption="Far larger than any L2: 0.8 to 12 GiB in fp32", sizes={"n": "2^26..2^30"})
_ADD, _MUL, _DIV = ladder("add"), ladder("mul"), ladder("div")

OPS = (
    Op(
        name="add",
        family="elementwise",
        summary="Elementwise sum of two vectors",
        formula="z = x + y",
        axes=_AXES,
        dtypes=_DTYPES,
        inputs=_INPUTS,
        outputs=_OUTPUTS,
        cost=cost,
        reference=add_reference,
        bound=bound,
        rule="|error| ≤ 1.01 u |x + y|: one rounding to the output's format",
        baseline="torch_eager",
        first=_FIRST,
        variants=(*_ADD[:2], *PUBLISHED, *_ADD[2:]),
        presets=(
            Preset(
                name="published",
                caption="10000 × 10000, for which 12.5 ms were published, and 5.95 times as fast when optimised",
                sizes={"n": "100000000"},
            ),
            _LARGE,
        ),
        slab="n",
    ),
    Op(
        name="mul",
        family="elementwise",
        summary="Elementwise product of two vectors",
        formula="z = x · y",
        axes=_AXES,
        dtypes=_DTYPES,
        inputs=_INPUTS,
        outputs=_OUTPUTS,
        cost=cost,
        reference=mul_reference,
        bound=bound,
        rule="|error| ≤ 1.01 u |x · y|: one rounding to the output's format",
        baseline="torch_eager",
        first=_FIRST,
        variants=_MUL,
        presets=(_LARGE,),
        slab="n",
    ),
    Op(
        name="div",
        family="elementwise",
        summary="Elementwise quotient of two vectors",
        formula="z = x / y",
        axes=_AXES,
        dtypes=_DTYPES,
        # Divisors are normal numbers whatever the data: the NaN of 0/0 may have the bits that stand for "never written".
        inputs=(_INPUTS[0], TensorSpec(name="y_N", axes=("n",), data="normal")),
        outputs=_OUTPUTS,
        cost=cost,
        reference=div_reference,
        bound=div_bound,
        rule="|error| ≤ (1.01 u + 4 · 2^-24) |x / y|: one rounding to the output's format of a quotient within 2 ulp in fp32",
        baseline="torch_eager",
        first=_FIRST,
        variants=_DIV,
        presets=(_LARGE,),
        slab="n",
        shown=quotients,
        shows=(TensorSpec(name="z_N", axes=("n",), dtype="fp32"),),
    ),
)
