"""The compositions that a convolution with bias and relu replaces."""

from __future__ import annotations

from kernelviz.core.fusion import Step
from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.fusion import Composition, Fusion, WorkSweep, elementwise_step
from kernelviz.ops.catalog.tensors import Sizes
from kernelviz.ops.convolution.geometry import covered, positions


def eager_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """The convolution, a kernel that adds the bias, and relu.

    >>> sizes = {"n": 2, "h": 5, "w": 4, "c": 8, "k": 16, "r": 3, "s": 1}
    >>> [step.cost.moved_bytes for step in eager_steps(sizes, 2)]
    [4224, 2592, 2560]
    """
    filters = sizes["k"]
    elements = _pixels(sizes) * filters
    bias_bytes = filters * itemsize_bytes
    return (
        _convolution(sizes, itemsize_bytes),
        elementwise_step("bias", elements, itemsize_bytes, flop=1, operand_bytes=bias_bytes),
        elementwise_step("relu", elements, itemsize_bytes, flop=1, last=True),
    )


def two_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """The convolution, then one kernel for bias and relu.

    >>> sizes = {"n": 2, "h": 5, "w": 4, "c": 8, "k": 16, "r": 3, "s": 1}
    >>> [step.cost.moved_bytes for step in two_steps(sizes, 2)]
    [4224, 2592]
    """
    filters = sizes["k"]
    elements, bias_bytes = _pixels(sizes) * filters, filters * itemsize_bytes
    return (
        _convolution(sizes, itemsize_bytes),
        elementwise_step("bias_relu", elements, itemsize_bytes, flop=2, operand_bytes=bias_bytes, last=True),
    )


def _pixels(sizes: Sizes) -> int:
    p, q = (positions(sizes[axis], sizes["r"], sizes["s"]) for axis in "hw")
    return sizes["n"] * p * q


def _convolution(sizes: Sizes, itemsize_bytes: int) -> Step:
    n, c, k, r = (sizes[axis] for axis in "nckr")
    pixels = _pixels(sizes)
    pixels_read = n * covered(sizes["h"], r, sizes["s"]) * covered(sizes["w"], r, sizes["s"])
    result_bytes = pixels * k * itemsize_bytes
    cost = Cost(
        work_flop=2 * pixels * k * c * r * r,
        read_bytes=(pixels_read * c + k * r * r * c) * itemsize_bytes,
        written_bytes=result_bytes,
    )
    return Step(kind="convolution", cost=cost, result_bytes=result_bytes)


FUSION = Fusion(
    family="conv_bias_activation",
    compositions=(
        Composition(variants=("torch_eager",), steps=eager_steps),
        Composition(
            variants=("torch_compile", "cuda_stepwise", "torch_cudnn_stepwise", "triton_stepwise"), steps=two_steps
        ),
    ),
    fused=("torch_cudnn_fused", "triton_implicit", "gluon_boxes", "cuda_wgmma_fused"),
    grows="n",
    sizes={"n": 1, "h": 56, "w": 56, "c": 64, "k": 64, "r": 3, "s": 1},
    cpu_sizes={"n": 8, "h": 28, "w": 28, "c": 32, "k": 64, "r": 1, "s": 1},
    work=WorkSweep(axis="c", sizes=(16, 128, 256), cpu_sizes=(8, 128)),
    cpu_dtype="bf16",
)
