"""`reshape_elementwise`: an element-wise step on a transposed view. A pass that runs anyway can change the layout at no cost."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.reshape_elementwise import best
from kernelviz.ops.reshape_elementwise.fusion import FUSION
from kernelviz.ops.reshape_elementwise.reference import bound, reference
from kernelviz.ops.reshape_elementwise.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once, one maximum each.

    >>> cost({"m": 1024, "n": 64}, 2)
    Cost(work_flop=65536, read_bytes=131072, written_bytes=131072)
    """
    count = sizes["m"] * sizes["n"]
    return Cost(work_flop=count, read_bytes=count * itemsize_bytes, written_bytes=count * itemsize_bytes)


RESHAPE_ELEMENTWISE = Op(
    name="reshape_elementwise",
    family="movement",
    summary="An element-wise step on a transposed view, with a contiguous result",
    formula="y = max(xᵀ, 0)",
    axes=(
        Axis(name="m", caption="rows of x", default="2^10..2^14", cpu_default="2^8,2^10"),
        Axis(name="n", caption="columns of x", default="m", cpu_default="m"),
    ),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
    outputs=(TensorSpec(name="y_NM", axes=("n", "m")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="exact: y = x or 0, no rounding",
    baseline="torch_eager",
    best=best.reshaped,
    first=("contiguous_then_op", "torch_eager", "torch_compile", "triton_fused", "cuda_squares"),
    variants=VARIANTS,
    presets=(
        Preset(
            name="gpt-2",
            caption="GPT-2, 1 to 8192 tokens of 768",
            sizes={"m": "1,16,64,512,4096,8192", "n": "768"},
        ),
        Preset(
            name="llama-3-8b",
            caption="Llama 3 8B, 1 to 8192 tokens of 4096",
            sizes={"m": "1,16,64,512,4096,8192", "n": "4096"},
        ),
        Preset(
            name="rows",
            caption="2^27 elements, rows of 2048 to 131072",
            sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072"},
        ),
        Preset(
            name="large",
            caption="Far larger than any L2: 256 MiB and 1 GiB of traffic in 16 bits",
            sizes={"m": "8192,16384", "n": "m"},
        ),
    ),
    fusion=FUSION,
)
