"""The ops `add`, `mul` and `div`: memory-bound, two reads and one write an element."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.arithmetic import best
from kernelviz.ops.arithmetic.reference import add_reference, bound, div_bound, div_reference, mul_reference, quotients
from kernelviz.ops.arithmetic.variants import PUBLISHED, ladder, torch_graph
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """N operations; x and y read, the result written.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=8192, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=2 * n * itemsize_bytes, written_bytes=n * itemsize_bytes)


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
        best=best.elementwise,
        first=_FIRST,
        variants=(*_ADD[:2], *PUBLISHED, *_ADD[2:], torch_graph),
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
        best=best.elementwise,
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
        # Divisors are normal numbers whatever the data: the NaN of 0/0 may have the bits that mark an element as never written.
        inputs=(_INPUTS[0], TensorSpec(name="y_N", axes=("n",), data="normal")),
        outputs=_OUTPUTS,
        cost=cost,
        reference=div_reference,
        bound=div_bound,
        rule="|error| ≤ (1.01 u + 4 · 2^-24) |x / y|: one rounding to the output's format of a quotient within 2 ulp in fp32",
        baseline="torch_eager",
        best=best.elementwise,
        first=_FIRST,
        variants=_DIV,
        presets=(_LARGE,),
        slab="n",
        compared=quotients,
        compared_outputs=(TensorSpec(name="z_N", axes=("n",), dtype="fp32"),),
    ),
)
