"""The backward pass of `softmax`: its cost, its reference, and how each variant binds it. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Launch, Sizes, Tensors, TensorSpec
from kernelviz.ops.softmax.bounds import backward_bound

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (two products, add, subtract); y, which the forward pass saved, and dy read, dx written.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=8192, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=2 * m * n * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def reference(x_MN: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = y (dy - Σ y dy) along each row."""
    y_MN = x_MN.softmax(-1)
    return (y_MN * (dy_MN - (y_MN * dy_MN).sum(-1, keepdim=True)),)


def composed(x_MN: Tensor) -> Tensor:
    """The steps of the formula as single torch ops, in float32."""
    wide_MN = x_MN.float()
    # Detached: what autograd would add to the maximum's gradient is 0 but for rounding.
    e_MN = (wide_MN - wide_MN.detach().amax(-1, keepdim=True)).exp()
    return (e_MN / e_MN.sum(-1, keepdim=True)).to(x_MN.dtype)


def softmax(x_MN: Tensor) -> Tensor:
    """torch's own."""
    return x_MN.softmax(-1)


def composite(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """Of the single ops: autograd goes through each of them."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(composed, (x_MN,), (dy_MN,), (0,))


def eager(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """One kernel, from the y that softmax saves."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(softmax, (x_MN,), (dy_MN,), (0,))


def compiled(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """inductor's kernel."""
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(softmax, (x_MN,), (dy_MN,), (0,))


def liger(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """Liger's kernel."""
    from kernelviz.ops.softmax import library

    return library.bind_liger_backward(x_MN, dy_MN)


def triton_chunks(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """In chunks, twice."""
    from kernelviz.ops.softmax import triton_backward as kernels

    return kernels.bind_chunks(x_MN, dy_MN)


def triton_row(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """A program a row."""
    from kernelviz.ops.softmax import triton_backward as kernels

    return kernels.bind_block_per_row(x_MN, dy_MN)


def cuda_row(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """A block a row."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_row_backward(x_MN, dy_MN)


def cuda_cluster(x_MN: Tensor, dy_MN: Tensor) -> Launch:
    """A cluster a row."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_cluster_backward(x_MN, dy_MN)


BACKWARD = Backward(
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="dy_MN", axes=("m", "n"))),
    outputs=(TensorSpec(name="dx_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=backward_bound,
    rule=(
        "|error| ≤ 1.01 u (|dx| + y |dy|) + y (ρ |dy − D| + Σ (ρ + u + √N 2⁻²⁴) y |dy|), D = Σ y dy, ρ the forward pass's "
        "relative error of y: y as it was stored, products y dy rounded to the format at most once, sums in fp32"
    ),
    slab="m",
)
