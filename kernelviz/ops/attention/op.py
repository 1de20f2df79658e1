"""`attention` and `causal_attention`: each query weighs the values of all keys, or of those up to its own position."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.attention import best, reference
from kernelviz.ops.attention.variants import ladder
from kernelviz.ops.catalog.op import Backward, CostModel, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.kernels.attention_heads import check_heads


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """A product and an addition for each element of a query and a key, and again for each weight and value; tensors touched once.

    >>> cost({"b": 1, "s": 8, "hq": 4, "hk": 2, "d": 64}, 2)
    Cost(work_flop=65536, read_bytes=8192, written_bytes=4096)
    """
    b, s, d = sizes["b"], sizes["s"], sizes["d"]
    return _cost_of_pairs(sizes, itemsize_bytes, pairs=b * sizes["hq"] * s * s * d)


def causal_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """As `cost`, of half the products, which is how published figures count them.

    >>> causal_cost({"b": 1, "s": 8, "hq": 4, "hk": 2, "d": 64}, 2)
    Cost(work_flop=32768, read_bytes=8192, written_bytes=4096)
    """
    b, s, d = sizes["b"], sizes["s"], sizes["d"]
    return _cost_of_pairs(sizes, itemsize_bytes, pairs=b * sizes["hq"] * s * s * d // 2)


def _cost_of_pairs(sizes: Sizes, itemsize_bytes: int, pairs: int) -> Cost:
    head_bytes = sizes["b"] * sizes["s"] * sizes["d"] * itemsize_bytes
    return Cost(
        work_flop=4 * pairs,
        read_bytes=(sizes["hq"] + 2 * sizes["hk"]) * head_bytes,
        written_bytes=sizes["hq"] * head_bytes,
    )


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Five products instead of two, scores and weights being computed again; q, k, v, o and the gradients touched once.

    >>> backward_cost({"b": 1, "s": 8, "hq": 4, "hk": 2, "d": 64}, 2)
    Cost(work_flop=163840, read_bytes=16384, written_bytes=8192)
    """
    return _backward_cost_of(sizes, itemsize_bytes, cost(sizes, itemsize_bytes))


def causal_backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """As `backward_cost`, of half the products.

    >>> causal_backward_cost({"b": 1, "s": 8, "hq": 4, "hk": 2, "d": 64}, 2).work_flop
    81920
    """
    return _backward_cost_of(sizes, itemsize_bytes, causal_cost(sizes, itemsize_bytes))


def _backward_cost_of(sizes: Sizes, itemsize_bytes: int, forward: Cost) -> Cost:
    head_bytes = sizes["b"] * sizes["s"] * sizes["d"] * itemsize_bytes
    return Cost(
        work_flop=forward.work_flop // 2 * 5,
        read_bytes=(3 * sizes["hq"] + 2 * sizes["hk"]) * head_bytes,
        written_bytes=(sizes["hq"] + 2 * sizes["hk"]) * head_bytes,
    )


_Q = TensorSpec(name="q_BSHD", axes=("b", "s", "hq", "d"))
_K = TensorSpec(name="k_BSHD", axes=("b", "s", "hk", "d"))
_V = TensorSpec(name="v_BSHD", axes=("b", "s", "hk", "d"))
_O = TensorSpec(name="o_BSHD", axes=("b", "s", "hq", "d"))
_RULE = (
    "|error| ≤ u |o| + 5 √(Σ w² (u² v² + δ² (v − o)²)) + (16 + √S) 2⁻²⁴ Σ w |v| and one rounding: weights w rounded once, scores "
    "known to δ"
)


_BACKWARD_RULE = (
    "|error| ≤ 5 √(Σ squares of the independent errors of w, ∂w and ∂s, each rounded once or stored) + what Δ = Σ do o errs by + "
    "(16 + √S) 2⁻²⁴ Σ sizes of the terms and one rounding"
)


