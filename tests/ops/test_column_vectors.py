"""Kernels of `column_sum` that read 16-byte vectors of any rows, by fibers of the processor, and planted mistakes."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from math import gcd

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler, with_header
from test_one_block import ELEMENTS, view_of
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.column_reduction import periodic_cluster, strips, vectors

pytestmark = needs_compiler
SHAPES = ((1, 1), (3, 5), (9, 1), (300, 136), (67, 33), (1031, 3), (70, 523), (2, 3001), (8, 1028), (7, 262), (17, 260))
CLUSTER, STRIPS = "column_periodic_cluster", "column_strips"
KERNELS = (
    *("column_few_rows", "column_few_odd_rows", "column_shifted", "column_periodic", "column_known_size"),
    CLUSTER,
    STRIPS,
)
FILES = (
    vectors.FEW_ROWS,
    vectors.FEW_ODD_ROWS,
    vectors.SHIFTED,
    vectors.PERIODIC,
    vectors.KNOWN_SIZE,
    periodic_cluster.SOURCE,
    strips.SOURCE,
)
SHARED = re.compile(r"__shared__ (?:__align__\(16\) )?(\w+) (elements|own)\[(.*)\];")
SOURCES = dict(zip(KERNELS, FILES, strict=True))
LEAST_ODD = 1024
"""Columns of odd rows for each SM."""
CHECKED = """template <class T> T checked(const T* from) {
    T value;
    emulated::load_once(&value, from, sizeof(T));
    return value;
}
"""
"""A load that is an error if its address is not aligned, or not within the matrix."""


def launch_of(
    kernel: str, x_MN: Tensor, out: Tensor, count: int
) -> tuple[Mapping[str, str], Grid, list[Tensor | int], Tensor]:
    """Definitions, grid, arguments, and the counters that must be zero afterwards, on a GPU of `count` SMs."""
    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    shift, width = x_MN.data_ptr() % 16 // itemsize, 16 // itemsize
    if kernel == "column_few_rows":
        few = vectors.few_rows_tile(m, n, itemsize, shift, count)
        return few.defines, Grid(blocks=few.blocks(n), threads=few.threads(n)), [x_MN, out, m, n], torch.zeros(1)
    if kernel == "column_few_odd_rows":
        # As many groups of warps as `count` SMs have, but also for short rows.
        odd = vectors.few_odd_rows(m, n, itemsize, shift, count if n >= LEAST_ODD * count else 0)
        assert odd is not None
        return odd.defines, Grid(blocks=odd.blocks, threads=256), [x_MN, out, m, n], torch.zeros(1)
    if kernel == "column_shifted":
        tile = vectors.shifted_strips(m, n, width, shift, count)
        partials = torch.full((tile.strips * tile.parts * tile.columns(width),), float("nan"))
        arrived = torch.zeros(tile.strips, dtype=torch.int32)
        sizes = m, n, tile.strips, tile.parts, tile.part_rows, shift
        grid = Grid(blocks=tile.strips * tile.parts, threads=256)
        return tile.defines, grid, [x_MN, partials, arrived, out, *sizes], arrived
    if kernel == "column_known_size":
        blocks, threads = vectors.known_size_grid(n)
        known = {"KNOWN_M": str(m), "KNOWN_N": str(n), "INDEX": "unsigned", "BLOCK_THREADS": str(threads)}
        return known, Grid(blocks=blocks, threads=threads), [x_MN, out], torch.zeros(1)
    if kernel == CLUSTER:
        cluster = periodic_cluster.periodic_cluster(m, n, itemsize, shift)
        assert cluster is not None
        grid = Grid(blocks=cluster.blocks, threads=cluster.threads, cluster=cluster.blocks)
        return cluster.defines(m, n, shift), grid, [x_MN, out], torch.zeros(1)
    if kernel == STRIPS:
        strip = strips.column_strips(m, n, itemsize, shift, 2 * count, most_alone_bytes=0)
        assert strip is not None
        grid = Grid(blocks=strip.strips * strip.cluster, threads=strip.threads, cluster=strip.cluster)
        return strip.defines(m, n, itemsize), grid, [x_MN, out, m, n], torch.zeros(1)
    period = vectors.period_of(m, n, itemsize, count)
    slots = torch.zeros(period.blocks * n, dtype=torch.int64)
    grid = Grid(blocks=period.blocks, threads=period.threads)
    return {}, grid, [x_MN, slots, out, m * n, n, period.active], slots


def modes_of(kernel: str) -> tuple[Mode, ...]:
    """Blocks run in their order only where one waits for those before it."""
    return MODES[:1] if kernel == "column_periodic" else MODES


def sums(
    emulator: Emulator, kernel: str, x_MN: Tensor, dtype: str, count: int, mode: Mode, text: str | None = None
) -> tuple[Tensor, str]:
    """What two launches leave, and the emulator's error."""
    out = Output(1, x_MN.shape[1], x_MN.dtype)
    defines, grid, arguments, arrived = launch_of(kernel, x_MN, out.matrix, count)
    text = text or text_of(kernel)
    text = CHECKED + text.replace("__ldg(", "checked(")
    program = emulator.program(SOURCES[kernel], kernel, {"ELEMENT": ELEMENTS[dtype], **defines}, text=text)
    # The second launch finds the counters as the first one left them; where there are none, it finds the right sums.
    for _ in range(1 if kernel == CLUSTER else 2):
        error = program.run(arguments, grid, mode, readable=(x_MN, x_MN))
        error = error or ("a counter or slot is not 0" if arrived.any() else "")
    assert out.guard_is_unchanged()
    return out.matrix[0].clone(), error


