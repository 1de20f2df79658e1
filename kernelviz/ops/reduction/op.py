"""`sum` and `mean` of a whole vector: all is read, one number is written, and the partial sums of the GPU are added up once."""

from __future__ import annotations

from dataclasses import replace

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.reduction import best
from kernelviz.ops.reduction.reference import mean_bound, mean_reference, sum_bound, sum_reference
from kernelviz.ops.reduction.variants import mean_variants, sum_variants


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; the vector read once, one number written.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=itemsize_bytes)


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
    best=best.reduction,
    first=("torch_eager", "torch_compile", "cuda_atomic_per_block", "triton_two_pass", "cuda_persistent"),
    variants=sum_variants(),
    presets=(
        Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
        Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
    ),
)

MEAN = replace(
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
    variants=mean_variants(),
)
