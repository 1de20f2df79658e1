"""Chains of element-wise steps, relu(x · s + b) applied k times: fusing saves bytes, and the bytes predict the speed-up."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.pointwise_chain import best
from kernelviz.ops.pointwise_chain.fusion import ROWS, SCALARS
from kernelviz.ops.pointwise_chain.reference import bound, reference
from kernelviz.ops.pointwise_chain.variants import SCALAR_VARIANTS, VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Fused: the matrix read once and written once, two rows a step; product, sum and maximum k times an element.

    >>> cost({"m": 1024, "n": 1024, "k": 4}, 2)
    Cost(work_flop=12582912, read_bytes=2113536, written_bytes=2097152)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(
        work_flop=3 * k * m * n,
        read_bytes=(m * n + 2 * k * n) * itemsize_bytes,
        written_bytes=m * n * itemsize_bytes,
    )


def cost_of_scalars(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """As `cost`, with two numbers a step.

    >>> cost_of_scalars({"n": 1024, "k": 4}, 2)
    Cost(work_flop=12288, read_bytes=2064, written_bytes=2048)
    """
    n, k = sizes["n"], sizes["k"]
    return Cost(work_flop=3 * k * n, read_bytes=(n + 2 * k) * itemsize_bytes, written_bytes=n * itemsize_bytes)


_DEPTH = Axis(name="k", caption="steps", default="1,2,4,8", cpu_default="1,2,4,8")
_RULE = "two roundings to the output's format a step (u |x · s| and u |x · s + b|), carried through the steps behind it by |s|"
_TOKENS = "1,16,64,512,4096,8192"

POINTWISE_CHAIN = Op(
    name="pointwise_chain",
    family="elementwise",
    summary="A chain of k element-wise steps, each with a row of scales and a row of shifts",
    formula="x ← max(x · sⱼ + bⱼ, 0), j = 1…k",
    axes=(
        Axis(name="m", caption="rows", default="2^27/n", cpu_default="2^20/n"),
        Axis(name="n", caption="row length", default="4096", cpu_default="1024"),
        _DEPTH,
    ),
    dtypes=("fp32", "fp16", "bf16"),
    # Scales between -1 and 1: with larger ones a long chain overflows every format.
    inputs=(
        TensorSpec(name="x_MN", axes=("m", "n")),
        TensorSpec(name="s_KN", axes=("k", "n"), data="uniform"),
        TensorSpec(name="b_KN", axes=("k", "n")),
    ),
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=_RULE,
    baseline="torch_eager",
    best=best.chain,
    first=("torch_eager", "torch_graph", "torch_compile", "cuda_stepwise", "triton_fused", "cuda_fused"),
    variants=VARIANTS,
    presets=(
        Preset(
            name="bert-base",
            caption="BERT base, 1 to 8192 tokens of width 768",
            sizes={"m": _TOKENS, "n": "768", "k": "1,4"},
        ),
        Preset(
            name="llama-3-8b",
            caption="Llama 3 8B, 1 to 8192 tokens of width 4096",
            sizes={"m": _TOKENS, "n": "4096", "k": "1,4"},
        ),
        Preset(
            name="rows",
            caption="2^27 elements in rows of 2048 to 131072: 512 MiB of fused traffic in 16 bits",
            sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072", "k": "1"},
        ),
        Preset(
            name="large",
            caption="2^28 elements, 1 to 16 steps: 1 GiB of fused traffic in 16 bits",
            sizes={"m": "65536", "n": "4096", "k": "1,2,4,8,16"},
        ),
    ),
    slab="m",
    fusion=ROWS,
)
POINTWISE_CHAIN_SCALAR = Op(
    name="pointwise_chain_scalar",
    family="elementwise",
    summary="A chain of k element-wise steps, each with one scale and one shift for all elements",
    formula="x ← max(x · sⱼ + bⱼ, 0), j = 1…k",
    axes=(Axis(name="n", caption="elements", default="2^27", cpu_default="2^20"), _DEPTH),
    dtypes=("fp32", "fp16", "bf16"),
    inputs=(
        TensorSpec(name="x_N", axes=("n",)),
        TensorSpec(name="s_K", axes=("k",), data="uniform"),
        # Not random: one shift below all elements would make a long chain constant.
        TensorSpec(name="b_K", axes=("k",), data="one_value"),
    ),
    outputs=(TensorSpec(name="y_N", axes=("n",)),),
    cost=cost_of_scalars,
    reference=reference,
    bound=bound,
    rule=_RULE,
    baseline="torch_eager",
    best=best.scalar_chain,
    first=(
        "torch_eager",
        "torch_graph",
        "torch_compile",
        "cuda_scalars_stepwise",
        "triton_scalars_fused",
        "cuda_scalars_fused",
    ),
    variants=SCALAR_VARIANTS,
    presets=(
        Preset(
            name="large",
            caption="2^28 elements, 1 to 16 steps: 1 GiB of fused traffic in 16 bits",
            sizes={"n": "2^28", "k": "1,2,4,8,16"},
        ),
    ),
    slab="n",
    fusion=SCALARS,
)
