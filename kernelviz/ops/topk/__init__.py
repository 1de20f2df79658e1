"""The k largest of each row: a sort does far too much, a selection reads the row once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """One comparison an element; the matrix read once, k numbers and k 64-bit indices a row written.

    >>> cost({"m": 2, "n": 1024, "k": 8}, 4)
    Cost(work_flop=2048, read_bytes=8192, written_bytes=192)
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    return Cost(work_flop=m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * k * (itemsize_bytes + 8))


def reference(x_MN: Tensor, k: int) -> Tensors:
    """The k largest of each row in descending order; again, as what the indices must point to; k different indices."""
    values_MK = x_MN.topk(k).values
    return values_MK, values_MK, values_MK.new_full(x_MN.shape[:1], k).long()


def shown(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The values; the elements that the indices point to, NaN for one outside the row; how many of a row's indices differ."""
    x_MN, (values_MK, indices_MK) = inputs[0], outputs
    n = x_MN.shape[1]
    inside_MK = (indices_MK >= 0) & (indices_MK < n)
    pointed_MK = x_MN.gather(-1, indices_MK.clamp(0, n - 1)).where(inside_MK, float("nan"))
    ascending_MK = indices_MK.sort(-1).values
    different_M = 1 + (ascending_MK[:, 1:] != ascending_MK[:, :-1]).sum(-1)
    return values_MK, pointed_MK, different_M


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded. Of equal elements any may be taken, so values are compared and not indices."""
    return tuple(o.new_zeros(()).expand_as(o) for o in outputs)


@variant(backend="torch")
def sort_eager(x_MN: Tensor, k: int) -> Launch:
    """Tensor.sort of whole rows, of which the first k are kept: orders everything to use little of it."""

    def launch() -> tuple[Tensor, ...]:
        values_MN, indices_MN = x_MN.sort(dim=-1, descending=True)
        return values_MN[:, :k].contiguous(), indices_MN[:, :k].contiguous()

    return launch


@variant(backend="torch")
def torch_eager(x_MN: Tensor, k: int) -> Launch:
    """torch.topk: on a GPU a radix select of one or several blocks a row, then a sort of the k."""
    return lambda: tuple(x_MN.topk(k))


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor, k: int) -> Launch:
    """torch.compile of topk: inductor has no kernel of its own for it and calls torch's."""
    from kernelviz.ops.kernels.inductor import compiled

    def topk(x_MN: Tensor) -> tuple[Tensor, ...]:
        return tuple(x_MN.topk(k))

    return compiled(topk, x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_bitonic(x_MN: Tensor, k: int) -> Launch:
    """Triton, a program a row: a bitonic network keeps the k largest of each 4096 elements and of what it has."""
    from kernelviz.ops.topk import triton as kernels

    return kernels.bind_bitonic(x_MN, k)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_radix_select(x_MN: Tensor, k: int) -> Launch:
    """CUDA C++, a block a row: counts keys by 8 bits at a time and follows the digit of the k-th; reads the row 3 to 5 times."""
    from kernelviz.ops.topk import cuda as kernels

    return kernels.bind_radix_select(x_MN, k)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_threshold(x_MN: Tensor, k: int) -> Launch:
    """CUDA C++, one reading: what is not above the k-th largest so far is dropped; several blocks a row where there are few."""
    from kernelviz.ops.topk import cuda as kernels

    return kernels.bind_threshold(x_MN, k)


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
        shown=shown,
        shows=(
            TensorSpec(name="values_MK", axes=("m", "k")),
            TensorSpec(name="pointed_MK", axes=("m", "k")),
            TensorSpec(name="different_M", axes=("m",), dtype="int64"),
        ),
    ),
)
