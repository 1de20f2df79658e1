"""The ladder of `argmax`: a thread, a warp, a block, several blocks a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """Tensor.argmax along rows: one kernel on a GPU."""
    return lambda: x_MN.argmax(-1)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of argmax: inductor makes one Triton kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    def reduced(x_MN: Tensor) -> Tensor:
        return x_MN.argmax(-1)

    return compiled(reduced, x_MN)


@variant(backend="triton", needs=("triton", "cuda"), sources=("triton.py",))
def triton_block_per_row(x_MN: Tensor) -> Launch:
    """Triton, a program a row, in blocks of up to 16 KiB; floats are compared as whole numbers in their order."""
    from kernelviz.ops.row_reduction import triton as kernels

    return kernels.bind_argmax(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_row_per_thread(x_MN: Tensor) -> Launch:
    """CUDA C++, a thread a row: neighbouring threads read a row apart, so every element costs a sector."""
    from kernelviz.ops.row_reduction import cuda as kernels

    return kernels.bind_row_per_thread(x_MN, argmax=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_row_per_warp(x_MN: Tensor) -> Launch:
    """CUDA C++, a warp a row, four 16-byte loads a thread in flight; five shuffles and no shared memory."""
    from kernelviz.ops.row_reduction import cuda as kernels

    return kernels.bind_row_per_warp(x_MN, argmax=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_row_per_block(x_MN: Tensor) -> Launch:
    """CUDA C++, a block a row: long rows are spread over enough threads to keep the memory busy."""
    from kernelviz.ops.row_reduction import cuda as kernels

    return kernels.bind_row_per_block(x_MN, argmax=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_split_row(x_MN: Tensor) -> Launch:
    """CUDA C++, several blocks a row where there are few; the one of a row that is done last merges their results."""
    from kernelviz.ops.row_reduction import cuda as kernels

    return kernels.bind_split_row(x_MN, argmax=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"), sources=("cuda.cu", "cuda.py"))
def cuda_adaptive(x_MN: Tensor) -> Launch:
    """CUDA C++, a warp, a block or several blocks a row, by the rows' number and length."""
    from kernelviz.ops.row_reduction import cuda as kernels

    return kernels.bind_adaptive(x_MN, argmax=True)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    sources=("cuda_argmax_vec16.cu", "cuda_argmax_words.py", "streamed_shapes.py"),
)
def cuda_words(x_MN: Tensor) -> Launch:
    """CUDA C++, packed maxima of each 16-byte word; only their largest is compared, and its place looked up at the end."""
    from kernelviz.ops.row_reduction import cuda_argmax_vec16 as kernels

    return kernels.bind_words(x_MN)


VARIANTS = (
    torch_eager,
    torch_compile,
    triton_block_per_row,
    cuda_row_per_thread,
    cuda_row_per_warp,
    cuda_row_per_block,
    cuda_split_row,
    cuda_adaptive,
    cuda_words,
)
