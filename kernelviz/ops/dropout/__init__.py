"""Dropout: random numbers beside one read and one write, and a mask that need not be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.catalog.rounding import stored
from kernelviz.ops.dropout import mask

if TYPE_CHECKING:
    from torch import Tensor

P = 0.25
"""The probability with which an element is dropped. The scale of the others, 4/3, is no number of any format."""
KEPT = 1 - P
AGREE = P * P + KEPT * KEPT
"""The probability that two elements are both kept or both dropped."""


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once, one product each. A mask is no part of it: it can be drawn again from a seed.

    >>> cost({"n": 1024}, 2)
    Cost(work_flop=1024, read_bytes=2048, written_bytes=2048)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def saved_mask_bytes(sizes: Sizes, itemsize_bytes: int) -> int:
    """What a dropout moves that stores its mask, a byte an element.

    >>> saved_mask_bytes({"n": 1024}, 2) / cost({"n": 1024}, 2).moved_bytes
    1.25
    """
    return cost(sizes, itemsize_bytes).moved_bytes + sizes["n"]


def reference(x_N: Tensor) -> Tensors:
    """x / (1 - p), for what is kept; the probabilities that the shares of `mask.statistics` must come near to."""
    return (
        x_N / KEPT,
        x_N.new_full((1,), KEPT),
        x_N.new_full((mask.PARTS,), KEPT),
        x_N.new_full((len(mask.LAGS),), AGREE),
    )


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Two roundings of a kept value, of the scale (torch on a CPU rounds it to the output's format) and of the product.

    Six standard deviations of each share, see `mask.allowed`.
    """
    return (stored(outputs[0], problem.dtype, times=2), *mask.allowed(inputs[0], P))


def shown(inputs: Tensors, outputs: Tensors) -> Tensors:
    """Kept values as they are, x / (1 - p) in the place of dropped ones (exactly 0), and the statistics of the mask."""
    x_N, y_N = inputs[0], outputs[0]
    kept_N = y_N != 0
    value_N = y_N.double().where(kept_N, x_N.double() / KEPT)
    return (value_N, *mask.statistics(x_N, kept_N, KEPT, AGREE))


@variant(backend="torch")
def composite_eager(x_N: Tensor) -> Launch:
    """Single torch ops: random numbers, a mask, two products; each writes a vector that the next one reads."""
    import torch

    def launch() -> Tensor:
        keep_N = torch.rand_like(x_N, dtype=torch.float32) >= P
        return x_N * keep_N * (1 / KEPT)

    return launch


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.nn.functional.dropout: on a GPU one kernel, which writes a mask of a byte an element that nobody reads here."""
    from torch.nn import functional

    return lambda: functional.dropout(x_N, P, training=True)


@variant(backend="torch")
def torch_saved_mask(x_N: Tensor) -> Launch:
    """torch.native_dropout, its mask kept as a backward pass needs it: a quarter more bytes in half precision."""
    import torch

    saved: list[Tensor] = []

    def launch() -> Tensor:
        y_N, mask_N = torch.native_dropout(x_N, P, True)
        saved[:] = [mask_N]
        return y_N

    return launch


def dropout(x_N: Tensor) -> Tensor:
    """What is compiled."""
    from torch.nn import functional

    return functional.dropout(x_N, P, training=True)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile: Philox inside one Triton kernel made by inductor, no mask stored; a second kernel draws its seed."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(dropout, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_rand(x_N: Tensor) -> Launch:
    """Triton, tl.rand of a seed and the index: no mask stored, but three of four numbers of each Philox call are thrown away."""
    from kernelviz.ops.dropout import triton as kernels

    return kernels.bind_rand(x_N, P)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_philox(x_N: Tensor) -> Launch:
    """Triton, tl.randint4x: one Philox call for four elements, in half precision for eight; compared as integers."""
    from kernelviz.ops.dropout import triton as kernels

    return kernels.bind_philox(x_N, P)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_philox(x_N: Tensor) -> Launch:
    """CUDA C++, one Philox call a 16-byte word, which has as many random bits: 16 an element in half precision."""
    from kernelviz.ops.dropout import cuda as kernels

    return kernels.bind_philox(x_N, P)


def _hidden(name: str, caption: str) -> Preset:
    return Preset(name=name, caption=caption, sizes={"n": ",".join(str(m * 768) for m in (1, 16, 64, 512, 4096, 8192))})


OPS = (
    Op(
        name="dropout",
        family="elementwise",
        summary="Each element dropped with probability 1/4, the others scaled by 4/3",
        formula="y = x / (1 − p) with probability 1 − p, else 0; p = 1/4",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "kept elements: |error| ≤ 2.02 u |x / (1 − p)|, dropped ones exactly 0; the share of kept ones, overall and in 64 "
            "parts, and of pairs at 31 distances that agree: within six standard deviations"
        ),
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_rand", "triton_philox", "cuda_philox"),
        variants=(
            composite_eager,
            torch_eager,
            torch_saved_mask,
            torch_compile,
            triton_rand,
            triton_philox,
            cuda_philox,
        ),
        presets=(
            _hidden("gpt-2", "GPT-2, 1 to 8192 tokens of 768"),
            _hidden("bert-base", "BERT base, 1 to 8192 tokens of 768"),
            Preset(
                name="large",
                caption="Far larger than any L2: 512 MiB to 2 GiB in half precision",
                sizes={"n": "2^27..2^29"},
            ),
        ),
        shown=shown,
        shows=(
            TensorSpec(name="value_N", axes=("n",), dtype="fp64"),
            TensorSpec(name="kept_share", axes=(1,), dtype="fp64"),
            TensorSpec(name="kept_share_of_parts", axes=(mask.PARTS,), dtype="fp64"),
            TensorSpec(name="agreement_at_distances", axes=(len(mask.LAGS),), dtype="fp64"),
        ),
    ),
)
