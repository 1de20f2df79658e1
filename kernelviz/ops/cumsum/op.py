"""The op `cumsum`: each output depends on all inputs before it, and still one read and one write are enough."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.cumsum import best
from kernelviz.ops.cumsum.reference import bound, reference
from kernelviz.ops.cumsum.variants import (
    cuda_cluster,
    cuda_look_back,
    cuda_one_block,
    cuda_three_kernels,
    torch_as_stored,
    torch_compile,
    torch_eager,
    triton_three_kernels,
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; read once and written once.

    >>> cost({"n": 1024}, 4)
    Cost(work_flop=1024, read_bytes=4096, written_bytes=4096)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


OPS = (
    Op(
        name="cumsum",
        family="reduction",
        summary="Cumulative sum of a vector",
        formula="y_k = x₁ + … + x_k",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ 1.01 u |y_k| + √k (2 ‖x₁…x_k‖ + max |y₁…y_k|) 2⁻²⁴: added in fp32 in any order, rounded once to the "
            "output's format"
        ),
        baseline="torch_eager",
        best=best.scan,
        first=(
            "torch_eager",
            "torch_compile",
            "cuda_three_kernels",
            "cuda_look_back",
        ),
        variants=(
            torch_eager,
            torch_as_stored,
            torch_compile,
            triton_three_kernels,
            cuda_three_kernels,
            cuda_one_block,
            cuda_cluster,
            cuda_look_back,
        ),
        presets=(
            Preset(name="small", caption="Small enough for the L2 of any GPU", sizes={"n": "2^10..2^20"}),
            Preset(name="large", caption="Far larger than any L2: 256 MiB to 4 GiB in fp32", sizes={"n": "2^26..2^30"}),
        ),
    ),
)
