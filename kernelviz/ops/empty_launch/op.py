"""The op `empty_launch`: what a kernel launch costs, one by one and as a graph."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Sizes, TensorSpec
from kernelviz.ops.empty_launch import best
from kernelviz.ops.empty_launch.reference import bound, reference
from kernelviz.ops.empty_launch.variants import cuda_graph, cuda_launches, torch_eager, triton_launches


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """No arithmetic, nothing read; one number written by each of k launches.

    >>> cost({"k": 64}, 4)
    Cost(work_flop=0, read_bytes=0, written_bytes=256)
    """
    return Cost(work_flop=0, read_bytes=0, written_bytes=sizes["k"] * itemsize_bytes)


OPS = (
    Op(
        name="empty_launch",
        family="launch",
        summary="Launches of kernels that store one number each",
        formula="done[i] = 1 by launch i of k",
        axes=(Axis(name="k", caption="launches", default="2^0..2^8", cpu_default="2^0..2^8"),),
        dtypes=("fp32",),
        inputs=(TensorSpec(name="x_K", axes=("k",)),),
        outputs=(TensorSpec(name="done_K", axes=("k",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: every launch wrote its 1",
        baseline="torch_eager",
        best=best.launches,
        first=("torch_eager", "triton_launches", "cuda_launches", "cuda_graph"),
        variants=(torch_eager, triton_launches, cuda_launches, cuda_graph),
    ),
)
