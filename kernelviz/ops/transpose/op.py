"""Transposition of a matrix: no arithmetic, but what is read along rows is written along columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once; no arithmetic.

    >>> cost({"m": 1024, "n": 512}, 4)
    Cost(work_flop=0, read_bytes=2097152, written_bytes=2097152)
    """
    matrix_bytes = sizes["m"] * sizes["n"] * itemsize_bytes
    return Cost(work_flop=0, read_bytes=matrix_bytes, written_bytes=matrix_bytes)


def reference(x_MN: Tensor) -> Tensors:
    """The same elements, rows and columns exchanged."""
    return (x_MN.t().contiguous(),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded, so nothing may differ."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """Tensor.copy_ of x.t() into a buffer that is there: what x.t().contiguous() runs, without the allocation."""
    import torch

    out_NM = torch.empty((x_MN.shape[1], x_MN.shape[0]), dtype=x_MN.dtype, device=x_MN.device)
    return lambda: out_NM.copy_(x_MN.t())


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of x.t().contiguous(), on the elements' bits: inductor's tiled Triton kernel on a GPU."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    def transposed(x_MN: Tensor) -> Tensor:
        return x_MN.t().contiguous()

    # As integers: inductor widens 16-bit floats to fp32 and rounds them back, which rewrites the bits of a NaN.
    run = compiled(transposed, x_MN.view(torch.int32 if x_MN.element_size() == 4 else torch.int16))
    dtype = x_MN.dtype

    def launch() -> Tensor:
        result = run()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_tile(x_MN: Tensor) -> Launch:
    """Triton, one tile a program; the compiler takes the exchange through shared memory."""
    from kernelviz.ops.transpose import triton as kernels

    return kernels.bind_tile(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_naive(x_MN: Tensor) -> Launch:
    """CUDA C++, one element a thread: loads along a row are one line, stores down a column are 32 sectors."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_naive", x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_shared_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, tiles of 32 × 32 through shared memory: whole lines both ways, but a column of the tile is one bank."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_tile", x_MN, padding=0)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_padded_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, the same with rows of 33 elements: a column of the tile lies in 32 banks."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_tile", x_MN, padding=1)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_vec16(x_MN: Tensor) -> Launch:
    """CUDA C++, 16-byte words both ways: blocks of words turned in registers, put in place through swizzled shared memory."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_words(x_MN)


@variant(
    backend="cuda", needs=("nvrtc", "cuda", "sm_90"), sources=("cuda_sm90.cu", "cuda_sm90.py", "cuda.cu", "cuda.py")
)
def cuda_tma(x_MN: Tensor) -> Launch:
    """CUDA C++, TMA fetches and stores the tiles: one thread asks, no address arithmetic; rows must be whole 16-byte words."""
    from kernelviz.ops.transpose import cuda_sm90 as kernels

    return kernels.bind_tma(x_MN)


OPS = (
    Op(
        name="transpose",
        family="layout",
        summary="Transposition of a matrix",
        formula="y = xᵀ",
        axes=(
            Axis(name="m", caption="rows", default="2^8..2^14", cpu_default="256,1024,2048"),
            Axis(name="n", caption="columns", default="m", cpu_default="m"),
        ),
        dtypes=("fp32", "fp16", "bf16"),
        inputs=(TensorSpec(name="x_MN", axes=("m", "n")),),
        outputs=(TensorSpec(name="y_NM", axes=("n", "m")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = xᵀ, no rounding",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_tile", "cuda_naive", "cuda_padded_tile", "cuda_vec16"),
        variants=(
            torch_eager,
            torch_compile,
            triton_tile,
            cuda_naive,
            cuda_shared_tile,
            cuda_padded_tile,
            cuda_vec16,
            cuda_tma,
        ),
        presets=(
            Preset(name="large", caption="16384 × 16384: 2 GiB moved in fp32", sizes={"m": "2^14", "n": "2^14"}),
            Preset(name="tall", caption="Many short rows: 2^26 elements", sizes={"m": "2^26/n", "n": "16,64,256,1024"}),
            Preset(name="wide", caption="Few long rows: 2^26 elements", sizes={"m": "16,64,256,1024", "n": "2^26/m"}),
            Preset(
                name="odd",
                caption="Rows and columns that are no whole 16-byte words",
                sizes={"m": "4095,8191,16383", "n": "m"},
            ),
            Preset(
                name="llama-3-8b",
                caption="Llama 3 8B: weights of the attention and of the feed-forward layer",
                sizes={"m": "4096", "n": "1024,4096,14336"},
            ),
        ),
    ),
)
