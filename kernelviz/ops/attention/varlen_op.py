"""`varlen_attention`: causal attention of sequences of different lengths that follow each other without padding."""

from __future__ import annotations

from itertools import pairwise

from kernelviz.core.problem import Cost
from kernelviz.ops.attention import best
from kernelviz.ops.attention.varlen_reference import bound, reference
from kernelviz.ops.attention.varlen_variants import VARLEN_VARIANTS
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Product, Sizes, TensorSpec
from kernelviz.ops.kernels.attention_heads import check_heads
from kernelviz.ops.kernels.groups import group_ends

_POSITIONS = Product(("b", "s"))
_END_BYTES = 4


def ends(sizes: Sizes) -> tuple[int, ...]:
    """The position after the last one of each sequence: `group_ends` of the axes b, s and u."""
    return group_ends(sizes["b"], sizes["s"], sizes["u"])


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Half the products of each sequence's queries and keys, as in `causal_attention`; tensors touched once.

    >>> cost({"b": 1, "s": 8, "u": 1, "hq": 4, "hk": 2, "d": 64}, 2)
    Cost(work_flop=32768, read_bytes=8196, written_bytes=4096)
    >>> cost({"b": 4, "s": 100, "u": 2, "hq": 1, "hk": 1, "d": 64}, 2).work_flop  # 133, 67, 0 and 200 positions
    7958784
    """
    squares = sum((end - start) ** 2 for start, end in pairwise((0, *ends(sizes))))
    position_bytes = sizes["b"] * sizes["s"] * sizes["d"] * itemsize_bytes
    return Cost(
        work_flop=2 * squares * sizes["hq"] * sizes["d"],
        read_bytes=(sizes["hq"] + 2 * sizes["hk"]) * position_bytes + _END_BYTES * sizes["b"],
        written_bytes=sizes["hq"] * position_bytes,
    )


VARLEN_ATTENTION = Op(
    name="varlen_attention",
    family="attention",
    summary="Causal attention of sequences of different lengths that follow each other without padding",
    formula="o = softmax(q kᵀ / √d + mask) v of each sequence",
    axes=(
        Axis(name="b", caption="sequences", default="8", cpu_default="4"),
        Axis(name="s", caption="positions of a sequence, on average", default="2^9..2^13", cpu_default="64,128,256"),
        Axis(name="u", caption="positions of the longest sequence, in multiples of s", default="2", cpu_default="2"),
        Axis(name="hq", caption="query heads", default="32", cpu_default="4"),
        Axis(name="hk", caption="key and value heads", default="8", cpu_default="2"),
        Axis(name="d", caption="dimension of a head", default="128", cpu_default="64"),
    ),
    dtypes=("bf16", "fp16"),
    inputs=(
        TensorSpec(name="q_THD", axes=(_POSITIONS, "hq", "d")),
        TensorSpec(name="k_THD", axes=(_POSITIONS, "hk", "d")),
        TensorSpec(name="v_THD", axes=(_POSITIONS, "hk", "d")),
        TensorSpec(name="ends_B", axes=("b",), dtype="int32", values=ends),
    ),
    outputs=(TensorSpec(name="o_THD", axes=(_POSITIONS, "hq", "d")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="that of causal_attention for each sequence",
    baseline="torch_eager",
    best=best.varlen_attention,
    first=("torch_eager", "torch_varlen", "triton_flash", "cuda_wgmma"),
    variants=VARLEN_VARIANTS,
    presets=(
        Preset(
            name="llama-3-8b",
            caption="Llama 3 8B: 32 query and 8 key heads of 128",
            sizes={"b": "4,16,64", "s": "256,1024,4096", "u": "2", "hq": "32", "hk": "8", "d": "128"},
        ),
    ),
    check=check_heads,
)
