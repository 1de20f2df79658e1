"""Which matrices are for the Triton kernel of `batchnorm_relu` that knows their size, and the shape of its programs."""

from __future__ import annotations

FEW_ELEMENTS, UNEVEN_ELEMENTS = 2**15, 2**21
"""Of a matrix that takes the latency of a load and of what precedes it, however it is divided; and of one whose rows are no
multiple of 16 elements, of which a program of a few rows (`batchnorm_kernel`) loads each element alone and masks it. H200: 7
rows of 46,187 fp32 took 3.05 us in such programs, 2.81 in CUDA C++ and 2.23 in inductor's kernel, which is like this one; 20 rows
of 31,413 bf16 take 2.77 in this one and 3.78 in CUDA C++; 8111 rows of 1279 fp16 24.9 in inductor's and 11.7 in CUDA C++. The
second limit is an estimate between the last two."""
TRITON_DIVISOR = 16


def few_shape(size: int, n: int) -> tuple[int, int]:
    """Elements and warps of a program: one element a thread, of one warp where it has all, then two, or eight where neighbours
    have neighbouring channels.

    These are the shapes that inductor finds fastest on an H200.

    >>> few_shape(15, 15), few_shape(300, 3), few_shape(5000, 3), few_shape(2**20, 7), few_shape(2**20, 12)
    ((32, 1), (128, 4), (256, 4), (512, 8), (1024, 4))
    """
    if size <= 32:
        return 32, 1
    if size <= 2**10:
        return 128, 4
    if size <= 2**16:
        return 256, 4
    return (1024, 4) if n % 4 == 0 else (512, 8)


def is_few(m: int, n: int) -> bool:
    """Whether a matrix is for the kernel of this module.

    >>> is_few(8, 2**12), is_few(16, 2**12), is_few(16, 2**12 + 1), is_few(2**18, 9)
    (True, False, True, False)
    """
    return m * n <= (UNEVEN_ELEMENTS if n % TRITON_DIVISOR else FEW_ELEMENTS)
