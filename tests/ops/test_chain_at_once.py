"""Chains of few elements, whose factors are loaded at once, run on the processor: odd rows, every unit and planted mistakes."""

from __future__ import annotations

import pytest
import torch
from emulator import MODES, Argument, Emulator, Grid, Output, needs_compiler
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.pointwise_chain.at_once import FEW_THREADS, THREADS, AtOnce, at_once
from kernelviz.ops.pointwise_chain.cuda import reciprocal_of
from kernelviz.ops.pointwise_chain.cuda_at_once import SOURCE

DTYPES = ((torch.float32, 0), (torch.float16, 0), (torch.bfloat16, 0), (torch.bfloat16, 1))
SIZES = ((1, 1, 1), (631, 1, 3), (3, 7, 2), (1, 300, 1), (37, 6, 3), (67, 20, 2), (5, 264, 16), (131, 8, 4))


def chain_of_integers(m: int, n: int, k: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, s, b and the result. Numbers are small integers, so that each format gives the same."""
    x, b = (torch.randint(-3, 4, shape).to(dtype) for shape in ((m, n), (k, n)))
    s = torch.randint(-1, 2, (k, n)).to(dtype)
    s[-1] *= 2
    expected = x
    for scale, shift in zip(s, b, strict=True):
        expected = (expected * scale + shift).relu()
    return x, s, b, expected


def check(
    emulator: Emulator, sizes: tuple[int, int, int], dtype: torch.dtype, packed: int, unit: int, text: str
) -> None:
    m, n, k = sizes
    x, s, b, expected = chain_of_integers(m, n, k, dtype)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "PACKED": str(packed), "STEPS": str(k), "UNIT": str(unit)}
    program = emulator.program(SOURCE, "chain_at_once", defines, text=text)
    threads = m * n // unit
    grid, numbers = Grid(blocks=-(-threads // THREADS), threads=THREADS), (threads - 1, n // unit)
    for mode in MODES:
        out = Output(m, n, dtype)
        arguments: list[Argument] = [x, s, b, out.matrix, *numbers, *reciprocal_of(n // unit)]
        assert program.run(arguments, grid, mode) == ""
        assert torch.equal(out.matrix, expected)
        assert out.guard_is_unchanged()


@needs_compiler
@pytest.mark.parametrize(("dtype", "packed"), DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_few_elements_take_all_steps(
    emulator: Emulator, sizes: tuple[int, int, int], dtype: torch.dtype, packed: int
) -> None:
    unit, widest = 1, 16 // dtype.itemsize
    while unit <= widest and sizes[1] % unit == 0:
        check(emulator, sizes, dtype, packed, unit, text_of(SOURCE))
        unit *= 2


MISTAKES = {
    "the factors are those of the row": ("remainder_of(unit, units, reciprocal, shift)", "unit / units % units"),
    "every step is the first": ("[step * units + column]", "[column]"),
    "a thread behind the end stores": ("threadIdx.x), last)", "threadIdx.x), last + 1)"),
    "no relu": ("v = relu(fmaf(", "v = (fmaf("),
    "one element of a unit": ("i < UNIT;", "i < 1;"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, emulator: Emulator) -> None:
    text, planted = text_of(SOURCE), MISTAKES[mistake]
    assert planted[0] in text
    with pytest.raises(AssertionError):
        check(emulator, (37, 6, 3), torch.float32, 0, 2, text.replace(*planted))


def test_units_divide_rows_and_are_no_wider_than_16_bytes() -> None:
    assert at_once(1, 1, 1, 4) == AtOnce(1, 1)
    assert at_once(2**20, 8, 1, 2) is None
    assert at_once(1, 1, 17, 4) is None
    for m in (1, 300, 5000):
        for n in (1, 6, 40, 1024, 1031):
            for k in (1, 3, 16):
                for itemsize in (2, 4):
                    shape = at_once(m, n, k, itemsize)
                    if shape is not None:
                        assert n % shape.unit == 0
                        assert shape.unit * itemsize <= 16
                        assert shape.unit * shape.threads == m * n
                        assert shape.unit == 1 or m * n // (shape.unit // 2) > FEW_THREADS
