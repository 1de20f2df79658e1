"""Kernels of one block or cluster of `sum`, `mean` and `cumsum`, and those for one size, by fibers of the processor, and planted
mistakes."""

from __future__ import annotations

import re

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, with_header
from torch import Tensor

from kernelviz.ops import Op, op_named
from kernelviz.ops.cumsum import one_block as scan
from kernelviz.ops.reduction import one_block as reduction
from kernelviz.ops.row_reduction import known_length

pytestmark = needs_compiler
ELEMENTS = {"fp32": "float", "fp16": "__half", "bf16": "__nv_bfloat16"}
KERNELS = (
    ("sum", "sum_one_block"),
    ("mean", "sum_one_block"),
    ("sum", "sum_cluster"),
    ("cumsum", "cumsum_one_block"),
    ("cumsum", "cumsum_cluster"),
)
SHARED = re.compile(r"__shared__ float (\w+)\[(\w+)\];")
SIZES = (1, 2, 7, 8, 31, 33, 257, 949, 1024, 4099, 8193, 36610)
"""Below a vector and a warp, one warp and several, one vector a thread and several, more than the block has in flight."""


def view_of(x_N: Tensor, offset: int) -> Tensor:
    """The same numbers, `offset` elements behind an aligned address, with NaN before them and, as far as
    the planted mistakes read, after them."""
    whole = torch.full((x_N.numel() + 512,), float("nan"), dtype=x_N.dtype)
    start = -whole.data_ptr() // x_N.element_size() % (64 // x_N.element_size()) + 16 + offset
    view = whole[start : start + x_N.numel()]
    view.copy_(x_N)
    assert view.data_ptr() % 16 == offset * x_N.element_size() % 16
    return view


def output_of(
    emulator: Emulator, kernel: str, op: Op, x_N: Tensor, dtype: str, mode: Mode, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """What a kernel of the op computes, and the emulator's error."""
    n = x_N.numel()
    blocks = reduction.CLUSTER if kernel.endswith("cluster") else 1
    is_scan = op.name == "cumsum"
    module = scan if is_scan else reduction
    out = Output(1, n if is_scan else 1, x_N.dtype)
    last = int(x_N.data_ptr() % 16 == 0) if is_scan else n if op.name == "mean" else 1
    # The emulator passes whole numbers.
    text = module.SOURCE.read_text().replace("n, float divisor", "n, long long divisor")
    assert change[0] in text
    if blocks > 1:  # static shared memory would be one for all blocks of a cluster
        text = SHARED.sub(r"static float all_of_\1[8][\2]; float* \1 = all_of_\1[block_in_cluster()];", text)
    threads, vectors = module.threads_and_vectors(n, x_N.element_size(), blocks)
    program = emulator.program(
        module.SOURCE,
        kernel,
        {"ELEMENT": ELEMENTS[dtype], "VECTORS": str(vectors)},
        text=text.replace(*change) if change[0] else text,
    )
    error = program.run([x_N, out.matrix, n, last], Grid(blocks=blocks, threads=threads, cluster=blocks), mode)
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("name", "kernel"), KERNELS)
def test_kernels_agree_with_the_reference(name: str, kernel: str, dtype: str, emulator: Emulator) -> None:
    op = op_named(name)
    for n in SIZES:
        problem = op.problem({"n": n}, dtype)
        (x_N,) = inputs_of(op, problem)
        for offset in (0, 1, 3):
            results = [output_of(emulator, kernel, op, view_of(x_N, offset), dtype, mode) for mode in MODES]
            for y_N, error in results:
                assert error == ""
                assert compare(op, problem, (x_N,), y_N).passed, (n, offset)
            assert torch.equal(results[0][0], results[1][0])


