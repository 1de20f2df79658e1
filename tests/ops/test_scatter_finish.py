"""The kernel of `scatter_add` that adds sums to numbers of 16 bits, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from torch import Tensor

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.scatter_add import finish

pytestmark = needs_compiler
NAN, INF = float("nan"), float("inf")


def sums_of(count: int) -> Tensor:
    """fp32 sums, of which whole vectors and single numbers are zero, and some are not finite."""
    sums = torch.randn(count)
    sums[torch.arange(count) // 8 % 3 == 1] = 0
    sums[::5] = 0
    sums[3::41], sums[7::43], sums[8::47] = NAN, INF, -0.0
    return sums


def added(
    emulator: Emulator,
    x: Tensor,
    sums: Tensor,
    each: int,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    defines: dict[str, str] | None = None,
) -> tuple[Tensor, Tensor, str]:
    """What the kernel leaves of x and of the sums, and the error."""
    tile, out = finish.Finish(x.numel(), each), Output(1, x.numel(), x.dtype)
    out.matrix[0], sums = x, sums.clone()
    text = finish.SOURCE.read_text()
    assert change[0] in text
    every = {"ELEMENT": nvrtc.element_type(x.dtype), **tile.defines, **(defines or {})}
    program = emulator.program(finish.SOURCE, "scatter_finish", every, text=text.replace(*change))
    grid = Grid(blocks=tile.blocks, threads=finish.THREADS)
    error = program.run([out.matrix, sums, tile.argument.value], grid, mode)
    return out.matrix[0].clone(), sums, error if out.guard_is_unchanged() else "it wrote outside of the table"


def is_right(x: Tensor, sums: Tensor, result: tuple[Tensor, Tensor, str]) -> bool:
    y, left, error = result
    expected = (x.float() + sums).to(x.dtype)
    return not error and torch.equal(y.nan_to_num(nan=77.0), expected.nan_to_num(nan=77.0)) and not left.any()


@pytest.mark.parametrize("at_once", ["0", "1"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sums_are_added_and_cleared(emulator: Emulator, dtype: torch.dtype, at_once: str) -> None:
    for count in (1, 7, 8, 2049, 5003):
        x, sums = torch.randn(count).to(dtype), sums_of(count)
        x[::11] = NAN
        for each in (1, 8):
            for mode, index in zip(MODES, ("unsigned", "unsigned long long"), strict=True):
                result = added(emulator, x, sums, each, mode, defines={"AT_ONCE": at_once, "INDEX": index})
                assert is_right(x, sums, result), (count, each)


MISTAKES = {
    "sums are not cleared": ("from[c] = Chunk{};", ""),
    "a vector with one sum is left out": ("any |=", "any ="),
    "the elements behind the last vector are left out": ("if (at < count) {", "if (false) {"),
    "the sums behind the last vector are not cleared": ("            sums[at] = 0.0f;\n", ""),
    "an element too many": ("if (at < count) {", "if (at <= count) {"),
    "all blocks have the first vectors": ("(INDEX)blockIdx.x * 256", "0"),
    "the second half of a vector has the first sums": (
        "chunks[e / CHUNK].of[e % CHUNK]);",
        "chunks[0].of[e % CHUNK]);",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    x, sums = torch.randn(5003).bfloat16(), torch.zeros(5004)
    sums[::9] = 1.5
    sums[-5:] = 2.5
    results = []
    for mode in MODES:
        y, left, error = added(emulator, x, sums, 8, mode, MISTAKES[mistake])
        results.append(is_right(x, sums[:-1], (y, left[:-1], error)) and left[-1] == 2.5)
    assert not all(results)
