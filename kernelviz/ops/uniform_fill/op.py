"""`uniform_fill`: random numbers that are only written, so that the arithmetic of the generator shows."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.uniform_fill import best
from kernelviz.ops.uniform_fill.reference import BINS, LAGS, PARTS, bound, compared, reference
from kernelviz.ops.uniform_fill.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element written once. The generator's operations are on whole numbers, and how many it needs is its own affair.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=0, read_bytes=0, written_bytes=4096)
    """
    return Cost(work_flop=0, read_bytes=0, written_bytes=sizes["n"] * itemsize_bytes)


UNIFORM_FILL = Op(
    name="uniform_fill",
    family="random",
    summary="Uniform random numbers from 0 to below 1",
    formula="y uniform in [0, 1), independent",
    axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
    dtypes=("fp32", "fp16", "bf16"),
    # Only its format and its device are used.
    inputs=(TensorSpec(name="like_1", axes=(1,)),),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=(
        "all in [0, 1); shares of 32 equal intervals, of 32 positions within short intervals, means of 64 parts, and pairs at 31 "
        "distances: within six standard deviations (Bernstein) and one rounding to the format"
    ),
    baseline="torch_eager",
    best=best.uniform,
    first=(
        "torch_eager",
        "torch_compile",
        "triton_rand",
        "triton_philox",
        "cuda_scalar",
        "cuda_philox",
        "cuda_philox_7",
    ),
    variants=VARIANTS,
    presets=(
        Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
        Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
    ),
    compared=compared,
    compared_outputs=(
        TensorSpec(name="outside", axes=(1,), dtype="fp64"),
        TensorSpec(name="share_of_intervals", axes=(BINS,), dtype="fp64"),
        TensorSpec(name="share_of_positions", axes=(BINS,), dtype="fp64"),
        TensorSpec(name="mean_of_parts", axes=(PARTS,), dtype="fp64"),
        TensorSpec(name="agreement_at_distances", axes=(len(LAGS),), dtype="fp64"),
    ),
)
