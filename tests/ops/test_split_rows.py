"""Kernels in which several blocks share a row, by fibers of the processor, with planted mistakes, and how rows are divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import rows_on_processor
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.kernels.split_rows import RowSplit, row_split
from kernelviz.ops.norm_activation import cuda_split as norm_activation
from kernelviz.ops.normalisation import cuda_split as normalisation
from kernelviz.ops.normalisation.reference import EPS
from kernelviz.ops.softmax import cuda_split as softmax

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}
SHAPES = ((1, 1), (3, 1037), (2, 2048), (2, 4099))
"""Rows that start anywhere in a vector and rows that do not, with fewer chunks than blocks and with more."""
SPLIT = RowSplit(parts=3, lanes=64, vectors=2)


class Case:
    """The two kernels of an op, how they are compiled, and their arguments."""

    def __init__(self, op: str, source: Path, kernels: tuple[str, str], numbers: int, **macros: str) -> None:
        self.op, self.source, self.kernels, self.macros = op, source, kernels, macros
        self.numbers = numbers  # of a partial result

    def outputs(
        self,
        emulator: Emulator,
        inputs: Sequence[Tensor],
        mode: Mode,
        text: Callable[[str], str] = lambda text: text,
    ) -> tuple[tuple[Tensor, ...], str]:
        """What two launches leave, and the first error."""
        x_MN = inputs[0]
        m, n = x_MN.shape
        program = emulator.program(
            self.source,
            self.kernels,
            SPLIT.defines(x_MN) | self.macros,
            text=text(rows_on_processor.text_of(self.source, EPS)),
        )
        partials = torch.full((m * SPLIT.parts, self.numbers), float("nan"))
        y, s = Output(m, n, x_MN.dtype), Output(m, n, x_MN.dtype)
        first, second = self.arguments(inputs, partials, s.matrix, y.matrix)
        sizes = [m, n, SPLIT.parts]
        grid = Grid(blocks=m * SPLIT.parts, threads=SPLIT.lanes)
        error = program.run([*first, *sizes], grid, mode, kernel=self.kernels[0])
        error = error or program.run([*second, *sizes, 0], grid, mode, kernel=self.kernels[1])
        assert y.guard_is_unchanged()
        assert s.guard_is_unchanged()
        return ((s.matrix, y.matrix) if self.op == "add_rmsnorm" else (y.matrix,)), error

    def arguments(
        self, inputs: Sequence[Tensor], partials: Tensor, s: Tensor, y: Tensor
    ) -> tuple[list[Tensor | int], list[Tensor | int]]:
        """Of the first and the second kernel, as the bind functions pass them, without the sizes."""
        x = inputs[0]
        if self.op == "softmax":
            return [*inputs, partials], [*inputs, partials, y]
        if self.op == "norm_activation":
            return [x, partials], [*inputs, partials, y]
        if self.op == "add_rmsnorm":
            return [x, inputs[1], s, partials], [s, inputs[2], 0, partials, y]
        b = inputs[2] if self.op == "layernorm" else 0
        return [x, 0, 0, partials], [x, inputs[1], b, partials, y]


def norm(op: str, centred: str, adds: str) -> Case:
    kernels = "moments_of_parts", "normalise_parts"
    return Case(op, normalisation.SOURCE, kernels, 3, CENTRED=centred, ADDS=adds)


CASES = {
    "softmax": Case("softmax", softmax.SOURCE, ("softmax_parts", "softmax_from_parts"), 2),
    "rmsnorm": norm("rmsnorm", "0", "0"),
    "layernorm": norm("layernorm", "1", "0"),
    "add_rmsnorm": norm("add_rmsnorm", "0", "1"),
    "norm_activation": Case("norm_activation", norm_activation.SOURCE, ("moments_of_parts", "layernorm_gelu_parts"), 3),
}


def is_right(
    case: Case,
    emulator: Emulator,
    shape: tuple[int, int],
    dtype: torch.dtype,
    mode: Mode,
    text: Callable[[str], str] = lambda text: text,
) -> bool:
    op = op_named(case.op)
    problem = op.problem(dict(zip("mn", shape, strict=True)), NAMES[dtype])
    inputs = inputs_of(op, problem)
    outputs, error = case.outputs(emulator, inputs, mode, text)
    copies = tuple(one.clone() for one in outputs)
    return not error and compare(op, problem, inputs, copies[0] if len(copies) == 1 else copies).passed


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_the_reference(name: str, emulator: Emulator) -> None:
    for dtype, mode in zip(NAMES, MODES, strict=True):
        for shape in SHAPES:
            assert is_right(CASES[name], emulator, shape, dtype, mode), (shape, dtype)


@needs_compiler
def test_the_backward_pass_of_softmax_agrees_with_its_definition(emulator: Emulator) -> None:
    case = Case("softmax", softmax.SOURCE, ("softmax_backward_parts", "softmax_backward_from_parts"), 1)
    for dtype, mode in zip(NAMES, MODES, strict=True):
        for m, n in SHAPES:
            y_MN = torch.randn(m, n).softmax(-1).to(dtype)
            dy_MN = torch.randn(m, n).to(dtype)
            (dx_MN,), error = case.outputs(emulator, (y_MN, dy_MN), mode)
            assert error == ""
            assert rows_on_processor.is_softmax_gradient(dx_MN, y_MN, dy_MN), (m, n, dtype)


MISTAKES = {
    "the last chunk of a part is left out": ("i < piece.count", "i < piece.count - 1"),
    "a block takes the chunks of others, too": ("row.rank += piece.step", "++row.rank"),
    "every other chunk of a block is not stored": ("row.rank -= piece.step", "row.rank -= 2 * piece.step"),
    "the results of the first part are not merged": (
        "int i = threadIdx.x; i < parts",
        "int i = threadIdx.x + 1; i < parts",
    ),
    "the results of another row are merged": ("row.row * parts + i", "i"),
    "the means of two parts do not count": ("+ away * away * a.count * share", ""),
    "the mean of a part is that of all parts": ("fmaf(away, share, a.mean)", "a.mean"),
    "what is not of the row counts": ("row.holds(k, e) ? a[e] - here.mean : 0.0f", "a[e] - here.mean"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    case, (before, after) = CASES["layernorm"], MISTAKES[mistake]
    assert before in rows_on_processor.text_of(case.source, EPS)
    right = [
        is_right(case, emulator, (3, 4099), torch.float32, mode, lambda text: text.replace(before, after))
        for mode in MODES
    ]
    assert not all(right)


def test_a_row_has_as_many_blocks_as_chunks_at_most_and_few_rows_have_all_multiprocessors() -> None:
    for m in (1, 2, 7, 66, 131, 132, 1000):
        for n in (1, 1000, 100_000, 10_000_000):
            split = row_split(m, n, 2, 132)
            chunk = split.lanes * split.vectors * 8
            assert 1 <= split.parts <= -(-n // chunk)
            assert split.parts == 1 or m * split.parts <= 4 * 132
            if n >= 4 * 132 * chunk and m <= 132:
                assert m * split.parts > 3 * 132
    assert replace(row_split(8, 10**7, 2, 132), parts=1) == RowSplit(parts=1)
