"""`scatter_add`, as in the gradient of an embedding: several rows may have one id, so kernels need atomics or a sort."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.scatter_add import best
from kernelviz.ops.scatter_add.reference import bound, reference
from kernelviz.ops.scatter_add.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One addition an element; rows and ids of 8 bytes read once, sums that have a row read and written once.

    The ids are a random permutation of all sums, repeated where there are fewer sums than ids: min(t, v) different ones. Of a
    single sum all ids are known, so that none needs to be read.

    >>> cost({"v": 100, "t": 300, "d": 1024}, 2)
    Cost(work_flop=307200, read_bytes=821600, written_bytes=204800)
    >>> cost({"v": 1, "t": 3, "d": 1024}, 2)
    Cost(work_flop=3072, read_bytes=8192, written_bytes=2048)
    >>> cost({"v": 300, "t": 100, "d": 1024}, 2)
    Cost(work_flop=102400, read_bytes=410400, written_bytes=204800)
    """
    v, t, row_bytes = sizes["v"], sizes["t"], sizes["d"] * itemsize_bytes
    sums_bytes = min(t, v) * row_bytes
    ids_bytes = 8 * t if v > 1 else 0
    return Cost(work_flop=t * sizes["d"], read_bytes=sums_bytes + t * row_bytes + ids_bytes, written_bytes=sums_bytes)


def _preset(name: str, caption: str, v: int, d: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"v": str(v), "t": "512,4096,16384", "d": str(d)})


SCATTER_ADD = Op(
    name="scatter_add",
    family="layout",
    summary="Addition of each row to the row that its id selects, in place",
    formula="x[ids[i]] += s[i]",
    axes=(
        Axis(name="v", caption="sums", default="2^13", cpu_default="2^10"),
        Axis(name="t", caption="rows added", default="2^10..2^17", cpu_default="2^8,2^10,2^12"),
        Axis(name="d", caption="row length", default="1024", cpu_default="256"),
    ),
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(
        TensorSpec(name="x_VD", axes=("v", "d")),
        TensorSpec(name="src_TD", axes=("t", "d")),
        TensorSpec(name="ids_T", axes=("t",), dtype="int64", below="v", ids="permutation"),
    ),
    outputs=(TensorSpec(name="y_VD", axes=("v", "d")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ 1.01 u |y| + 2 √K 2⁻²⁴ Σ|terms|, K terms a sum: in fp32, any order, rounded once to the output's format",
    baseline="torch_eager",
    best=best.segments,
    first=("torch_eager", "torch_compile", "triton_segments", "cuda_atomics_vec16", "cuda_segments"),
    variants=VARIANTS,
    presets=(
        Preset(
            name="large",
            caption="Eight rows a sum: 65536 rows of 1024 into 8192 sums, and four times as many",
            sizes={"v": "2^13", "t": "2^16,2^18", "d": "1024"},
        ),
        Preset(
            name="few",
            caption="Few sums of many rows: every atomic addition waits for another",
            sizes={"v": "8,64,512", "t": "2^16", "d": "1024"},
        ),
        _preset("llama-3-8b", "Llama 3 8B: gradient of the embedding, 128256 × 4096", 128256, 4096),
        _preset("gpt-2", "GPT-2: gradient of the embedding, 50257 × 768", 50257, 768),
        _preset("bert-base", "BERT base: gradient of the embedding, 30522 × 768", 30522, 768),
    ),
)
