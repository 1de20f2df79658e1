"""Softmax of rows: two reductions and an exponential between one read and one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Five operations an element (compare, subtract, exp, add, divide); rows read once and written once.

    >>> cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=10240, read_bytes=8192, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=5 * m * n, read_bytes=m * n * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def reference(x_MN: Tensor) -> Tensors:
    """exp(x - max) / Σ exp(x - max) along each row, in the dtype of the input (float64 in the gate)."""
    return (x_MN.softmax(-1),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """y (1.01 u + (16 + √N + 2.5 (d + D)) 2^-24): everything in fp32, one rounding to the output's format.

    d = max - x of the element. Its subtraction, log2 e (a quarter of a unit) and the product with it are rounded, each in
    proportion to d, and an error of the exponent is a relative one of the power: 2.25 d 2^-24. The sum errs by the mean of
    that over its terms, weighted by y: D = Σ y d, which is at most ln N. 16 · 2^-24 pay for the approximate power (2^-22,
    PTX ISA, ex2.approx), in the element and in the sum, the division (2 units in the last place) and products of these.
    √N 2^-24 is what a sum of N positive terms errs by, as in rmsnorm; in sums made of blocks, whose own error is far smaller,
    it pays for the rescaling to each new maximum.
    """
    x_MN, y_MN = inputs[0], outputs[0]
    # Of an entry whose y is 0, one that is masked with -inf say, only the smallest numbers count.
    depth_MN = (x_MN.amax(-1, keepdim=True) - x_MN).where(y_MN > 0, 0.0)
    mean_depth_M1 = (y_MN * depth_MN).sum(-1, keepdim=True)
    units_MN = 16 + problem.sizes["n"] ** 0.5 + 2.5 * (depth_MN + mean_depth_M1)
    return (y_MN * units_MN * FP32_ROUNDOFF + stored(y_MN, problem.dtype),)


@variant(backend="torch")
def composite_eager(x_MN: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: max, subtract, exp, sum and divide each pass over the whole matrix."""

    def launch() -> Tensor:
        wide_MN = x_MN.float()
        e_MN = (wide_MN - wide_MN.amax(-1, keepdim=True)).exp()
        return (e_MN / e_MN.sum(-1, keepdim=True)).to(x_MN.dtype)

    return launch


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """Fused eager: torch.softmax, one kernel on a GPU."""
    return lambda: x_MN.softmax(-1)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of softmax: inductor makes one kernel of its steps."""
    from kernelviz.ops.inductor import compiled

    def softmax(x_MN: Tensor) -> Tensor:
        return x_MN.softmax(-1)

    return compiled(softmax, x_MN)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_online(x_MN: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over blocks of the row; a second pass, served by L2, divides."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_online(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_block_per_row(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_persistent(x_MN: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows, short ones several at once; the next rows load ahead."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_persistent(x_MN)


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
        first=("composite_eager", "torch_eager", "torch_compile", "triton_block_per_row", "triton_persistent"),
        variants=(
            composite_eager,
            torch_eager,
            torch_compile,
            triton_online,
            triton_block_per_row,
            triton_persistent,
        ),
        presets=(
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
    ),
)
