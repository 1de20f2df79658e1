"""The ops `embedding`, `index_select` and `gather`: the rows that ids select, under the three names that torch has for it."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.catalog.variant import Variant
from kernelviz.ops.embedding import best
from kernelviz.ops.embedding.reference import bound, reference
from kernelviz.ops.embedding.variants import OWN_KERNELS, embedding_variants, gather_variants, index_select_variants


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Each row that at least one id selects is read once; 8 bytes an id, and a row written for each; no arithmetic.

    The ids are all rows in random order, repeated where there are fewer rows than ids: min(t, v) different ones. Of a single row
    all ids are known, so that none needs to be read.

    >>> cost({"v": 100, "t": 3, "d": 1024}, 2)
    Cost(work_flop=0, read_bytes=6168, written_bytes=6144)
    >>> cost({"v": 2, "t": 3, "d": 1024}, 2)
    Cost(work_flop=0, read_bytes=4120, written_bytes=6144)
    >>> cost({"v": 1, "t": 3, "d": 1024}, 2)
    Cost(work_flop=0, read_bytes=2048, written_bytes=6144)
    """
    v, t, row_bytes = sizes["v"], sizes["t"], sizes["d"] * itemsize_bytes
    ids_bytes = 8 * t if v > 1 else 0
    return Cost(work_flop=0, read_bytes=min(t, v) * row_bytes + ids_bytes, written_bytes=t * row_bytes)


TOKENS = "1,16,64,512,4096,16384"


def _op(name: str, summary: str, formula: str, torch_variants: tuple[Variant, ...], presets: tuple[Preset, ...]) -> Op:
    return Op(
        name=name,
        family="layout",
        summary=summary,
        formula=formula,
        axes=(
            Axis(name="v", caption="rows of the table", default="2^16", cpu_default="2^12"),
            Axis(name="t", caption="ids", default="2^8..2^16", cpu_default="2^8,2^10,2^12"),
            Axis(name="d", caption="row length", default="4096", cpu_default="256"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(
            TensorSpec(name="x_VD", axes=("v", "d")),
            TensorSpec(name="ids_T", axes=("t",), dtype="int64", below="v", ids="permutation"),
        ),
        outputs=(TensorSpec(name="y_TD", axes=("t", "d")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = x[ids], no rounding",
        baseline="torch_eager",
        best=best.rows,
        first=("torch_eager", "torch_compile", "triton_tile", "cuda_row_vec16", "cuda_vec16_unrolled"),
        variants=(*torch_variants, *OWN_KERNELS),
        presets=presets,
        slab="t",
    )


def _vocabulary(name: str, caption: str, v: int, d: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"v": str(v), "t": TOKENS, "d": str(d)})


def _large(caption: str) -> Preset:
    return Preset(name="large", caption=caption, sizes={"v": "2^17", "t": "2^16", "d": "4096"})


_ROWS = Preset(
    name="rows",
    caption="All of 2^27 elements in another order, as rows of 64 to 8192",
    sizes={"v": "2^27/d", "t": "2^27/d", "d": "64,128,256,512,1024,4096,8192"},
)


OPS = (
    _op(
        "embedding",
        "Embedding: for each token, the row of a table that its id selects",
        "y[i] = w[ids[i]]",
        embedding_variants(),
        (
            _vocabulary("llama-3-8b", "Llama 3 8B: 128256 tokens, hidden size 4096", 128256, 4096),
            _vocabulary("llama-3-70b", "Llama 3 70B: 128256 tokens, hidden size 8192", 128256, 8192),
            _vocabulary("qwen2.5-7b", "Qwen2.5 7B: 152064 tokens, hidden size 3584", 152064, 3584),
            _vocabulary("deepseek-v3", "DeepSeek-V3: 129280 tokens, hidden size 7168", 129280, 7168),
            _vocabulary("gpt-2", "GPT-2: 50257 tokens, hidden size 768", 50257, 768),
            _vocabulary("bert-base", "BERT base: 30522 tokens, hidden size 768", 30522, 768),
            _large("65536 ids into a table of 1 GiB in bf16"),
        ),
    ),
    _op(
        "index_select",
        "Selection of rows by index",
        "y[i] = x[ids[i]]",
        index_select_variants(),
        (_large("65536 of 131072 rows of 8 KiB in bf16"), _ROWS),
    ),
    _op(
        "gather",
        "Gather of rows, with one index for each element",
        "y[i, j] = x[ids[i], j]",
        gather_variants(),
        (_large("65536 of 131072 rows of 8 KiB in bf16"), _ROWS),
    ),
)
