"""Softmax of rows: two reductions and an exponential between one read and one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.softmax import backward
from kernelviz.ops.softmax.bounds import bound

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


@variant(backend="torch", backward=backward.composite)
def composite_eager(x_MN: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: max, subtract, exp, sum and divide each pass over the whole matrix."""
    return lambda: backward.composed(x_MN)


@variant(backend="torch", backward=backward.eager)
def torch_eager(x_MN: Tensor) -> Launch:
    """Fused eager: torch.softmax, one kernel on a GPU."""
    return lambda: x_MN.softmax(-1)


@variant(backend="inductor", needs=("inductor",), late=True, backward=backward.compiled)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of softmax: inductor makes one kernel of its steps."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(backward.softmax, x_MN)


@variant(backend="library", needs=("liger", "triton", "cuda"), dtypes=("bf16", "fp32"), backward=backward.liger)
def liger(x_MN: Tensor) -> Launch:
    """Liger's Triton kernel: one program a row, its length padded to a power of two; rows of more than 65536 are refused."""
    from kernelviz.ops.softmax import library

    return library.bind_liger(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_three_pass(x_MN: Tensor) -> Launch:
    """Triton, the formula as written: a pass for the maximum, one for the sum, one that divides; only the first reads memory."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_three_pass(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), backward=backward.triton_chunks)
def triton_online(x_MN: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over blocks of the row; a second pass, served by L2, divides."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_online(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), backward=backward.triton_row)
def triton_block_per_row(x_MN: Tensor) -> Launch:
    """Triton, one program a row; a row of up to 64 KiB is read once and kept in registers."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_block_per_row(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_persistent(x_MN: Tensor) -> Launch:
    """Triton, a few programs per SM walk the rows, short ones several at once; the next rows load ahead."""
    from kernelviz.ops.softmax import triton as kernels

    return kernels.bind_persistent(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=backward.cuda_row)
def cuda_row(x_MN: Tensor) -> Launch:
    """CUDA C++, a block a row as 16-byte words in registers, maximum and sum in one reduction; long rows twice, in chunks."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_row(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), backward=backward.cuda_cluster)
def cuda_cluster(x_MN: Tensor) -> Launch:
    """CUDA C++, long rows in registers and shared memory of one SM or a cluster: each is read once, whatever its length."""
    from kernelviz.ops.softmax import cuda as kernels

    return kernels.bind_cluster(x_MN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
)
def cuda_columns(x_MN: Tensor) -> Launch:
    """CUDA C++, clusters that stay: while a long row is written the next is summed and the one after asked for, word by word."""
    from kernelviz.ops.softmax import columns as kernels

    return kernels.bind_columns(x_MN)


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
            cuda_row,
            cuda_cluster,
            cuda_columns,
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
        backward=backward.BACKWARD,
    ),
)