def _preset(name: str, caption: str, hq: int, hk: int, d: int) -> Preset:
    sizes = {"b": "1", "s": "1024,2048,4096,8192,16384", "hq": str(hq), "hk": str(hk), "d": str(d)}
    return Preset(name=name, caption=caption, sizes=sizes)


_PRESETS = (
    Preset(
        name="16-heads-1k",
        caption="16 sequences of 1,024, 16 heads of 128",
        sizes={"b": "16", "s": "1024", "hq": "16", "hk": "16", "d": "128"},
    ),
    Preset(
        name="16-heads-4k",
        caption="4 sequences of 4,096, 16 heads of 128",
        sizes={"b": "4", "s": "4096", "hq": "16", "hk": "16", "d": "128"},
    ),
    Preset(
        name="16-heads-16k",
        caption="A sequence of 16,384, 16 heads of 128",
        sizes={"b": "1", "s": "16384", "hq": "16", "hk": "16", "d": "128"},
    ),
    _preset("llama-3-8b", "Llama 3 8B: 32 query and 8 key heads of 128", 32, 8, 128),
    _preset("llama-3-70b", "Llama 3 70B: 64 query and 8 key heads of 128", 64, 8, 128),
    _preset("qwen2.5-7b", "Qwen2.5 7B: 28 query and 4 key heads of 128", 28, 4, 128),
    _preset("gpt-2", "GPT-2: 12 heads of 64", 12, 12, 64),
    _preset("gemma-7b", "Gemma 7B: 16 heads of 256", 16, 16, 256),
)


def _op(name: str, summary: str, formula: str, cost_model: CostModel, *, causal: bool) -> Op:
    return Op(
        name=name,
        family="attention",
        summary=summary,
        formula=formula,
        axes=(
            Axis(name="b", caption="batch, the number of sequences", default="4", cpu_default="1"),
            Axis(name="s", caption="positions of a sequence", default="2^9..2^13", cpu_default="64,128,256"),
            Axis(name="hq", caption="query heads", default="16", cpu_default="4"),
            Axis(name="hk", caption="key and value heads", default="16", cpu_default="2"),
            Axis(name="d", caption="dimension of a head", default="128", cpu_default="64"),
        ),
        dtypes=("bf16", "fp16"),
        inputs=(_Q, _K, _V),
        outputs=(_O,),
        cost=cost_model,
        reference=reference.causal_attention if causal else reference.attention,
        bound=reference.bound,
        rule=_RULE,
        baseline="torch_eager",
        best=best.causal_attention if causal else best.attention,
        first=("torch_eager", "sdpa_flash", "sdpa_cudnn", "triton_flash", "cuda_wgmma_by_size"),
        variants=ladder(causal=causal),
        presets=_PRESETS,
        slab="b",
        check=check_heads,
        backward=Backward(
            inputs=(_Q, _K, _V, TensorSpec(name="do_BSHD", axes=("b", "s", "hq", "d"))),
            outputs=(
                TensorSpec(name="dq_BSHD", axes=("b", "s", "hq", "d")),
                TensorSpec(name="dk_BSHD", axes=("b", "s", "hk", "d")),
                TensorSpec(name="dv_BSHD", axes=("b", "s", "hk", "d")),
            ),
            cost=causal_backward_cost if causal else backward_cost,
            reference=reference.causal_attention_backward if causal else reference.attention_backward,
            bound=reference.backward_bound,
            rule=_BACKWARD_RULE,
            slab="b",
        ),
    )


ATTENTION = _op(
    "attention",
    "Attention of whole sequences, in which each query sees all keys",
    "o = softmax(q kᵀ / √d) v",
    cost,
    causal=False,
)
CAUSAL_ATTENTION = _op(
    "causal_attention",
    "Attention of whole sequences, in which each query sees the keys up to its own position: prefill of a language model",
    "o = softmax(q kᵀ / √d + mask) v",
    causal_cost,
    causal=True,
)
