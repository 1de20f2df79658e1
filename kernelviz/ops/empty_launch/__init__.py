"""Launches of kernels that do next to nothing: what a launch costs, one by one and as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Sizes, Tensors, TensorSpec, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """No arithmetic, nothing read; one number written by each of k launches.

    >>> cost({"k": 64}, 4)
    Cost(work_flop=0, read_bytes=0, written_bytes=256)
    """
    return Cost(work_flop=0, read_bytes=0, written_bytes=sizes["k"] * itemsize_bytes)


def reference(x_K: Tensor) -> Tensors:
    """1 for every launch. x only says how many there are, and on which device: no variant reads it."""
    return (x_K.new_ones(x_K.shape),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: a launch that did not happen leaves something else than 1."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


@variant(backend="torch")
def torch_eager(x_K: Tensor) -> Launch:
    """fill_ of one element, k times: torch's own kernel, launched through its dispatcher."""
    import torch

    done_K = torch.empty_like(x_K)
    parts = [done_K[i : i + 1] for i in range(done_K.numel())]

    def launch() -> Tensor:
        for part in parts:
            part.fill_(1.0)
        return done_K

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_launches(x_K: Tensor) -> Launch:
    """Triton, one program of one warp, k times: its launcher looks the kernel up by its arguments each time."""
    from kernelviz.ops.empty_launch import triton as kernels

    return kernels.bind_launches(x_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_launches(x_K: Tensor) -> Launch:
    """CUDA C++, one thread, k times, through cuda.core."""
    from kernelviz.ops.empty_launch import cuda as kernels

    return kernels.bind_launches(x_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_graph(x_K: Tensor) -> Launch:
    """The same k launches as one graph. On the device a graph takes as long; what it saves is the host's time for each call."""
    from kernelviz.ops.empty_launch import cuda as kernels

    return kernels.bind_graph(x_K)


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
        first=("torch_eager", "triton_launches", "cuda_launches", "cuda_graph"),
        variants=(torch_eager, triton_launches, cuda_launches, cuda_graph),
    ),
)
