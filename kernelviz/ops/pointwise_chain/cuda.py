"""CUDA C++ kernels of the chains, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_rows import flat_stride
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
FLAT_SOURCE = Path(__file__).parent / "cuda_flat.cu"
THREADS, SCALAR_THREADS = 256, 128
LONGEST_ROW = 2**31 - 1
"""The kernels of vectors count the columns in 32 bits."""
SMALL_INDEX = 2**30
"""Elements of a tensor up to which all indexes, also of threads that have none, are below 2^31."""
FLAT_ROWS = 4
"""Vectors of a thread that share s and b where those are read at any place of a row, which takes two loads each."""
FEWEST_THREADS = 64
"""Of a block with rows, where the GPU would otherwise have fewer than two blocks an SM."""
FEW_ELEMENTS, MOST_STEPS = 2**16, 16
"""Fewer elements take the latency of their loads: each thread has one, and the numbers of so few steps are loaded at once."""
SMALL_BYTES = 16 * 2**20
"""Smaller inputs of one step, or of numbers, have too few blocks to fill every SM with several vectors a thread, so a thread
gets one."""


def vectors_a_thread(steps: int) -> int:
    """16-byte vectors of a thread for a larger input: more vectors share the s and b of a step, fewer start and end sooner.

    Rows of 2^28 elements in bf16 on an H200: one step takes 276, 249 and 250 us with 1, 2 and 4 vectors, eight steps in 16-bit
    arithmetic 264 and 258 us with 4 and 8.

    >>> [vectors_a_thread(k) for k in (1, 2, 4, 8, 100)]
    [2, 4, 8, 8, 8]
    """
    return {1: 2, 2: 4, 3: 4}.get(steps, 8)


def rows_a_thread(m: int, vectors: int, steps: int, most: int, count: int) -> int:
    """Vectors of a thread, of `vectors` of m rows: as many as leave two blocks for each of the GPU's `count` SMs, of several
    steps, whose s and b they share; of one step, one unless the input is larger.

    H200: 7839 rows of 533 fp32 take 18.0 us in 4 steps with one vector a thread, and 11.7 in Triton, where four rows share s
    and b; 248,488 rows of 32 bf16, with eight vectors a thread, 12.0 packed in 8 steps and 14.8 in Triton, 9 rows of 384,201 fp32
    36.9 in 11 steps and 42.6.

    >>> [rows_a_thread(7839, vectors, 4, 4, 132) for vectors in (2**16, 2**18, 2**20)], rows_a_thread(3, 2**20, 4, 8, 132)
    ([1, 2, 4], 4)
    >>> rows_a_thread(18, 769_880, 1, 2, 132), rows_a_thread(18, 2**21, 1, 2, 132)
    (1, 2)
    """
    if steps == 1:
        return 1 if vectors * 16 < SMALL_BYTES else most
    while most > 1 and (vectors < 2 * count * THREADS * most or most >= 2 * m):
        most //= 2
    return most


def block_of(m: int, vectors: int, rows: int, count: int) -> tuple[int, int]:
    """Threads of a block along and across m rows of so many vectors, with `rows` rows a thread, on a GPU of `count` SMs.

    >>> block_of(32768, 256, 2, 132), block_of(32768, 16, 2, 132), block_of(16, 512, 1, 132)
    ((256, 1), (16, 16), (64, 1))
    """
    threads = THREADS
    while True:
        wide = min(threads, 1 << (vectors - 1).bit_length())
        tall = threads // wide
        if threads == FEWEST_THREADS or -(-vectors // wide) * -(-m // (rows * tall)) >= 2 * count:
            return wide, tall
        threads //= 2


Enqueue = Callable[[int, int, int, int], None]
"""Enqueues steps from one address to another: (from, to, first step, number of steps)."""


def bind_rows(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor, *, stepwise: bool = False, packed: bool = False) -> Launch:
    """All steps in one kernel, or one kernel a step, the later ones in place; `packed`: 16-bit arithmetic.

    Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_MN=x_MN, s_KN=s_KN, b_KN=b_KN)
    k = s_KN.shape[0]
    return _launch(x_MN, _rows(x_MN, s_KN, b_KN, packed, 1 if stepwise else k), k, stepwise)


def bind_scalars(x_N: Tensor, s_K: Tensor, b_K: Tensor, *, stepwise: bool = False, packed: bool = False) -> Launch:
    """As `bind_rows` with one number for each row of s and b; half as many vectors a thread are enough."""
    require_contiguous(x_N=x_N, s_K=s_K, b_K=b_K)
    k = s_K.shape[0]
    return _launch(x_N, _scalars(x_N, s_K, b_K, packed, 1 if stepwise else k), k, stepwise)


def _launch(x: Tensor, enqueue: Enqueue, k: int, stepwise: bool) -> Launch:
    import torch

    out = torch.empty_like(x)
    here, there = x.data_ptr(), out.data_ptr()

    def fused() -> Tensor:
        enqueue(here, there, 0, k)
        return out

    def step_by_step() -> Tensor:
        enqueue(here, there, 0, 1)
        for step in range(1, k):
            enqueue(there, there, step, 1)
        return out

    return step_by_step if stepwise else fused


