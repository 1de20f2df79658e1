"""The op `attention_decode`: its cost, its presets and its variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.attention_decode import best
from kernelviz.ops.attention_decode.reference import bound, reference
from kernelviz.ops.attention_decode.variants import VARIANTS
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.kernels.attention_heads import check_heads


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations for each query head, token and number of a head; both caches and q read once, o written once.

    >>> cost({"b": 2, "l": 1024, "hq": 64, "hk": 8, "d": 128}, 2)
    Cost(work_flop=67108864, read_bytes=8421376, written_bytes=32768)
    """
    b, hq, d = sizes["b"], sizes["hq"], sizes["d"]
    tokens = b * sizes["l"]
    return Cost(
        work_flop=4 * tokens * hq * d,
        read_bytes=(2 * tokens * sizes["hk"] * d + b * hq * d) * itemsize_bytes,
        written_bytes=b * hq * d * itemsize_bytes,
    )


AXES = (
    Axis(name="b", caption="sequences, each with one new token", default="16", cpu_default="2"),
    Axis(name="l", caption="tokens of a sequence in the cache", default="2^10..2^17", cpu_default="2^8..2^10"),
    Axis(name="hq", caption="query heads", default="64", cpu_default="8"),
    Axis(name="hk", caption="key/value heads", default="8", cpu_default="2"),
    Axis(name="d", caption="dimension of a head", default="128", cpu_default="64"),
)


def _preset(name: str, caption: str, hq: int, hk: int) -> Preset:
    sizes = {"b": "1,4,16,64,256", "l": "1024,8192,65536", "hq": str(hq), "hk": str(hk), "d": "128"}
    return Preset(name=name, caption=caption, sizes=sizes)


PRESETS = (
    _preset("llama-3-8b", "Llama 3 8B: 32 query and 8 key/value heads of 128", 32, 8),
    _preset("llama-3-70b", "Llama 3 70B: 64 query and 8 key/value heads of 128", 64, 8),
    _preset("qwen2.5-7b", "Qwen2.5 7B: 28 query and 4 key/value heads of 128", 28, 4),
)
RULE = (
    "|error| ≤ 1.01 u |o| + 3 u √Σp²v² + max(√L, min(L, 8)) 2⁻²⁴ (Σp|v| + |o|) + Σ p e (|v| + |o|): weights p rounded once to 16 "
    "bits, sums in fp32, e the error of a score in fp32"
)

ATTENTION_DECODE = Op(
    name="attention_decode",
    family="attention",
    summary="Attention of one new token for each sequence, over a contiguous KV cache",
    formula="o = softmax(q kᵀ / √d) v",
    axes=AXES,
    dtypes=("bf16", "fp16"),
    inputs=(
        TensorSpec(name="q_BHD", axes=("b", "hq", "d")),
        TensorSpec(name="k_BLHD", axes=("b", "l", "hk", "d")),
        TensorSpec(name="v_BLHD", axes=("b", "l", "hk", "d")),
    ),
    outputs=(TensorSpec(name="o_BHD", axes=("b", "hq", "d")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule=RULE,
    baseline="torch_eager",
    best=best.decode,
    first=tuple(v.name for v in VARIANTS),
    variants=VARIANTS,
    presets=PRESETS,
    slab="b",
    check=check_heads,
)
