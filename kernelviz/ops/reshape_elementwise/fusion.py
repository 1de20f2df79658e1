"""The composition that an element-wise step on a transposed view replaces."""

from __future__ import annotations

from kernelviz.core.fusion import Step
from kernelviz.ops.catalog.fusion import Composition, Fusion, elementwise_step
from kernelviz.ops.catalog.tensors import Sizes


def contiguous_first_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """A copy of x with its rows and columns exchanged, then relu of the copy: twice the bytes of the fused form.

    >>> from kernelviz.core.fusion import unfused_bytes
    >>> unfused_bytes(contiguous_first_steps({"m": 1024, "n": 64}, 2))
    524288
    """
    elements = sizes["m"] * sizes["n"]
    return (
        elementwise_step("transposition", elements, itemsize_bytes, flop=0),
        elementwise_step("relu", elements, itemsize_bytes, flop=1, last=True),
    )


FUSION = Fusion(
    family="reshape_elementwise",
    compositions=(Composition(variants=("contiguous_then_op", "cuda_stepwise"), steps=contiguous_first_steps),),
    fused=(
        "torch_eager",
        "torch_compile",
        "triton_fused",
        "cuda_tile",
        "cuda_registers",
        "cuda_squares",
        "cuda_vec16",
        "cuda_interleave",
    ),
    grows="m",
    sizes={"m": 16, "n": 8192},
    cpu_sizes={"m": 2048, "n": 2048},
)