def text_of(kernel: str) -> str:
    """The kernel's text, with our own header in place of its include."""
    source = SOURCES[kernel]
    with_bits = source in (vectors.FEW_ROWS, vectors.KNOWN_SIZE, strips.SOURCE)
    text = with_header(source, "access_bits.cuh") if with_bits else source.read_text()
    if source in (periodic_cluster.SOURCE, strips.SOURCE):
        # Static shared memory would be one for all blocks, as that of the first may be.
        of_block = r"alignas(16) static \1 all_of_\2[8][\3]; \1* \2 = all_of_\2[block_in_cluster()];"
        return SHARED.sub(of_block, text).replace("__shared__ float received", "static float received")
    return text


def check(emulator: Emulator, kernel: str, m: int, n: int, dtype: str, offset: int, count: int) -> None:
    op = op_named("column_sum")
    problem = op.problem({"m": m, "n": n}, dtype)
    (x_MN,) = inputs_of(op, problem)
    if n > {"column_periodic": 512, CLUSTER: 256}.get(kernel, n):
        return
    if kernel == CLUSTER and m * n * x_MN.element_size() > periodic_cluster.CLUSTER_BYTES:
        return
    itemsize = x_MN.element_size()
    if kernel == "column_known_size" and not vectors.has_known_size(m, n, itemsize, offset):
        return
    view_MN = view_of(x_MN.view(-1), offset).view(m, n)
    width = 16 // itemsize
    if kernel == STRIPS and strips.column_strips(m, n, itemsize, offset, 2 * count, most_alone_bytes=0) is None:
        return
    if kernel == "column_few_odd_rows" and (gcd(width, n, offset) == width or n < 2 * width):
        return
    results = []
    for mode in modes_of(kernel):
        y_N, error = sums(emulator, kernel, view_MN, dtype, count, mode)
        assert error == "", (kernel, m, n, dtype, offset, count)
        assert compare(op, problem, (x_MN,), y_N).passed, (kernel, m, n, dtype, offset, count)
        results.append(y_N)
    assert torch.equal(results[0], results[-1]), "the order of blocks changes the sums"


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_agree_with_the_reference(kernel: str, dtype: str, emulator: Emulator) -> None:
    for m, n in SHAPES:
        for offset in (0, 1):
            check(emulator, kernel, m, n, dtype, offset, 1)
    # More than 96 KiB, so that there are several blocks and parts.
    check(emulator, kernel, 1201, 61, dtype, 0, 3)
    check(emulator, kernel, 1201, 64, dtype, 3, 3)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_one_cluster_sums_a_small_matrix(dtype: str, emulator: Emulator) -> None:
    shapes = (
        (20003, 1),
        (5000, 3),
        (301, 7),
        (2001, 7),
        (4864, 8),
        (601, 64),
        (130, 200),
        (97, 255),
        (90, 256),
        (3001, 17),
    )
    for number, (m, n) in enumerate(shapes):
        check(emulator, CLUSTER, m, n, dtype, (0, 1, 3, 7)[(number + len(dtype)) % 4], 1)
    check(emulator, CLUSTER, 2**18 // (8 * torch.float64.itemsize) // (2 if dtype == "fp32" else 1), 16, dtype, 0, 1)
    # More than 256 KiB: two parts a block, of which the last one may be empty or hold the last elements of the matrix.
    for m, n, offset in ((17064, 8, 0), (66001, 1, 3), (600, 237, 1), (9001, 13, 1)):
        itemsize = 4 if dtype == "fp32" else 2
        m = m if itemsize == 2 else m // 2 + 1
        tile = periodic_cluster.periodic_cluster(m, n, itemsize, offset)
        assert tile is not None
        assert tile.parts == (2 if m * n * itemsize > periodic_cluster.PART_BYTES else 1)
        check(emulator, CLUSTER, m, n, dtype, offset, 1)


@pytest.mark.parametrize(("dtype", "each"), [("fp32", 4), ("fp32", 2), ("bf16", 8), ("fp16", 4)])
def test_blocks_and_clusters_sum_strips(dtype: str, each: int, emulator: Emulator) -> None:
    shapes = ((1, 8), (9, 24), (33, 96), (130, 264), (515, 72), (1030, 8), (61, 1000))
    clusters = set()
    for number, (m, n) in enumerate(shapes):
        offset, count = (0 if each * (2 if dtype != "fp32" else 4) == 16 else each), 1 + number % 4
        itemsize = 4 if dtype == "fp32" else 2
        tile = strips.column_strips(m, n, itemsize, offset, 2 * count, most_alone_bytes=0)
        assert tile is not None
        assert tile.each == each
        clusters.add(tile.cluster)
        check(emulator, STRIPS, m, n, dtype, offset, count)
    assert {1, 2, 4} <= clusters


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_strips_of_narrow_vectors_know_their_size(dtype: str, emulator: Emulator) -> None:
    passes, clusters = set(), set()
    for m, n, offset, count in (
        (1400, 61, 0, 1),
        (42, 510, 0, 2),
        (1, 7, 1, 1),
        (63, 61, 0, 1),
        (200, 131, 1, 1),
        (300, 33, 1, 2),
        (90, 31, 0, 16),
    ):
        itemsize = 4 if dtype == "fp32" else 2
        tile = strips.column_strips(m, n, itemsize, offset, 2 * count, most_alone_bytes=0)
        assert tile is not None
        assert tile.defines(m, n, itemsize)["KNOWN_M"] == str(m if tile.each * itemsize < strips.VECTOR_BYTES else 0)
        passes.add(tile.one_pass)
        clusters.add(tile.cluster)
        check(emulator, STRIPS, m, n, dtype, offset, count)
    assert passes == {False, True}
    assert min(clusters) == 1
    assert max(clusters) > 1


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_groups_share_odd_rows(dtype: str, emulator: Emulator) -> None:
    for m, n, count, groups in ((9, 1031, 1, 2), (28, 2051, 2, 4), (41, 2053, 2, 4), (33, 1030, 1, 2)):
        tile = vectors.few_odd_rows(m, n, 2, 0, count)
        assert tile is not None
        assert tile.groups == groups
        check(emulator, "column_few_odd_rows", m, n, dtype, 0, count)
        check(emulator, "column_few_odd_rows", m, n, dtype, 3, count)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_up_to_32_rows_have_a_kernel_for_their_size(dtype: str, emulator: Emulator) -> None:
    for m, n in ((29, 314), (32, 104), (17, 1), (10, 4003)):
        assert vectors.has_known_size(m, n, 4 if dtype == "fp32" else 2, 1)
        check(emulator, "column_known_size", m, n, dtype, 1, 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_agree_at_random_sizes(kernel: str, emulator: Emulator) -> None:
    choose = random.Random(kernel)
    for _ in range(6):
        n = choose.choice((choose.randint(1, 40), choose.randint(41, 700)))
        check(
            emulator,
            kernel,
            choose.randint(1, 60000 // n),
            n,
            choose.choice(("fp32", "fp16", "bf16")),
            choose.randint(0, 7),
            2,
        )


MISTAKES = {
    "the last element of a row is left out": ("column_few_rows", "vector < vectors", "vector + 1 < vectors"),
    "a row too many": ("column_few_rows", "row + r < m &&", "row + r < m + 1 &&"),
    "a row of odd ones too many": ("column_few_odd_rows", "row + r < m)", "row + r <= m)"),
    "odd rows are taken to start on 16 bytes": ("column_few_odd_rows", "(SHIFT + r * ODD) % WIDTH", "0"),
    "the last columns of odd rows are left out": ("column_few_odd_rows", "column + c < n", "column + c + 1 < n"),
    "the vector of others is taken": (
        "column_few_odd_rows",
        "(SHIFT + r * ODD) / WIDTH",
        "1 + (SHIFT + r * ODD) / WIDTH",
    ),
    "sums for the neighbour are left out": ("column_few_odd_rows", "own[c] += __shfl", "__shfl"),
    "the last elements of the matrix are left out": ("column_few_odd_rows", "TAIL > 0 && g == g_end", "false"),
    "rows are taken to start on 16 bytes": ("column_shifted", "SHIFTED ? static_cast", "false ? static_cast"),
    "the first row is read before the matrix": ("column_shifted", "(n - 1 - column) / n", "0"),
    "the last row is read beyond the matrix": ("column_shifted", "if (column + WIDTH > n) {", "if (false) {"),
    "the last part of the rows is left out": ("column_shifted", "p < parts ?", "p < parts - 1 ?"),
    "threads do not wait for the sums of others": (
        "column_shifted",
        "    __syncthreads();\n    const int column",
        "    const int column",
    ),
    "the odd copy is left out": ("column_periodic", "(copies + 3) / 4", "copies / 4"),
    "the last block is left out": ("column_periodic", "at < numbers ?", "at < numbers - n ?"),
    "elements before the first vector are left out": ("column_periodic", "i < edges", "i < edges - 1"),
    "the last vector of the cluster is left out": (CLUSTER, "vector < END_WHOLE", "vector < END_WHOLE - 1"),
    "the elements behind the last vector are left out": (CLUSTER, "place < SHIFT + SIZE)", "place < SHIFT + SIZE - 1)"),
    "the cluster's columns are not turned back": (CLUSTER, "TURN = SHIFT % N", "TURN = 0"),
    "blocks store in one place": (CLUSTER, "received + block * (RECEIVED / CLUSTER * N)", "received"),
    "the second part is the first one": (CLUSTER, "bits[part * VECTORS + v]", "bits[v]"),
    "the next part overwrites the one before": (CLUSTER, "            __syncthreads();  // before", "//"),
    "the first block does not wait": (CLUSTER, "        block_has_stored();\n", ""),
    "a row of the strips too many": (STRIPS, "(CLUSTER * GROUPS) < m;", "(CLUSTER * GROUPS) < m + 1;"),
    "blocks of a cluster read the same rows": (STRIPS, "block * GROUPS + group)", "group)"),
    "columns of chunks are not put in order": (STRIPS, "place / CHUNK % LANES * EACH", "place / CHUNK * EACH"),
    "the first block of a strip does not wait": (STRIPS, "        block_has_stored();\n", ""),
    "the columns are not turned back": ("column_periodic", "(c + head) % n", "c"),
}


GROUP_MISTAKES = {
    "all groups have the first rows": ("column_few_odd_rows", "row = group * 8;", "row = 0;"),
    "groups do not wait": ("column_few_odd_rows", "    __syncthreads();\n    if (group", "    if (group"),
    "the last group is left out": ("column_few_odd_rows", "other < GROUPS - 1", "other < GROUPS - 2"),
    "all groups add the edges": ("column_few_odd_rows", "if (group > 0) {  // the", "if (false) {  // the"),
    "a row too many of a known size": (STRIPS, "KNOWN_M >= (r + 1) *", "KNOWN_M >= r *"),
    "lanes behind the last vector read on": (
        STRIPS,
        "min(vector * EACH, static_cast<unsigned>(n - EACH))",
        "vector * EACH",
    ),
}


@pytest.mark.parametrize("mistake", GROUP_MISTAKES)
def test_a_mistake_in_shared_odd_rows_gives_wrong_sums(mistake: str, emulator: Emulator) -> None:
    op, (kernel, before, after) = op_named("column_sum"), GROUP_MISTAKES[mistake]
    rows = 45 if kernel == STRIPS else 29  # an odd number of rows for two groups of threads
    problem = op.problem({"m": rows, "n": 2051}, "bf16")
    (x_MN,) = inputs_of(op, problem)
    text = text_of(kernel)
    assert before in text
    view_MN = view_of(x_MN.view(-1), 3).view(x_MN.shape)
    wrong = []
    for mode in MODES:
        y_N, error = sums(emulator, kernel, view_MN, "bf16", 2, mode, text.replace(before, after))
        wrong.append(bool(error) or not compare(op, problem, (x_MN,), y_N).passed)
    assert any(wrong)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_gives_wrong_sums(mistake: str, emulator: Emulator) -> None:
    op, (kernel, before, after) = op_named("column_sum"), MISTAKES[mistake]
    n, offset, dtype = (40, 0, "bf16") if kernel == STRIPS else (37, 1, "fp32")
    m = 2001 if " part" in mistake else 701
    problem = op.problem({"m": m, "n": n}, dtype)
    (x_MN,) = inputs_of(op, problem)
    view_MN = view_of(x_MN.view(-1), offset).view(m, n)
    text = text_of(kernel)
    assert before in text
    wrong = []
    for mode in modes_of(kernel):
        y_N, error = sums(emulator, kernel, view_MN, dtype, 3, mode, text.replace(before, after))
        wrong.append(bool(error) or not compare(op, problem, (x_MN,), y_N).passed)
    assert any(wrong)
