"""The kernel of `scatter_add` that adds groups of elements, by fibers of the processor, with planted mistakes."""

from __future__ import annotations

import re

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from torch import Tensor

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.scatter_add import cuda

pytestmark = needs_compiler
INSTRUCTION = re.compile(r'asm volatile\("red\.relaxed\.gpu\.global\.add\.v[24]\.f32.*?: "memory"\);', re.DOTALL)


def added(
    emulator: Emulator,
    src_TD: Tensor,
    ids_T: Tensor,
    v: int,
    group: int,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    index: str = "unsigned",
) -> tuple[Tensor, str]:
    """The sums of the kernel with so many elements a thread, and the error."""
    (t, d), out = src_TD.shape, Output(v, src_TD.shape[1], torch.float32)
    out.matrix.zero_()
    text = cuda.SOURCE_SM90.read_text().split("#if NARROW")[0]  # behind it are the kernels that add in 16 bits
    assert change[0] in text
    text = INSTRUCTION.sub("for (float value : values) { atomicAdd(to++, value); }", text.replace(*change))
    defines = {"ELEMENT": nvrtc.element_type(src_TD.dtype), "INDEX": index, "NARROW": "0", "GROUP": str(group)}
    program = emulator.program(cuda.SOURCE_SM90, "scatter_atomics_vec16", defines, text=text)
    grid = Grid(blocks=-(-t * d // (group * cuda.THREADS)), threads=cuda.THREADS)
    error = program.run([out.matrix, src_TD, ids_T, t, d // group], grid, mode)
    return out.matrix.clone(), error if out.guard_is_unchanged() else "it wrote outside of the table"


def sums_of(src_TD: Tensor, ids_T: Tensor, v: int) -> Tensor:
    return torch.zeros(v, src_TD.shape[1]).index_add_(0, ids_T, src_TD.float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows_are_added(emulator: Emulator, dtype: torch.dtype) -> None:
    for v, t, d, group in ((1, 1, 2, 2), (5, 300, 6, 2), (7, 131, 4, 4), (3, 200, 12, 4), (67, 90, 66, 2)):
        src_TD, ids_T = (
            torch.randint(-8, 8, (t, d)).to(dtype),
            torch.randint(v, (t,)),
        )  # so that every order has the same sums
        for mode, index in zip(MODES, ("unsigned", "unsigned long long"), strict=True):
            sums_VD, error = added(emulator, src_TD, ids_T, v, group, mode, index=index)
            assert error == ""
            assert torch.equal(sums_VD, sums_of(src_TD, ids_T, v)), (v, t, d)


MISTAKES = {
    "all groups of a row are added to its first one": ("(i - row * (INDEX)groups)", "0"),
    "the last row is left out": ("row >= t)", "row + 1 >= t)"),
    "all blocks have the first groups": ("(INDEX)blockIdx.x * blockDim.x", "0"),
    "a group has its first element twice": ("to_float(group.e[e])", "to_float(group.e[e / 2])"),
    "groups are half as long": ("* GROUP, values);", "* (GROUP / 2), values);"),
}


@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_found(mistake: str, group: int, emulator: Emulator) -> None:
    src_TD, ids_T = torch.randint(1, 8, (300, 12)).bfloat16(), torch.randint(5, (300,))
    right = []
    for mode in MODES:
        sums_VD, error = added(emulator, src_TD, ids_T, 5, group, mode, MISTAKES[mistake])
        right.append(not error and torch.equal(sums_VD, sums_of(src_TD, ids_T, 5)))
    assert not all(right)
