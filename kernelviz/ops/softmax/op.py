"""The op `softmax` and its backward pass: two reductions and an exponential between one read and one write."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.softmax import best
from kernelviz.ops.softmax.reference import backward_bound, backward_reference, bound, reference
from kernelviz.ops.softmax.variants import (
    composite_eager,
    cuda_cluster,
    cuda_columns,
    cuda_row,
    cuda_slab,
    cuda_slab_stages,
    cuda_split,
    liger,
    torch_compile,
    torch_eager,
    triton_block_per_row,
    triton_known_size,
    triton_online,
    triton_persistent,
    triton_three_pass,
)


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (two products, add, subtract); y, which the forward pass saved, and dy read, dx written.

    >>> backward_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=8192, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=4 * m * n, read_bytes=2 * m * n * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


BACKWARD = Backward(
    inputs=(TensorSpec(name="x_MN", axes=("m", "n")), TensorSpec(name="dy_MN", axes=("m", "n"))),
    outputs=(TensorSpec(name="dx_MN", axes=("m", "n")),),
    cost=backward_cost,
    reference=backward_reference,
    bound=backward_bound,
    rule=(
        "|error| ≤ 1.01 u (|dx| + y |dy|) + y (ρ |dy − D| + Σ (ρ + u + √N 2⁻²⁴) y |dy|), D = Σ y dy, ρ the forward pass's "
        "relative error of y: y as it was stored, products y dy rounded to the format at most once, sums in fp32 "
        "(of equal inputs, N / 8 instead of √N)"
    ),
    slab="m",
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Five operations an element (compare, subtract, exp, add, divide); rows read once and written once.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=10240, read_bytes=8192, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=5 * m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


OPS = (
    Op(
        name="softmax",
        family="normalisation",
        summary="Softmax of each row",
        formula="y = exp(x − max x) / Σ exp(x − max x)",
        axes=(
            Axis(name="m", caption="rows", default="2^27/n", cpu_default="2^20/n"),
            Axis(name="n", caption="row length", default="2^7..2^17", cpu_default="2^8,2^10,2^12"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ y (1.01 u + (16 + √N + 2.5 (d + D)) 2⁻²⁴), d = max − x, D = Σ y d: in fp32, rounded once to the "
            "output's format"
        ),
        baseline="torch_eager",
        best=best.softmax,
        first=("torch_eager", "torch_compile", "liger", "triton_online", "triton_persistent", "cuda_cluster"),
        variants=(
            composite_eager,
            torch_eager,
            torch_compile,
            liger,
            triton_three_pass,
            triton_online,
            triton_block_per_row,
            triton_persistent,
            triton_known_size,
            cuda_row,
            cuda_cluster,
            cuda_columns,
            cuda_slab,
            cuda_slab_stages,
            cuda_split,
        ),
        presets=(
            Preset(
                name="rows",
                caption="2^27 elements in rows of 2048 to 131072",
                sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072"},
            ),
            Preset(
                name="large",
                caption="2^28 elements: 512 MiB each way in half precision",
                sizes={"m": "8192", "n": "32768"},
            ),
            Preset(
                name="attention",
                caption="Attention scores: 4096 queries, 128 to 32768 keys",
                sizes={"m": "4096", "n": "2^7..2^15"},
            ),
            Preset(
                name="llama-3",
                caption="Llama 3, vocabulary of 128256",
                sizes={"m": "1,16,64,512,4096", "n": "128256"},
            ),
            Preset(name="gpt-2", caption="GPT-2, vocabulary of 50257", sizes={"m": "1,16,64,512,4096", "n": "50257"}),
        ),
        slab="m",
        backward=BACKWARD,
    ),
)
