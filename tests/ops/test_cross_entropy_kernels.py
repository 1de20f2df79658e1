"""Kernels of `cross_entropy` for short rows and for a few long ones, as their bind functions launch them, by fibers of the
processor, with planted mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import rows_on_processor
import torch
from checking import bind, compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, Program, needs_compiler
from torch import Tensor

from kernelviz.core.problem import Direction
from kernelviz.ops import op_named
from kernelviz.ops.cross_entropy.cuda_known_length import LONGEST_ROW_BYTES, SOURCE, THREADS, ThreadRows, thread_rows
from kernelviz.ops.kernels import nvrtc

pytestmark = needs_compiler
INF, NAN = float("inf"), float("nan")
DTYPES = ("fp32", "fp16", "bf16")
WAYS: tuple[tuple[str, Direction], ...] = (
    ("cross_entropy", "forward"),
    ("cross_entropy", "backward"),
    ("cross_entropy_with_grad", "forward"),
)
SHAPES = {
    "cuda_slab": ((613, 3), (211, 20), (9, 130), (5, 512)),
    "cuda_slab_stages": ((1, 1), (1613, 3), (211, 20), (13, 333)),
    "cuda_known_length": ((4500, 1), (4200, 2), (130, 3), (129, 4), (131, 15), (2200, 8)),
    "cuda_row": ((1, 1), (67, 33), (41, 128), (3, 1031), (2, 4099), (1, 16400)),
    "cuda_split": ((1, 9001), (2, 17301), (2, 40960)),
}
"""Units of 2 to 16 bytes; a thread, some threads and a warp a row; more slabs than stages; one to four rows a thread; rows that
start anywhere in a vector; rows that share a block, that have one, and that are read in steps."""


class EmulatedDriver:
    """Runs the kernels that bind functions launch, as on a GPU of one SM that holds two blocks of a persistent kernel."""

    def __init__(self, emulator: Emulator, mode: Mode, text: Callable[[str], str] = lambda text: text) -> None:
        self._emulator, self._mode, self._text = emulator, mode, text
        self.error = ""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> tuple[Program, str]:
        text = self._text(rows_on_processor.text_of(source))
        return self._emulator.program(source, name, defines, text=text), name

    def launch(
        self,
        kernel: tuple[Program, str],
        blocks: nvrtc.Size,
        threads: nvrtc.Size,
        cluster: int,
        shared_bytes: int,
        args: tuple[Any, ...],
    ) -> None:
        assert isinstance(blocks, int)
        assert isinstance(threads, int)
        program, name = kernel
        values = [one if isinstance(one, int) else int(one.value) for one in args]
        grid = Grid(blocks=blocks, threads=threads, shared_bytes=shared_bytes, cluster=cluster)
        self.error = self.error or program.run(values, grid, self._mode, kernel=name)

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        return 2


@contextmanager
def emulated(driver: EmulatedDriver) -> Iterator[None]:
    before, nvrtc.active = nvrtc.active, driver
    try:
        yield
    finally:
        nvrtc.active = before


def is_right(
    name: str,
    way: tuple[str, Direction],
    shape: tuple[int, int],
    dtype: str,
    driver: EmulatedDriver,
    change: Callable[[Tensor, Tensor], None] = lambda logits_MV, labels_M: None,
) -> bool:
    op = op_named(way[0])
    problem = op.problem(dict(zip("mv", shape, strict=True)), dtype, direction=way[1])
    inputs = inputs_of(op, problem)
    change(inputs[0], inputs[1])
    with emulated(driver):
        launch = bind(op.variant_named(name), problem, inputs)
        outputs = launch()
    whole = outputs if isinstance(outputs, tuple) else (outputs,)
    copies = tuple(one.clone().masked_fill(one.isnan(), NAN) for one in whole)
    return not driver.error and compare(op, problem, inputs, copies[0] if len(copies) == 1 else copies).passed


def has_way(name: str, way: tuple[str, Direction]) -> bool:
    return way[1] == "forward" or op_named(way[0]).variant_named(name).backward is not None


CASES = [(name, way) for name in SHAPES for way in WAYS if has_way(name, way)]


@pytest.mark.parametrize(("name", "way"), CASES, ids=str)
def test_kernels_agree_with_the_reference(name: str, way: tuple[str, Direction], emulator: Emulator) -> None:
    for k, shape in enumerate(SHAPES[name]):
        dtype, mode = DTYPES[k % 3], MODES[k // 2 % 2]
        assert is_right(name, way, shape, dtype, EmulatedDriver(emulator, mode)), (shape, dtype)


def masked_and_hopeless(logits_MV: Tensor, labels_M: Tensor, first: int = 0) -> None:
    """Masked classes have no share; a masked label costs infinity; a row of -inf, with inf or with NaN has no loss.

    `first`: which of these the first row is.
    """
    for row in range(len(labels_M)):
        x_V, kind = logits_MV[row], (first + row) % 6
        labels_M[row] = (1, 0, 1, 0, 0, len(x_V) - 1)[kind]
        if kind == 0:
            x_V[::2] = -INF
        elif kind == 5:
            x_V += 100.0
        else:
            x_V[slice(None) if kind == 2 else 0 if kind == 1 else 1] = (-INF, -INF, INF, NAN)[kind - 1]


@pytest.mark.parametrize("way", [way for way in WAYS if way[1] == "forward"], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_masked_and_hopeless_rows(name: str, way: tuple[str, Direction], emulator: Emulator) -> None:
    long = name == "cuda_split"
    for first in (0, 2, 4) if long else (0,):
        driver = EmulatedDriver(emulator, MODES[0])
        change = partial(masked_and_hopeless, first=first)
        assert is_right(name, way, (2, 17301) if long else (130, 3), "bf16", driver, change), first


MISTAKES = {
    "the label of the next row": ("cuda_slab", "return first + min(wanted, ", "return first + min(wanted + 1, "),
    "the next slab has the labels of this one": (
        "cuda_slab_stages",
        "first += (long long)gridDim.x * sizes",
        "// sizes",
    ),
    "each lane writes the loss": ("cuda_slab", "/ Unit<T>::WIDTH % SLAB_LANES == lane", "< 0"),
    "the label's element keeps its one": ("cuda_slab", "p[e] -= e == label % WIDTH", "p[e] -= e > WIDTH"),
    "another unit loses one": ("cuda_slab", "if (vector == label / WIDTH) {", "if (vector == label / WIDTH + 1) {"),
    "rows of a thread are next to each other": ("cuda_known_length", "first + r * SLAB_THREADS;", "first + r;"),
    "the last rows are left out": ("cuda_known_length", "r * SLAB_THREADS < left;", "(r + 1) * SLAB_THREADS < left;"),
    "the loss of a row is that of a part": (
        "cuda_split",
        "int i = threadIdx.x; i < parts",
        "int i = threadIdx.x; i < 1",
    ),
    "the label is counted from the first vector": ("cuda_split", "label = column + row.head;", "label = column;"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, emulator: Emulator) -> None:
    name, before, after = MISTAKES[mistake]
    shape = {"cuda_split": (2, 17301), "cuda_known_length": (4200, 2)}.get(name, (1613, 3))
    source = Path(nvrtc.__file__).parents[1] / "cross_entropy" / f"{name.removesuffix('_stages')}.cu"
    assert before in rows_on_processor.text_of(source)
    drivers = [EmulatedDriver(emulator, mode, lambda text: text.replace(before, after)) for mode in MODES]
    assert not all(is_right(name, WAYS[2], shape, "fp32", driver) for driver in drivers)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("inverse = 1.0f / exponentials_of_units<ELEMENT>(p, LENGTH, 0).sum;", "inverse = 1.0f;"),
        ("to_float(dloss[rows.number(r)])", "to_float(dloss[rows.number(0)])"),
    ],
)
def test_a_mistake_in_the_gradient_of_short_rows_is_found(before: str, after: str, emulator: Emulator) -> None:
    assert before in rows_on_processor.text_of(SOURCE)
    drivers = [EmulatedDriver(emulator, mode, lambda text: text.replace(before, after)) for mode in MODES]
    assert not all(is_right("cuda_known_length", WAYS[1], (4200, 2), "fp32", driver) for driver in drivers)


@pytest.mark.parametrize("rows", [1, 4])
def test_a_thread_writes_nothing_outside_the_outputs(rows: int, emulator: Emulator) -> None:
    m, n = 130, 3
    x_MV, labels_M = torch.randn(m, n).bfloat16(), torch.randint(0, n, (m,))
    macros = ThreadRows(rows, unit_bytes=2, units=n).defines(x_MV)
    kernel = "cross_entropy_with_grad_known_length"
    program = emulator.program(SOURCE, kernel, macros, text=rows_on_processor.text_of(SOURCE))
    loss, dx = Output(m, 1, torch.bfloat16), Output(m, n, torch.bfloat16)
    blocks = -(-m // (THREADS * rows))
    error = program.run([x_MV, labels_M, loss.matrix, dx.matrix, m], Grid(blocks=blocks, threads=THREADS), MODES[0])
    assert error == ""
    assert loss.guard_is_unchanged()
    assert dx.guard_is_unchanged()
    assert not loss.matrix.isnan().any()
    assert not dx.matrix.isnan().any()


class NamedKernels(EmulatedDriver):
    """Notes which kernels are bound, and compiles none."""

    def __init__(self) -> None:
        self.kernels: list[tuple[str, int]] = []

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        self.kernels.append((name, cluster))


@pytest.mark.parametrize(("v", "clusters"), [(4096, 1), (8192, 2), (16384, 4), (16400, 4)])
def test_blocks_of_a_cluster_walk_their_row(v: int, clusters: int) -> None:
    """One block stores the loss of a cluster's row; with the kernel of rows in registers, each would."""
    op = op_named("cross_entropy")
    problem = op.problem({"m": 2, "v": v}, "bf16")
    driver = NamedKernels()
    with emulated(driver):
        bind(op.variant_named("cuda_cluster"), problem, inputs_of(op, problem))
    assert driver.kernels == [("cross_entropy_steps" if clusters > 1 else "cross_entropy_rows", clusters)]


def test_a_thread_has_whole_rows_of_at_most_64_bytes() -> None:
    for itemsize in (2, 4):
        for n in range(1, 100):
            for m in (1, 10**5, 10**6, 10**8):
                tile = thread_rows(m, n, itemsize, 132)
                assert (tile is None) == (n * itemsize > LONGEST_ROW_BYTES)
                if tile is not None:
                    assert tile.units * tile.unit_bytes == n * itemsize
                    assert tile.rows * n * itemsize <= LONGEST_ROW_BYTES
                    assert tile.rows == 1 or m > 132 * 2048
