"""The op `histogram`: its time depends on how fast the counters can be reached, not on reading the bytes."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.histogram import best
from kernelviz.ops.histogram.reference import BINS, bound, reference
from kernelviz.ops.histogram.variants import (
    cuda_global,
    cuda_per_lane,
    cuda_per_warp,
    cuda_shared,
    scatter_add_eager,
    torch_compile,
    torch_eager,
    triton_persistent,
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition a byte; the bytes read once, 256 counts of 64 bits written.

    >>> cost({"n": 4096}, 1)
    Cost(work_flop=4096, read_bytes=4096, written_bytes=2048)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=BINS * 8)


OPS = (
    Op(
        name="histogram",
        family="reduction",
        summary="Histogram of bytes in 256 bins",
        formula="y_b = number of x equal to b",
        axes=(Axis(name="n", caption="bytes", default="2^14..2^30", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("uint8",),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="counts_256", axes=(BINS,), dtype="int64"),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: counts are whole numbers",
        baseline="torch_eager",
        best=best.histogram,
        first=("torch_eager", "torch_compile", "cuda_shared", "cuda_per_warp", "cuda_per_lane"),
        variants=(
            torch_eager,
            scatter_add_eager,
            torch_compile,
            triton_persistent,
            cuda_global,
            cuda_shared,
            cuda_per_warp,
            cuda_per_lane,
        ),
        presets=(
            Preset(name="image", caption="Grey images of 1, 8 and 64 megapixels", sizes={"n": "10^6,8*10^6,64*10^6"}),
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 2 GiB", sizes={"n": "2^28..2^31"}),
        ),
    ),
)
