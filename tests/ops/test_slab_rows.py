"""Kernels of many short rows, by fibers of the processor, with planted mistakes, and the slabs that they are launched with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import rows_on_processor
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from torch import Tensor

from kernelviz.core.problem import Problem
from kernelviz.ops import Op, op_named
from kernelviz.ops.kernels.row_slabs import (
    LONGEST_ROW_BYTES,
    ONE_SLAB,
    OPT_IN_BYTES,
    RING,
    SHARED_BYTES,
    RegisterArrays,
    RowSlab,
    SlabRing,
    VeryShort,
    row_slab,
    rows_in_registers,
)
from kernelviz.ops.norm_activation import cuda_slab as norm_activation
from kernelviz.ops.normalisation import cuda_slab as normalisation
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.row_reduction import cuda_slab as row_reduction
from kernelviz.ops.softmax import cuda_slab as softmax

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
RINGS = {
    "one_slab": ONE_SLAB,
    "one_bulk_slab": SlabRing(threads=64, stages=1, slab_bytes=4096),
    "ring": RING,
    "small_ring": SlabRing(threads=32, stages=2, slab_bytes=2048),
    "registers": SlabRing(threads=32, stages=2, slab_bytes=2048, very_short=VeryShort(7, 512, 512, 2)),
}
"""A slab a block through registers and by bulk copies, the ring that is launched, one of which a stage is used again after one
slab, and rows in registers where they are short."""
SHAPES = ((1, 1), (613, 3), (211, 20), (9, 130), (5, 512), (3, 333))
"""Units of 2, 8, 4 and 16 bytes; a thread, some threads and a warp a row; the last slab with fewer rows."""
VERY_SHORT = ((1, 1), (1, 3), (613, 3), (67, 2), (130, 5), (64, 7), (41, 10), (75, 32), (33, 24), (7, 128), (5, 64))
"""Rows of which 1 to 8 are whole vectors, and of whole vectors for 1 to 32 threads, some of which have none."""


class Case:
    """A kernel of an op: where it is, how it is compiled, and how it is called."""

    def __init__(
        self, op: str, source: Path, kernel: str, *, tensors: int = 1, macros: Mapping[str, str] | None = None
    ) -> None:
        self.op, self.source, self.kernel, self.tensors, self.macros = op, source, kernel, tensors, macros or {}
        self.arrays = RegisterArrays() if kernel == "row_slab" else RegisterArrays(1, 2)

    def outputs(
        self,
        emulator: Emulator,
        inputs: Sequence[Tensor],
        *,
        mode: Mode,
        ring: SlabRing = ONE_SLAB,
        text: Callable[[str], str] = lambda text: text,
    ) -> tuple[tuple[Tensor, ...], str]:
        """What a launch leaves, and the first error. As on a GPU of two SMs, so that there are several slabs, or with two
        persistent blocks."""
        x_MN = inputs[0]
        m, n = x_MN.shape
        itemsize_bytes = x_MN.element_size()
        slab = rows_in_registers(n, itemsize_bytes, tensors=self.tensors, ring=ring, arrays=self.arrays)
        slab = slab or row_slab(m, n, itemsize_bytes, 2, tensors=self.tensors, ring=ring, arrays=self.arrays)
        assert slab is not None
        if ring.stages > 1 and not slab.in_registers:
            slab = slab.balanced(m, n * itemsize_bytes, 2)
        slabs = -(-m // slab.rows)
        macros = slab.defines(x_MN) | self.macros
        program = emulator.program(
            self.source, self.kernel, macros, text=text(rows_on_processor.text_of(self.source, EPS))
        )
        arguments, results = self.arguments(inputs, slab)
        blocks = slabs if ring.stages == 1 or slab.in_registers else min(2, slabs)
        grid = Grid(blocks=blocks, threads=ring.threads, shared_bytes=slab.shared_bytes)
        error = program.run(arguments, grid, mode, readable=inputs)
        if not all(one.guard_is_unchanged() for one in results if one.matrix.is_floating_point()):
            error = error or "something was written outside the outputs"
        return tuple(one.matrix.view(m) if self.kernel == "row_slab" else one.matrix for one in results), error

    def arguments(self, inputs: Sequence[Tensor], slab: RowSlab) -> tuple[list[Tensor | int], list[Output]]:
        """As the bind functions pass them, but for eps."""
        x_MN = inputs[0]
        m, n = x_MN.shape
        if self.op in ("row_sum", "argmax"):
            out = Output(m, 1, torch.int64 if self.op == "argmax" else x_MN.dtype)
            return [x_MN, out.matrix, m, n, slab.rows, slab.tensor_bytes], [out]
        y = Output(m, n, x_MN.dtype)
        if self.kernel == "softmax_slab":
            return [x_MN, y.matrix, m, n, slab.rows, slab.tensor_bytes], [y]
        if self.kernel == "softmax_backward_slab":
            return [inputs[0], inputs[1], y.matrix, m, n, slab.rows, slab.tensor_bytes], [y]
        if self.op == "norm_activation":
            return [*inputs, y.matrix, m, n, 0, slab.rows, slab.tensor_bytes], [y]
        x, r, w, b = {
            "rmsnorm": (inputs[0], 0, inputs[-1], 0),
            "layernorm": (inputs[0], 0, inputs[1], inputs[-1]),
            "add_rmsnorm": (inputs[0], inputs[1], inputs[-1], 0),
        }[self.op]
        s = Output(m, n, x_MN.dtype) if self.op == "add_rmsnorm" else None
        pointers = [x, r, w, b, 0 if s is None else s.matrix, y.matrix]
        return [*pointers, m, n, 0, slab.rows, slab.tensor_bytes], [y] if s is None else [s, y]


def norm(op: str, *, centred: int = 0, adds: int = 0) -> Case:
    return Case(
        op,
        normalisation.SOURCE,
        "normalise_slabs",
        tensors=1 + adds,
        macros={"CENTRED": str(centred), "ADDS": str(adds)},
    )


CASES = {
    "row_sum": Case("row_sum", row_reduction.SOURCE, "row_slab"),
    "argmax": Case("argmax", row_reduction.SOURCE, "row_slab", macros={"ARGMAX": "1"}),
    "softmax": Case("softmax", softmax.SOURCE, "softmax_slab"),
    "rmsnorm": norm("rmsnorm"),
    "layernorm": norm("layernorm", centred=1),
    "add_rmsnorm": norm("add_rmsnorm", adds=1),
    "norm_activation": Case("norm_activation", norm_activation.SOURCE, "layernorm_gelu_slabs"),
}


def right(op: Op, problem: Problem, inputs: Sequence[Tensor], outputs: tuple[Tensor, ...]) -> bool:
    copies = tuple(one.clone() for one in outputs)
    return compare(op, problem, inputs, copies[0] if len(copies) == 1 else copies).passed


@needs_compiler
@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_the_reference(name: str, ring: str, emulator: Emulator) -> None:
    case, op = CASES[name], op_named(CASES[name].op)
    for dtype, mode in zip(NAMES, MODES, strict=True):
        for m, n in VERY_SHORT if ring == "registers" else SHAPES:
            problem = op.problem({"m": m, "n": n}, NAMES[dtype])
            inputs = inputs_of(op, problem)
            outputs, error = case.outputs(emulator, inputs, mode=mode, ring=RINGS[ring])
            assert error == "", (m, n, dtype)
            assert right(op, problem, inputs, outputs), (m, n, dtype)


@needs_compiler
@pytest.mark.parametrize("ring", RINGS)
def test_the_backward_pass_of_softmax_agrees_with_its_definition(ring: str, emulator: Emulator) -> None:
    case = Case("softmax", softmax.SOURCE, "softmax_backward_slab", tensors=2)
    for dtype, mode in zip(NAMES, MODES, strict=True):
        for m, n in VERY_SHORT if ring == "registers" else SHAPES:
            y_MN = torch.randn(m, n).softmax(-1).to(dtype)
            dy_MN = torch.randn(m, n).to(dtype)
            (dx_MN,), error = case.outputs(emulator, (y_MN, dy_MN), mode=mode, ring=RINGS[ring])
            assert error == ""
            assert rows_on_processor.is_softmax_gradient(dx_MN, y_MN, dy_MN), (m, n, dtype)


MISTAKES = {
    "a slab begins at the wrong row": ("blockIdx.x * sizes.rows_a_slab", "blockIdx.x * (sizes.rows_a_slab + 1)"),
    "the end of the last slab is not copied": ("vectors * WIDTH, elements);", "elements, elements);"),
    "the last row is left out": ("row.inside = wanted < slab.rows;", "row.inside = wanted < slab.rows - 1;"),
    "threads do not wait for the copies of others": ("__syncthreads();", ""),
    "lanes of a row do not exchange their sums": ("SLAB_LANES / 2; distance", "0; distance"),
    "the last unit of a row is left out": ("unit < n / Unit<T>::WIDTH", "unit < n / Unit<T>::WIDTH - 1"),
}
MISTAKES_OF_RINGS = {
    "a stage is not waited for": ("barrier_wait(barriers + 8 * stage, parity);", ""),
    "the parity of a stage does not change": ("parity ^= 1;", ""),
    "a slab is processed twice": ("first < sizes.m; first += step)", "first < sizes.m; first += sizes.rows_a_slab)"),
    "the stage is filled again before its slab was written": ("bring(previous, first", "bring(stage, first"),
    "a store is not waited for before its stage is filled": ("store_wait_read<1>();", ""),
    "the end of the last slab is not written": (
        "tensors.to[i] + slab.start(), in_vectors, slab",
        "tensors.to[i], 0, 0 * slab",
    ),
    "the end of the last slab is not read": (
        "elements + i * tensor, in_vectors, slab",
        "elements + i * tensor, 0, 0 * slab",
    ),
    "stores have not ended": ("store_wait();", ""),
    "a second tensor is not copied": (
        "i < INPUTS; ++i) {\n                    const char* from",
        "i < 1; ++i) {\n                    const char* from",
    ),
}


MISTAKES_IN_REGISTERS = {
    "rows behind the last one are written": (3, "return (SLAB_ROWS - 1) * APART < left;", "return true;"),
    "the last rows are left out": (3, "row * APART < left;", "(row + 1) * APART < left;"),
    "all rows are the first one of a thread": (3, "(bits[i]) + r * OF_ROW;", "(bits[i]) + 0 * OF_ROW;"),
    "a lane has a vector of the next row": (24, "lane + k * SLAB_LANES < of_row", "lane + k * SLAB_LANES <= of_row"),
    "rows are next to each other": (24, "SLAB_THREADS / SLAB_LANES;\n    long", "1;\n    long"),
}


def is_found(case: Case, before: str, after: str, emulator: Emulator, *, ring: SlabRing, length: int = 35) -> bool:
    """Whether the text of a kernel with a mistake leaves an error or a wrong result in one of the modes."""
    op = op_named(case.op)
    assert before in rows_on_processor.text_of(case.source, EPS)
    problem = op.problem({"m": 613, "n": length}, "fp32")
    inputs = inputs_of(op, problem)
    for mode in MODES:
        outputs, error = case.outputs(
            emulator, inputs, mode=mode, ring=ring, text=lambda text: text.replace(before, after)
        )
        if error or not right(op, problem, inputs, outputs):
            return True
    return False


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    assert is_found(CASES["row_sum"], *MISTAKES[mistake], emulator, ring=ONE_SLAB)


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES_OF_RINGS)
def test_a_mistake_in_the_ring_is_found(mistake: str, emulator: Emulator) -> None:
    assert is_found(CASES["add_rmsnorm"], *MISTAKES_OF_RINGS[mistake], emulator, ring=RINGS["small_ring"])


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES_IN_REGISTERS)
def test_a_mistake_with_rows_in_registers_is_found(mistake: str, emulator: Emulator) -> None:
    length, before, after = MISTAKES_IN_REGISTERS[mistake]
    assert is_found(CASES["add_rmsnorm"], before, after, emulator, ring=RINGS["registers"], length=length)


@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize("tensors", [1, 2])
@pytest.mark.parametrize("ring", RINGS)
def test_slabs_are_whole_vectors_that_fit(itemsize: int, tensors: int, ring: str) -> None:
    for n in range(1, LONGEST_ROW_BYTES // itemsize + 1):
        for m in (1, 1000, 2**24):
            slab = row_slab(m, n, itemsize, 132, tensors=tensors, ring=RINGS[ring], arrays=RegisterArrays(1, 2))
            assert slab is not None
            if RINGS[ring].stages > 1:
                most_rows, slab = slab.rows, slab.balanced(m, n * itemsize, 500)
                assert slab.rows <= most_rows
            row_bytes = n * itemsize
            assert slab.rows * row_bytes % 16 == 0 or slab.rows >= m
            most_bytes = max(3 * RINGS[ring].slab_bytes // (2 * tensors), 8 * LONGEST_ROW_BYTES)
            assert slab.rows * row_bytes <= slab.tensor_bytes <= most_bytes
            assert row_bytes % slab.unit_bytes == 0
            assert slab.lanes in (1, 2, 4, 8, 16, 32)
            units = row_bytes // slab.unit_bytes
            assert (slab.units - 1) * slab.lanes < units <= slab.units * slab.lanes
            assert slab.full == (units == slab.units * slab.lanes)
            assert slab.shared_bytes <= max(slab.opt_in_bytes, OPT_IN_BYTES) <= SHARED_BYTES
    assert row_slab(1000, LONGEST_ROW_BYTES // itemsize + 1, itemsize, 132) is None