def _rows(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor, packed: bool, steps: int) -> Enqueue:
    """`steps`: of a kernel. Rows of one element have one number a step."""
    m, n = x_MN.shape
    if n == 1:
        return _scalars(x_MN, s_KN, b_KN, packed, steps)
    size, rows = x_MN.element_size(), vectors_a_thread(steps)
    s, b = s_KN.data_ptr(), b_KN.data_ptr()
    if x_MN.data_ptr() % 16 or s % 16 or b % 16 or n > LONGEST_ROW:
        return _single(x_MN, s, b, n)
    if n * size % 16:
        processors = multiprocessors(x_MN.device)
        most = rows_a_thread(m * n, m * n * size // 16, steps, max(rows, FLAT_ROWS), processors)
        small = max(m, s_KN.shape[0]) * n < SMALL_INDEX
        return _flat(x_MN, s, b, packed, most, one_step=steps == 1, small=small)
    vectors = n * size // 16
    rows = rows_a_thread(m, m * vectors, steps, rows, multiprocessors(x_MN.device))
    wide, tall = block_of(m, vectors, rows, multiprocessors(x_MN.device))
    across = -(-vectors // wide)
    grid = across * -(-m // (rows * tall))
    kernel = _kernel("chain_rows_packed" if packed else "chain_rows", x_MN, packed, ROWS=rows)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n))

    def enqueue(here: int, there: int, first: int, k: int) -> None:
        at = first * n * size
        depth = (ctypes.c_int(k), ctypes.c_int(across))
        nvrtc.launch(kernel, grid, (wide, tall), here, s + at, b + at, there, *sizes, *depth)

    return enqueue


def reciprocal_of(n: int) -> tuple[int, int]:
    """The factor and the shift by which `chain_flat` divides numbers below 2^31 by n; no factor for 1.

    >>> reciprocal_of(1), reciprocal_of(3)
    ((0, 0), (2863311531, 2))
    >>> factor, shift = reciprocal_of(181569)
    >>> all(at * factor >> 31 + shift == at // 181569 for at in (0, 181568, 181569, 2**31 - 1))
    True
    """
    if n == 1:
        return 0, 0
    shift = (n - 1).bit_length()
    return 2 ** (31 + shift) // n + 1, shift


def _flat(x_MN: Tensor, s: int, b: int, packed: bool, most: int, *, one_step: bool, small: bool) -> Enqueue:
    """Rows that are not whole 16-byte vectors, with up to `most` vectors a thread; s and b are addresses."""
    (m, n), width = x_MN.shape, 16 // x_MN.element_size()
    whole, after = divmod(m * n, width)
    stride, rows = flat_stride(whole, n, width, most)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "PACKED": str(int(packed)), "ROWS": str(rows)}
    defines |= {"ONE_STEP": str(int(one_step)), "INDEX": "int" if small else "long long"}
    factor, shift = reciprocal_of(n)
    reciprocal = (ctypes.c_uint(factor), ctypes.c_int(shift))
    kernel = nvrtc.kernel(FLAT_SOURCE, "chain_flat", defines)
    grid = -(-(stride + after) // THREADS)
    index = ctypes.c_int if small else ctypes.c_longlong
    sizes = (index(m * n), index(stride), ctypes.c_int(n))

    def enqueue(here: int, there: int, first: int, k: int) -> None:
        nvrtc.launch(
            kernel, grid, THREADS, here, s, b, there, *sizes, ctypes.c_int(first), ctypes.c_int(k), *reciprocal
        )

    return enqueue


def _scalars(x_N: Tensor, s_K: Tensor, b_K: Tensor, packed: bool, steps: int) -> Enqueue:
    """`steps`: of a kernel."""
    n, size = x_N.numel(), x_N.element_size()
    s, b = s_K.data_ptr(), b_K.data_ptr()
    if n <= FEW_ELEMENTS and steps <= MOST_STEPS and not packed:
        return _few(x_N, s, b, steps)
    if x_N.data_ptr() % 16:
        return _single(x_N, s, b, 1)
    vectors = 1 if n * size < SMALL_BYTES else vectors_a_thread(steps) // 2
    kernel = _kernel("chain_scalars_packed" if packed else "chain_scalars", x_N, packed, VECTORS=vectors)
    grid = max(1, -(-n * size // (SCALAR_THREADS * vectors * 16)))
    count = ctypes.c_longlong(n)

    def enqueue(here: int, there: int, first: int, k: int) -> None:
        at = first * size
        nvrtc.launch(kernel, grid, SCALAR_THREADS, here, s + at, b + at, there, count, ctypes.c_int(k))

    return enqueue


def _few(x_N: Tensor, s: int, b: int, steps: int) -> Enqueue:
    """One element a thread, and as many steps as the kernel is compiled for; s and b are addresses of numbers."""
    kernel = _kernel("chain_steps", x_N, False, VECTORS=1, STEPS=steps)
    size = x_N.element_size()
    grid, last = -(-x_N.numel() // SCALAR_THREADS), ctypes.c_int(x_N.numel() - 1)

    def enqueue(here: int, there: int, first: int, k: int) -> None:
        nvrtc.launch(kernel, grid, SCALAR_THREADS, here, s + first * size, b + first * size, there, last)

    return enqueue


def _single(x: Tensor, s: int, b: int, n: int) -> Enqueue:
    """One element a thread; s and b are the addresses of rows of n elements."""
    kernel = _kernel("chain_single", x, False, VECTORS=1)
    grid = -(-x.numel() // THREADS)
    sizes = (ctypes.c_longlong(x.numel()), ctypes.c_longlong(n))
    row_bytes = n * x.element_size()

    def enqueue(here: int, there: int, first: int, k: int) -> None:
        at = first * row_bytes
        nvrtc.launch(kernel, grid, THREADS, here, s + at, b + at, there, *sizes, ctypes.c_int(k))

    return enqueue


def _kernel(name: str, x: Tensor, packed: bool, **shape: int) -> Any:
    """The kernel for scalars (VECTORS a thread) or for rows (ROWS a thread)."""
    defines = {
        "ELEMENT": nvrtc.element_type(x.dtype),
        "PACKED": str(int(packed)),
        "SCALARS": str(int("VECTORS" in shape)),
    }
    return nvrtc.kernel(SOURCE, name, defines | {key: str(value) for key, value in shape.items()})
