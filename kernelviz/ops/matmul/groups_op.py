"""The op `grouped_matmul`: its cost, its presets and its variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Product, Sizes, TensorSpec
from kernelviz.ops.kernels.groups import ends, groups_with_rows
from kernelviz.ops.matmul import best
from kernelviz.ops.matmul.groups_reference import bound, reference
from kernelviz.ops.matmul.variants_groups import GROUP_VARIANTS
from kernelviz.ops.matmul.variants_groups_wgmma import GROUP_WGMMA_VARIANTS

_OFFSET_BYTES = 4
_ROWS = Product(("g", "m"))


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """A product and an addition for each of the N·K terms of a row; x, offsets and the weights of groups with rows read once.

    >>> cost({"g": 2, "m": 3, "n": 5, "k": 7, "s": 1}, 2)
    Cost(work_flop=420, read_bytes=232, written_bytes=60)
    >>> cost({"g": 2, "m": 3, "n": 5, "k": 7, "s": 2}, 2)
    Cost(work_flop=420, read_bytes=162, written_bytes=60)
    """
    rows, n, k = sizes["g"] * sizes["m"], sizes["n"], sizes["k"]
    return Cost(
        work_flop=2 * rows * n * k,
        read_bytes=(rows * k + groups_with_rows(sizes) * n * k) * itemsize_bytes + _OFFSET_BYTES * sizes["g"],
        written_bytes=rows * n * itemsize_bytes,
    )


def _preset(name: str, caption: str, g: int, n: int, k: int) -> Preset:
    sizes = {"g": str(g), "m": "16,64,256,1024", "n": str(n), "k": str(k), "s": "1,2"}
    return Preset(name=name, caption=caption, sizes=sizes)


GROUPED_MATMUL = Op(
    name="grouped_matmul",
    family="matrix product",
    summary="Products of groups of rows, each with its own weight: a mixture of experts",
    formula="y[i] = w[g] · x[i] for the rows i of group g",
    axes=(
        Axis(name="g", caption="groups (experts)", default="8", cpu_default="4"),
        Axis(name="m", caption="rows of a group, on average", default="2^6..2^12", cpu_default="2^4..2^7"),
        Axis(name="n", caption="columns of y, rows of a weight", default="4096", cpu_default="256"),
        Axis(name="k", caption="columns of x and of a weight", default="4096", cpu_default="256"),
        Axis(
            name="s",
            caption="rows of the largest group, in multiples of m",
            default="2",
            cpu_default="2",
        ),
    ),
    dtypes=("bf16", "fp16"),
    inputs=(
        TensorSpec(name="x_TK", axes=(_ROWS, "k")),
        TensorSpec(name="w_GNK", axes=("g", "n", "k")),
        TensorSpec(name="offsets_G", axes=("g",), dtype="int32", values=ends),
    ),
    outputs=(TensorSpec(name="y_TN", axes=(_ROWS, "n")),),
    cost=cost,
    reference=reference,
    bound=bound,
    rule="|error| ≤ 1.01 u |y| + max(√K, min(K, 8)) 2⁻²⁴ Σ|x||w|: added up in fp32, rounded once",
    baseline="torch_eager",
    best=best.groups,
    first=(
        "torch_eager",
        "torch_padded",
        "torch_grouped_mm",
        "triton_tiles",
        "triton_persistent",
        "triton_descriptors",
        "cuda_wgmma",
        "cuda_wgmma_tma_store",
        "cuda_wgmma_halves",
        "cuda_wgmma_cluster",
    ),
    variants=(*GROUP_VARIANTS, *GROUP_WGMMA_VARIANTS),
    # Weights as the models' configurations give them: output features (n) by input features (k). Of DeepSeek-V3's 256 experts,
    # the 32 that a GPU has where eight share them.
    presets=(
        Preset(
            name="square",
            caption="8 experts of 4096 × 4096",
            sizes={"g": "8", "m": "64,256,1024,4096", "n": "4096", "k": "4096", "s": "1,2,4"},
        ),
        _preset("mixtral-8x7b", "Mixtral 8x7B, gate or up projection", 8, 14336, 4096),
        _preset("mixtral-8x7b-down", "Mixtral 8x7B, down projection", 8, 4096, 14336),
        _preset("deepseek-v3", "DeepSeek-V3, gate and up of 32 of 256 experts", 32, 4096, 7168),
        _preset("deepseek-v3-down", "DeepSeek-V3, down projection of 32 of 256 experts", 32, 7168, 2048),
        _preset("qwen3-30b-a3b", "Qwen3-30B-A3B, gate and up of 128 experts", 128, 1536, 2048),
        _preset("qwen3-30b-a3b-down", "Qwen3-30B-A3B, down projection of 128 experts", 128, 2048, 768),
    ),
)