def flagged(
    emulator: Emulator, x_N: Tensor, dtype: str, count: int, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """The sum by a kernel of which the last block waits, launched twice, and the emulator's error. Blocks run in their order,
    because one that waits for a later one would wait for ever."""
    n = x_N.numel()
    blocks, vectors = reduction.flagged_blocks(n, x_N.element_size(), count)
    out, slots = Output(1, 1, x_N.dtype), torch.zeros(blocks, dtype=torch.int64)
    text = reduction.SOURCE.read_text().replace("n, float divisor", "n, long long divisor")
    assert change[0] in text
    defines = {"ELEMENT": ELEMENTS[dtype], "VECTORS": str(vectors)}
    program = emulator.program(
        reduction.SOURCE, "sum_flagged", defines, text=text.replace(*change) if change[0] else text
    )
    grid = Grid(blocks=blocks, threads=reduction.FLAGGED_THREADS)
    for _ in range(2):  # the second launch finds the slots as the first one left them
        error = program.run([x_N, slots, out.matrix, n, 1], grid, MODES[0])
        assert error or not slots.any() or change[0]
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_block_that_waits_adds_up_the_sums_of_all(dtype: str, emulator: Emulator) -> None:
    op = op_named("sum")
    for n, count in ((1, 1), (33, 1), (4099, 1), (4099, 3), (20001, 3), (100003, 2)):
        problem = op.problem({"n": n}, dtype)
        (x_N,) = inputs_of(op, problem)
        for offset in (0, 1, 3):
            y_N, error = flagged(emulator, view_of(x_N, offset), dtype, count)
            assert error == ""
            assert compare(op, problem, (x_N,), y_N).passed, (n, count, offset)


FLAGGED_MISTAKES = {
    "the sum of the block that waits is left out": ("threadIdx.x == 0 ? mine : 0.0f", "0.0f"),
    "the sum of the first block is left out": (
        "int i = threadIdx.x; i < others",
        "int i = threadIdx.x + 1; i < others",
    ),
    "each block reads what the first one reads": (
        "thread_sum(x, n, blockIdx.x, gridDim.x)",
        "thread_sum(x, n, 0, gridDim.x)",
    ),
}


@pytest.mark.parametrize("mistake", FLAGGED_MISTAKES)
def test_a_mistake_in_the_kernel_that_waits_gives_wrong_numbers(mistake: str, emulator: Emulator) -> None:
    op = op_named("sum")
    problem = op.problem({"n": 20001}, "fp32")
    (x_N,) = inputs_of(op, problem)
    y_N, error = flagged(emulator, view_of(x_N, 0), "fp32", 3, FLAGGED_MISTAKES[mistake])
    assert error or not compare(op, problem, (x_N,), y_N).passed


MISTAKES = {
    "sum_one_block": {
        "the last element is left out": ("threadIdx.x < edges", "threadIdx.x + 1 < edges"),
        "the last vector is read twice": ("i < count", "i < count + 1"),
        "threads do not wait for the sums of warps": (
            "        __syncthreads();\n        if (warp == 0)",
            "        if (warp == 0)",
        ),
    },
    "sum_cluster": {
        "each block adds the last elements": ("block == 0 ? n - count * WIDTH : 0", "n - count * WIDTH"),
        "a block reads what the next one reads": ("first = (long long)block * blockDim.x", "first = 0"),
    },
    "cumsum_cluster": {
        "the sum of the block before is left out": ("b < block", "b + 1 < block"),
        "all blocks scan the first tile": ("tile + block * of_tile", "tile"),
    },
    "cumsum_one_block": {
        "the last element is left out": ("i == partial", "i == partial + 1"),
        "threads do not wait for the sums of warps": (
            "__syncthreads();\n            const float upto",
            "const float upto",
        ),
        "the next tile overwrites the sums of warps": ("__syncthreads();  //", "//"),
        "the sum of earlier tiles is left out": ("float base = carry", "float base = 0.0f"),
    },
}


@pytest.mark.parametrize(("kernel", "mistake"), [(kernel, one) for kernel, some in MISTAKES.items() for one in some])
def test_a_mistake_in_the_kernel_gives_wrong_numbers(kernel: str, mistake: str, emulator: Emulator) -> None:
    op = op_named(kernel.split("_")[0])
    problem = op.problem({"n": 20001}, "fp32")
    (x_N,) = inputs_of(op, problem)
    wrong = []
    for mode in MODES:
        y_N, error = output_of(emulator, kernel, op, view_of(x_N, 0), "fp32", mode, MISTAKES[kernel][mistake])
        wrong.append(bool(error) or not compare(op, problem, (x_N,), y_N).passed)
    assert any(wrong)


def output_for_one_size(
    emulator: Emulator, op: Op, x: Tensor, dtype: str, mode: Mode, change: tuple[str, str] = ("", "")
) -> tuple[Tensor, str]:
    """What the kernel computes that is compiled for the size of x, and the emulator's error."""
    n, itemsize = x.shape[-1], x.element_size()
    defines, threads, blocks, rest = {"ELEMENT": ELEMENTS[dtype]}, 0, 1, list[int]()
    if op.name == "row_sum":
        m, rows = x.shape[0], 1
        source, kernel, threads = known_length.SOURCE, "row_sum_known_length", known_length.THREADS
        lanes = known_length.lanes(m, n)
        if lanes is None:
            kernel, rows, lanes = "row_sum_known_vectors", 4, known_length.vector_lanes(n, itemsize)
        assert lanes is not None
        blocks, rest = -(-m * lanes // (threads * rows)), [m - 1 if rows == 1 else m]
        defines |= {"LENGTH": str(n), "LANES": str(lanes), "ROWS": str(rows)}
        if lanes == 1:
            few = known_length.few_rows(m, n, itemsize, x.data_ptr())
            kernel, blocks, threads, rest = few.name, 1, few.threads, []
            defines |= few.defines
    elif op.name == "cumsum":
        width = scan.known_size(n, itemsize)
        assert width is not None
        source, (kernel, threads) = scan.KNOWN_SIZE, scan.kernel_and_threads(n, width)
        defines |= {"SIZE": str(n), "OF_THREAD": str(width)}
    else:
        known = reduction.known_size(n, itemsize)
        assert known is not None
        source, kernel, threads = reduction.KNOWN_SIZE, known.kernel, known.threads
        divisor = str(n if op.name == "mean" else 1)
        defines |= {"SIZE": str(n), "THREADS": str(known.threads), "OF_LOAD": str(known.width), "DIVISOR": divisor}
    out = Output(1, {"cumsum": n, "row_sum": x.shape[0]}.get(op.name, 1), x.dtype)
    headers = ("lane_scan.cuh", "access_bits.cuh") if op.name == "cumsum" else ("adjacent_sum.cuh",)
    text = with_header(source, *headers)
    assert change[0] in text
    program = emulator.program(source, kernel, defines, text=text.replace(*change) if change[0] else text)
    error = program.run([x, out.matrix, *rest], Grid(blocks=blocks, threads=threads), mode)
    if not out.guard_is_unchanged():
        error = error or "something was written outside the output"
    return out.matrix[0].clone(), error


KNOWN_SIZES: dict[str, tuple[dict[str, int], ...]] = {
    "sum": tuple({"n": n} for n in (1, 2, 3, 5, 15, 14, 16, 16, 33, 250, 577, 1970, 8681)),
    "mean": tuple({"n": n} for n in (3, 949)),
    "cumsum": tuple({"n": n} for n in (1, 2, 7, 9, 15, 14, 16, 16, 20, 128, 257, 949, 2041, 545, 514, 903, 1023, 511)),
    "row_sum": tuple(
        {"m": m, "n": n}
        for m, n in (
            (1, 1),
            (4, 16),
            (32, 13),
            (7, 6),
            (3, 16),
            (32, 8),
            (11, 8),
            (33, 16),
            (40, 100),
            (5, 256),
            (129, 7),
            (2101, 32),
            (1003, 120),
        )
    ),
}


@pytest.mark.parametrize("name", KNOWN_SIZES)
def test_kernels_for_one_size_agree_with_the_reference(name: str, emulator: Emulator) -> None:
    op = op_named(name)
    for number, sizes in enumerate(KNOWN_SIZES[name]):
        dtype = ("bf16", "fp32")[number % 2]
        problem = op.problem(sizes, dtype)
        (x,) = inputs_of(op, problem)
        x_N = view_of(x.flatten(), 0).view(x.shape)
        for mode in MODES:
            y, error = output_for_one_size(emulator, op, x_N, dtype, mode)
            assert error == ""
            assert compare(op, problem, (x,), y).passed, sizes


@pytest.mark.parametrize(("dtype", "n"), [("fp32", 1), ("fp32", 2), ("bf16", 1), ("fp16", 2), ("bf16", 4)])
def test_parts_of_vectors_are_added_up(dtype: str, n: int, emulator: Emulator) -> None:
    op, defines = op_named("row_sum"), {"ELEMENT": ELEMENTS[dtype], "LENGTH": str(n)}
    text = with_header(known_length.TINY_ROWS_SOURCE, "access_bits.cuh")
    for m in (1, 5, 1024, 1347):
        (x,) = inputs_of(op, op.problem({"m": m, "n": n}, dtype))
        x_MN = view_of(x.flatten(), 0).view(x.shape)
        blocks = -(-m * n * x.element_size() // (16 * known_length.THREADS))
        for changed in (text, text.replace("first + ROWS <= m", "first <= m"), text.replace("row < m", "row + 1 < m")):
            program = emulator.program(known_length.TINY_ROWS_SOURCE, "row_sum_tiny_rows", defines, text=changed)
            out = Output(1, m, x.dtype)
            error = program.run([x_MN, out.matrix, m], Grid(blocks=blocks, threads=known_length.THREADS))
            right = error == "" and compare(op, op.problem({"m": m, "n": n}, dtype), (x,), out.matrix[0].clone()).passed
            right = right and out.guard_is_unchanged()
            assert right == (changed == text or (m == 1024 and "row + 1" in changed)), (m, error)
            if m == 1024:
                break


MISTAKES_FOR_ONE_SIZE = {
    ("sum", "the last elements are left out"): ("threadIdx.x < AFTER", "threadIdx.x + 1 < AFTER"),
    ("sum", "threads do not wait for the sums of warps"): ("        __syncthreads();\n", ""),
    ("sum", "the last load is of the vector behind"): ("i < LOADS", "i < LOADS + 1"),
    ("few of cumsum", "the last elements are left out"): ("to[WHOLE * WIDTH + e] = v", "to[WHOLE * WIDTH] = v"),
    ("few of cumsum", "the sum of the first vector is left out"): ("v == 0 ? upto : base + upto);", "upto);"),
    ("few of cumsum", "all vectors begin with the sum of none"): ("base = v == 0 ? upto : base + upto", "base = 0.0f"),
    ("cumsum", "the last elements are left out"): ("thread == WHOLE", "thread == WHOLE + 1"),
    ("cumsum", "the last element is stored in place of an earlier one"): ("(to + FIRST) =", "(to) ="),
    ("cumsum", "the last element is loaded from the place of an earlier one"): ("(from + FIRST);", "(from);"),
    ("cumsum", "the last elements are not added up"): ("base += to_float(after", "base = base + 0.0f * to_float(after"),
    ("cumsum", "the sum of the warp before is left out"): ("w < warp", "w + 1 < warp"),
    ("cumsum", "the sum of the lane before is left out"): ("base += lane > 0", "base += lane > 1"),
    ("cumsum", "threads do not wait for the sums of warps"): ("        __syncthreads();\n", ""),
    ("row_sum", "the last element of a row is left out"): (
        "k * LANES + lane < LENGTH ? to",
        "k * LANES + lane + 1 < LENGTH ? to",
    ),
    ("many rows", "the last vector of a row is left out"): ("lane < VECTORS", "lane + 1 < VECTORS"),
    ("many rows", "a row too many"): ("first + r * AT_ONCE < m) {", "first + r * AT_ONCE <= m) {"),
    ("few rows", "threads behind the last vector go on"): ("< VECTORS_OF_ALL ?", "< 32 ?"),
    ("few rows", "lanes are not added up"): ("lanes_sum<LANES>(sum)", "sum"),
    ("few rows", "threads behind the last row have one vector alone"): ("threadIdx.x % LANES;", "0;"),
    ("row_sum", "a lane adds what belongs to the next row"): ("k * LANES + lane", "k * LANES + lane + 1"),
}


@pytest.mark.parametrize(("name", "mistake"), MISTAKES_FOR_ONE_SIZE)
def test_a_mistake_in_a_kernel_for_one_size_gives_wrong_numbers(name: str, mistake: str, emulator: Emulator) -> None:
    sizes = {
        "row_sum": {"m": 40, "n": 100},
        "many rows": {"m": 1001, "n": 120},
        "few rows": {"m": 3, "n": 16},
        "few of cumsum": {"n": 11},
    }.get(name, {"n": 1971})
    op = op_named({"many rows": "row_sum", "few rows": "row_sum", "few of cumsum": "cumsum"}.get(name, name))
    problem = op.problem(sizes, "bf16")
    (x,) = inputs_of(op, problem)
    x_N = view_of(x.flatten(), 0).view(x.shape)
    wrong = []
    for mode in MODES:
        y, error = output_for_one_size(emulator, op, x_N, "bf16", mode, MISTAKES_FOR_ONE_SIZE[name, mistake])
        wrong.append(bool(error) or not compare(op, problem, (x,), y).passed)
    assert any(wrong)
