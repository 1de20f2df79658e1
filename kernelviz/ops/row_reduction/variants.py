"""The variants of `row_sum` and of `argmax` in the order of the ladder: a thread, a warp, a block, several blocks per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def row_sum_variants() -> tuple[Variant, ...]:
    """The variants of `row_sum`."""

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor) -> Launch:
        """Tensor.sum along rows: one kernel on a GPU."""
        return lambda: x_MN.sum(-1)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor) -> Launch:
        """torch.compile of sum: inductor makes one Triton kernel, or two for few long rows."""
        from kernelviz.ops.kernels.inductor import compiled

        def row_sum(x_MN: Tensor) -> Tensor:
            return x_MN.sum(-1)

        return compiled(row_sum, x_MN)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_block_per_row(x_MN: Tensor) -> Launch:
        """Triton, one program per row, in blocks of up to 16 KiB; threads synchronise once, after the loop."""
        from kernelviz.ops.row_reduction import triton as kernels

        return kernels.bind_row_sum(x_MN)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_known_size(x_MN: Tensor) -> Launch:
        """Triton, compiled for one size of the matrix: several short rows or one per program; those above 8192 as before."""
        from kernelviz.ops.row_reduction import triton_known_size as kernels

        return kernels.bind_row_sum(x_MN)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda"),
    )
    def cuda_streamed(x_MN: Tensor) -> Launch:
        """CUDA C++, a block a row prefetches vectors while it adds others; few long rows have more, the last of which waits."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_streamed(x_MN)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_known_length(x_MN: Tensor) -> Launch:
        """CUDA C++, compiled for the length of short rows, few or of whole vectors or parts of one; others as `cuda_adaptive`."""
        from kernelviz.ops.row_reduction import known_length as kernels

        return kernels.bind_known_length(x_MN)

    own = (*_kernels(argmax=False), cuda_known_length, cuda_streamed)
    return torch_eager, torch_compile, triton_block_per_row, triton_known_size, *own


def argmax_variants() -> tuple[Variant, ...]:
    """The variants of `argmax`."""

    @variant(backend="torch")
    def torch_eager(x_MN: Tensor) -> Launch:
        """Tensor.argmax along rows: one kernel on a GPU."""
        return lambda: x_MN.argmax(-1)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_MN: Tensor) -> Launch:
        """torch.compile of argmax: inductor makes one Triton kernel."""
        from kernelviz.ops.kernels.inductor import compiled

        def argmax(x_MN: Tensor) -> Tensor:
            return x_MN.argmax(-1)

        return compiled(argmax, x_MN)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_block_per_row(x_MN: Tensor) -> Launch:
        """Triton, one program per row, in blocks of up to 16 KiB; floats are compared as integers of the same order."""
        from kernelviz.ops.row_reduction import triton as kernels

        return kernels.bind_argmax(x_MN)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_known_size(x_MN: Tensor) -> Launch:
        """Triton, compiled for one size of the matrix: several short rows or one per program; those above 8192 as before."""
        from kernelviz.ops.row_reduction import triton_known_size as kernels

        return kernels.bind_argmax(x_MN)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda"),
    )
    def cuda_words(x_MN: Tensor) -> Launch:
        """CUDA C++, the packed maximum of each 16-byte vector; only that is compared, and its index is computed at the end."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_argmax_vec16(x_MN)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_known_length(x_MN: Tensor) -> Launch:
        """CUDA C++, compiled for the length of few short rows, or many of at most 8 elements: no loop; others as `cuda_words`."""
        from kernelviz.ops.row_reduction import known_length as kernels

        return kernels.bind_argmax(x_MN)

    own = (*_kernels(argmax=True), cuda_known_length, cuda_words)
    return torch_eager, torch_compile, triton_block_per_row, triton_known_size, *own


def _kernels(*, argmax: bool) -> tuple[Variant, ...]:
    """The variants whose kernels are the same for both ops."""

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_row_per_thread(x_MN: Tensor) -> Launch:
        """CUDA C++, one thread per row: neighbouring threads read addresses a row apart, so every element costs a sector."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_row_per_thread(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_row_per_warp(x_MN: Tensor) -> Launch:
        """CUDA C++, one warp per row, four 16-byte loads per thread in flight; five shuffles and no shared memory."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_row_per_warp(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_row_per_block(x_MN: Tensor) -> Launch:
        """CUDA C++, one block per row: a long row is shared by enough threads to keep memory busy."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_row_per_block(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_split_row(x_MN: Tensor) -> Launch:
        """CUDA C++, several blocks per row if there are few rows; the last block of a row merges their results."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_split_row(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_adaptive(x_MN: Tensor) -> Launch:
        """CUDA C++, a warp, a block or several blocks per row, by the number and length of the rows."""
        from kernelviz.ops.row_reduction import cuda as kernels

        return kernels.bind_adaptive(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_slab(x_MN: Tensor) -> Launch:
        """CUDA C++, many short rows as one piece through shared memory, a few threads each; longer ones as `cuda_adaptive`."""
        from kernelviz.ops.row_reduction import cuda_slab as kernels

        return kernels.bind_slab(x_MN, argmax=argmax)

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
    def cuda_slab_stages(x_MN: Tensor) -> Launch:
        """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, slabs in flight by bulk copies; tiny rows in registers."""
        from kernelviz.ops.kernels.row_slabs import RING
        from kernelviz.ops.row_reduction import cuda_slab as kernels

        return kernels.bind_slab(x_MN, argmax=argmax, ring=RING)

    return (
        cuda_row_per_thread,
        cuda_row_per_warp,
        cuda_row_per_block,
        cuda_split_row,
        cuda_adaptive,
        cuda_slab,
        cuda_slab_stages,
    )
