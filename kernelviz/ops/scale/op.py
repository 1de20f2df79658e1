"""`scale`, multiplication by a scalar: the op for which a first extension or custom kernel is usually written."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.scale import best
from kernelviz.ops.scale.reference import bound, reference
from kernelviz.ops.scale.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One product an element, read once and written once.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


SCALE = Op(
    name="scale",
    family="elementwise",
    summary="Product of a vector and a scalar",
    formula="y = 0.7 · x",
    axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_N", axes=("n",)),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ 1.01 u |x · s|, s = 0.7 in fp32: one rounding to the output's format",
    baseline="torch_eager",
    best=best.scale,
    first=(
        "torch_eager",
        "cpp_extension",
        "torch_compile",
        "triton_block",
        "cuda_scalar",
        "cuda_vec16",
        "cuda_vec16_unrolled",
        "cuda_adaptive",
    ),
    variants=VARIANTS,
    presets=(
        Preset(
            name="published",
            caption="1024 × 1024, where a custom kernel was published as 1.7 times as fast: launches take most of the time",
            sizes={"n": "2^20"},
        ),
        Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
    ),
    slab="n",
)
