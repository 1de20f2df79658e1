"""`rope`, rotary position embedding: each pair of a head's numbers is rotated by an angle given by its token and its index."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.rope import best
from kernelviz.ops.rope.reference import backward_bound, backward_reference, bound, reference
from kernelviz.ops.rope.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Six operations a pair (four products, two sums); heads read and written once, one row of cosines and sines a token read.

    >>> cost({"t": 2, "hq": 32, "hk": 8, "p": 64}, 2)
    Cost(work_flop=30720, read_bytes=20992, written_bytes=20480)
    """
    t, p = sizes["t"], sizes["p"]
    heads_bytes = t * (sizes["hq"] + sizes["hk"]) * 2 * p * itemsize_bytes
    tables_bytes = 2 * t * p * itemsize_bytes
    return Cost(
        work_flop=6 * t * (sizes["hq"] + sizes["hk"]) * p,
        read_bytes=heads_bytes + tables_bytes,
        written_bytes=heads_bytes,
    )


_Q = TensorSpec(name="q_TH2P", axes=("t", "hq", 2, "p"))
_K = TensorSpec(name="k_TH2P", axes=("t", "hk", 2, "p"))
# Any numbers: an implementation must not rely on cos² + sin² = 1.
_TABLES = (
    TensorSpec(name="cos_TP", axes=("t", "p"), data="uniform"),
    TensorSpec(name="sin_TP", axes=("t", "p"), data="uniform"),
)
_OUTPUTS = (
    TensorSpec(name="q_out_TH2P", axes=("t", "hq", 2, "p")),
    TensorSpec(name="k_out_TH2P", axes=("t", "hk", 2, "p")),
)
_RULE = "|error| ≤ 1.01 u (|x cos| + |z sin| + |y|): products and sum each rounded to the format of the tensors"
_BACKWARD = Backward(
    inputs=(
        _Q,
        _K,
        *_TABLES,
        TensorSpec(name="dq_TH2P", axes=("t", "hq", 2, "p")),
        TensorSpec(name="dk_TH2P", axes=("t", "hk", 2, "p")),
    ),
    outputs=(
        TensorSpec(name="q_grad_TH2P", axes=("t", "hq", 2, "p")),
        TensorSpec(name="k_grad_TH2P", axes=("t", "hk", 2, "p")),
    ),
    cost=cost,
    reference=backward_reference,
    bound=backward_bound,
    rule=_RULE,
    slab="t",
)
_TOKENS = "1,16,64,512,4096,16384"


def _preset(name: str, caption: str, hq: int, hk: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"t": _TOKENS, "hq": str(hq), "hk": str(hk), "p": "64"})


ROPE = Op(
    name="rope",
    family="attention",
    summary="Rotary position embedding of queries and keys; as in Llama, the first half of a head is paired with the second",
    formula="(x, z) → (x cos − z sin, z cos + x sin)",
    axes=(
        Axis(name="t", caption="tokens", default="2^8..2^14", cpu_default="64,256,1024"),
        Axis(name="hq", caption="query heads", default="32", cpu_default="8"),
        Axis(name="hk", caption="key heads", default="8", cpu_default="2"),
        Axis(name="p", caption="pairs a head, half its dimension", default="64", cpu_default="64"),
    ),
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(_Q, _K, *_TABLES),
    outputs=_OUTPUTS,
    cost=cost,
    reference=reference,
    bound=bound,
    rule=_RULE,
    baseline="torch_eager",
    best=best.rope,
    first=("torch_eager", "torch_compile", "liger", "triton_token", "cuda_vec16"),
    variants=VARIANTS,
    presets=(
        _preset("llama-3-8b", "Llama 3 8B: 32 query and 8 key heads of 128", 32, 8),
        _preset("llama-3-70b", "Llama 3 70B: 64 query and 8 key heads of 128", 64, 8),
        _preset("qwen2.5-7b", "Qwen2.5 7B: 28 query and 4 key heads of 128", 28, 4),
        Preset(
            name="large",
            caption="Far larger than any L2: 640 MiB of heads in bf16",
            sizes={"t": "2^15", "hq": "32", "hk": "8", "p": "64"},
        ),
    ),
    slab="t",
    backward=_BACKWARD,
)
