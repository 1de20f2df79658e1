"""The op `w4a16_matmul`: its cost, its presets and its variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Blocks, Preset, Sizes, TensorSpec
from kernelviz.ops.w4a16_matmul import best
from kernelviz.ops.w4a16_matmul.layout import GROUP, GROUP_BYTES, groups
from kernelviz.ops.w4a16_matmul.reference import bound, reference
from kernelviz.ops.w4a16_matmul.variants import VARIANTS


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """A product and an addition for each of MNK terms.

    Read once: half a byte for a weight, a scale and half a byte for each group of 128 weights, and x. Written once: y.

    >>> cost({"m": 2, "n": 4, "k": 256}, 2)
    Cost(work_flop=4096, read_bytes=1556, written_bytes=16)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    weights_bytes = groups(k) * (n * (GROUP_BYTES + itemsize_bytes) + -(-n // 2))
    return Cost(
        work_flop=2 * m * n * k, read_bytes=weights_bytes + m * k * itemsize_bytes, written_bytes=m * n * itemsize_bytes
    )


def _preset(name: str, caption: str, n: int, k: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,4,8,16,64,512,4096", "n": str(n), "k": str(k)})


OPS = (
    Op(
        name="w4a16_matmul",
        family="matrix product",
        summary="Product with weights of 4 bits and activations of 16 bits",
        formula="y = x · ((q − zero) · scale)ᵀ, scale and zero for 128 inputs of an output",
        axes=(
            Axis(name="m", caption="rows of x and y", default="1,16,64", cpu_default="1,16"),
            Axis(name="n", caption="output features", default="8192", cpu_default="2^10"),
            Axis(name="k", caption="input features", default="n", cpu_default="n"),
        ),
        dtypes=("bf16", "fp16"),
        inputs=(
            TensorSpec(name="x_MK", axes=("m", "k")),
            # Bytes of any value are two weights or two zero points, so all 16 values of either are equally frequent.
            TensorSpec(name="w_NGB", axes=("n", Blocks("k", GROUP), GROUP_BYTES), dtype="uint8", data="uniform"),
            TensorSpec(name="s_GN", axes=(Blocks("k", GROUP), "n")),
            TensorSpec(name="z_GH", axes=(Blocks("k", GROUP), Blocks("n", 2)), dtype="uint8", data="uniform"),
        ),
        outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ 1.01 u |y| + max(√K, min(K, 8)) 2⁻²⁴ Σ|x||w| + 3 u √Σx²w²: added up in fp32, rounded once, "
            "and each weight may be rounded once to 16 bits"
        ),
        baseline="torch_eager",
        best=best.w4a16,
        first=("torch_eager", "torch_compile", "triton_fused", "triton_gemv", "cuda_gemv", "cuda_mma"),
        variants=VARIANTS,
        presets=(
            _preset("llama-3-8b", "Llama 3 8B, gate and up projection in one", 28672, 4096),
            _preset("llama-3-8b-qkv", "Llama 3 8B, query, key and value in one", 6144, 4096),
            _preset("llama-3-8b-down", "Llama 3 8B, down projection", 4096, 14336),
            _preset("llama-3-70b", "Llama 3 70B, gate or up projection", 28672, 8192),
            _preset("llama-3-70b-output", "Llama 3 70B, output projection of attention", 8192, 8192),
            _preset("qwen2.5-7b", "Qwen2.5 7B, gate or up projection", 18944, 3584),
        ),
        slab="m",
    ),
)
