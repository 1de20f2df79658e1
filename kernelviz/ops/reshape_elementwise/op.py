"""An element-wise step on a transposed view, its result row by row: a change of layout is free in a pass that is made anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once, one maximum each.

    >>> cost({"m": 1024, "n": 64}, 2)
    Cost(work_flop=65536, read_bytes=131072, written_bytes=131072)
    """
    count = sizes["m"] * sizes["n"]
    return Cost(work_flop=count, read_bytes=count * itemsize_bytes, written_bytes=count * itemsize_bytes)


def contiguous_first_bytes(sizes: Sizes, itemsize_bytes: int) -> int:
    """What `contiguous_then_op` moves: the copy reads and writes the matrix, the step does so again.

    >>> sizes = {"m": 1024, "n": 64}
    >>> contiguous_first_bytes(sizes, 2) // cost(sizes, 2).moved_bytes
    2
    """
    return 2 * cost(sizes, itemsize_bytes).moved_bytes


def reference(x_MN: Tensor) -> Tensors:
    """max(xᵀ, 0), and a 1: the result lies row by row."""
    return x_MN.t().relu(), x_MN.new_ones(1)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: the output is an input or 0."""
    return tuple(t.new_zeros(()).expand_as(t) for t in outputs)


def shown(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The result, and whether it is contiguous: a view with exchanged strides would have the right numbers for nothing."""
    (y_NM,) = outputs
    return y_NM, y_NM.new_full((1,), float(y_NM.is_contiguous()))


def contiguous_relu(x_MN: Tensor) -> Tensor:
    """For the compiler, which would keep the view's strides without the last step."""
    return x_MN.t().relu().contiguous()


@variant(backend="torch")
def contiguous_then_op(x_MN: Tensor) -> Launch:
    """x.t().contiguous(), then relu: two kernels, twice the bytes."""
    return lambda: x_MN.t().contiguous().relu()


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """One torch kernel from the transposed view into a contiguous buffer: it reads with the stride of a row."""
    import torch

    m, n = x_MN.shape
    y_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    return lambda: torch.clamp_min(x_MN.t(), 0, out=y_NM)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of relu on the view with a contiguous result: inductor makes one kernel over both layouts."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(contiguous_relu, x_MN)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_fused(x_MN: Tensor) -> Launch:
    """Triton, tiles of 128 × 128 (32 × 32 of few): read along x, transposed in shared memory by the compiler, written along y."""
    from kernelviz.ops.reshape_elementwise import triton as kernels

    return kernels.bind_reshape(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, tiles of 64 × 64 in shared memory with padded rows: both sides whole lines, one element an access."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_tile(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_registers(x_MN: Tensor) -> Launch:
    """CUDA C++, no shared memory: a thread reads a square of 16-byte words, transposes it in registers, writes words."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_registers(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_squares(x_MN: Tensor) -> Launch:
    """CUDA C++, the same squares exchanged through shared memory, swizzled: both sides in segments of 256 bytes."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_squares(x_MN)


OPS = (
    Op(
        name="reshape_elementwise",
        family="movement",
        summary="An element-wise step on a transposed view, with a contiguous result",
        formula="y = max(xᵀ, 0)",
        axes=(
            Axis(name="m", caption="rows of x", default="2^10..2^14", cpu_default="2^8,2^10"),
            Axis(name="n", caption="columns of x", default="m", cpu_default="m"),
        ),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(TensorSpec(name="y_NM", axes=("n", "m")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = x or 0, no rounding, and y lies row by row",
        baseline="torch_eager",
        first=("contiguous_then_op", "torch_eager", "torch_compile", "triton_fused", "cuda_squares"),
        variants=(
            contiguous_then_op,
            torch_eager,
            torch_compile,
            triton_fused,
            cuda_tile,
            cuda_registers,
            cuda_squares,
        ),
        presets=(
            Preset(
                name="gpt-2",
                caption="GPT-2, 1 to 8192 tokens of 768",
                sizes={"m": "1,16,64,512,4096,8192", "n": "768"},
            ),
            Preset(
                name="llama-3-8b",
                caption="Llama 3 8B, 1 to 8192 tokens of 4096",
                sizes={"m": "1,16,64,512,4096,8192", "n": "4096"},
            ),
            Preset(
                name="rows",
                caption="2^27 elements, rows of 2048 to 131072",
                sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072"},
            ),
            Preset(
                name="large",
                caption="Far larger than any L2: 256 MiB and 1 GiB of traffic in 16 bits",
                sizes={"m": "8192,16384", "n": "m"},
            ),
        ),
        shown=shown,
        shows=(TensorSpec(name="y_NM", axes=("n", "m")), TensorSpec(name="contiguous", axes=(1,))),
    ),
)
