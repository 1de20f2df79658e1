"""Which matrices are for the Triton kernel of `batchnorm_relu` that knows their size, and the shape of its programs."""

from __future__ import annotations

FEW_ELEMENTS, UNEVEN_ELEMENTS = 2**15, 2**21
"""Of a matrix that takes the latency of a load and of what precedes it, however it is divided; and of one whose rows are no
multiple of 16 elements, of which a program of a few rows (`batchnorm_kernel`) loads each element alone and masks it. H200: 7
rows of 46,187 fp32 took 3.05 us in such programs, 2.81 in CUDA C++ and 2.23 in inductor's kernel, which is like this one; 20 rows
of 31,413 bf16 take 2.77 in this one and 3.78 in CUDA C++; 8111 rows of 1279 fp16 24.9 in inductor's and 11.7 in CUDA C++. The
second limit is an estimate between the last two."""
NARROW_CHANNELS, NARROW_ELEMENTS = 128, 2**20
"""Of rows of which a warp of those programs has less than a vector a thread, and of their matrix. H200: 4096 rows of 32 fp32 take
1.72 us in such programs, 1.66 here and 1.65 in inductor's kernel; 59,667 of 16 take 3.24 here and 3.25 there."""
TRITON_DIVISOR = 16
FEW_CHANNELS, FEW_OF_FEW_CHANNELS = 8, 2**13
LEAST_OF_WIDE = 2**18
"""Elements, from which on programs of 1024 are about two a multiprocessor."""


def few_shape(size: int, n: int, itemsize_bytes: int) -> tuple[int, int]:
    """Elements and warps of a program: one element a thread of few elements, of one warp where it has all; then two, or four
    16-bit elements while each multiprocessor has at most one program; or eight of many elements where neighbours have
    neighbouring channels.

    These are the shapes that inductor, which times two, finds fastest on an H200: 2773 rows of 2 fp16 take 1.16 us so, and 1.25
    with two elements a thread; 3 of 18,119 fp16 have four; 15 of 49,939 fp32 two and 50,352 of 8 fp32 eight. 512 of 180 fp32, in
    90 programs of eight elements a thread, took 2.34 us and 1.74 by inductor's kernel, which is therefore not that.

    >>> few_shape(15, 15, 4), few_shape(300, 3, 4), few_shape(5000, 3, 4), few_shape(5000, 50, 4), few_shape(2**20, 7, 2)
    ((32, 1), (128, 4), (128, 4), (256, 4), (512, 8))
    >>> few_shape(50_752, 6344, 2), few_shape(44_616, 5577, 4), few_shape(92_160, 180, 4), few_shape(402_816, 8, 4)
    ((512, 4), (256, 4), (512, 8), (1024, 4))
    >>> few_shape(886_848, 248, 2), few_shape(886_848, 248, 4)
    ((1024, 4), (512, 8))
    """
    if size <= 32:
        return 32, 1
    if size <= (FEW_OF_FEW_CHANNELS if n <= FEW_CHANNELS else 2**10):
        return 128, 4
    if size <= 2**16:
        return (512, 4) if itemsize_bytes == 2 and size > 2**15 else (256, 4)
    wide = n % 4 == 0 and (itemsize_bytes == 2 or n <= FEW_CHANNELS) and size >= LEAST_OF_WIDE
    return (1024, 4) if wide else (512, 8)


def is_few(m: int, n: int) -> bool:
    """Whether a matrix is for the kernel of this module.

    >>> is_few(8, 2**12), is_few(16, 2**12), is_few(16, 2**12 + 1), is_few(2**18, 9), is_few(4096, 32)
    (True, False, True, False, True)
    """
    if n % TRITON_DIVISOR:
        return m * n <= UNEVEN_ELEMENTS
    return m * n <= (NARROW_ELEMENTS if n < NARROW_CHANNELS else FEW_ELEMENTS)
