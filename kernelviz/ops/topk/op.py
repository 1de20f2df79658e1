"""The op `topk`: a sort does far more work than needed, and a selection reads the row once."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.topk import best
from kernelviz.ops.topk.reference import bound, compared, reference
from kernelviz.ops.topk.variants import (
    cuda_radix_select,
    cuda_threshold,
    sort_eager,
    torch_compile,
    torch_eager,
    triton_bitonic,
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One comparison an element; the matrix read once, k numbers and k 64-bit indices a row written.

    >>> cost({"m": 2, "n": 1024, "k": 8}, 4)
    Cost(work_flop=2048, read_bytes=8192, written_bytes=192)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(work_flop=m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * k * (itemsize_bytes + 8))


OPS = (
    Op(
        name="topk",
        family="reduction",
        summary="The k largest elements of each row, in descending order, and their places",
        formula="y = the k largest of each row",
        axes=(
            Axis(name="m", caption="rows", default="2^26/n", cpu_default="2^18/n"),
            Axis(name="n", caption="row length", default="8192,32768,131072", cpu_default="2^10,2^12,2^14"),
            Axis(name="k", caption="elements taken", default="8,64,256", cpu_default="8,64"),
        ),
        dtypes=("fp32", "bf16", "fp16"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(
            TensorSpec(name="values_MK", axes=("m", "k")),
            TensorSpec(name="indices_MK", axes=("m", "k"), dtype="int64"),
        ),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: values, the elements that the indices point to, and k different indices; of equal elements any will do",
        baseline="torch_eager",
        best=best.largest,
        first=("sort_eager", "torch_eager", "triton_bitonic", "cuda_radix_select", "cuda_threshold"),
        variants=(sort_eager, torch_eager, torch_compile, triton_bitonic, cuda_radix_select, cuda_threshold),
        presets=(
            Preset(
                name="llama-3",
                caption="Llama 3, sampling from a vocabulary of 128256",
                sizes={"m": "1,16,64,512,4096", "n": "128256", "k": "64"},
            ),
            Preset(
                name="qwen2.5-7b",
                caption="Qwen 2.5 7B, sampling from a vocabulary of 152064",
                sizes={"m": "1,16,64,512,4096", "n": "152064", "k": "64"},
            ),
            Preset(
                name="gpt-2",
                caption="GPT-2, sampling from a vocabulary of 50257",
                sizes={"m": "1,16,64,512,4096", "n": "50257", "k": "50"},
            ),
            Preset(
                name="deepseek-v3",
                caption="DeepSeek-V3, 8 of 256 experts for each token",
                sizes={"m": "512,4096,16384", "n": "256", "k": "8"},
            ),
            Preset(
                name="large",
                caption="512 MiB in fp32: rows of 8192, 32000 and 128256",
                sizes={"m": "2^27/n", "n": "8192,32000,128256", "k": "8,64,256"},
            ),
        ),
        slab="m",
        compared=compared,
        compared_outputs=(
            TensorSpec(name="values_MK", axes=("m", "k")),
            TensorSpec(name="pointed_MK", axes=("m", "k")),
            TensorSpec(name="different_M", axes=("m",), dtype="int64"),
        ),
    ),
)
