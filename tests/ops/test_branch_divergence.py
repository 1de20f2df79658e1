"""Kernels of `branch_divergence` by fibers of the processor, their machine code, and what the bound accepts and rejects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Output, needs_compiler
from torch import Tensor

from kernelviz.machine_code.cubin import read_cubin
from kernelviz.machine_code.disassembly import instructions_of_many
from kernelviz.ops import op_named
from kernelviz.ops.branch_divergence import cuda
from kernelviz.ops.branch_divergence.reference import RATE, STEPS, reference, takes_first
from kernelviz.ops.kernels import nvrtc

KERNELS = ("branch_divergent", "branch_select", "branch_regrouped")
OP = op_named("branch_divergence")
SIZES = ((1, 1), (257, 1), (600, 3), (1031, 24), (300, 32), (515, 65), (700, 128), (40, 100))


def called(emulator: Emulator, kernel: str, x_N: Tensor, g: int, text: str | None = None) -> list[Tensor]:
    """The outputs of a kernel in both modes of the emulator."""
    program = emulator.program(cuda.SOURCE, KERNELS, cuda.defines(g), text=text)
    n, pairs = x_N.numel(), cuda.pairs_of(min(g, cuda.HALF))
    elements_of_block = 2 * g * pairs if kernel == "branch_regrouped" else cuda.THREADS
    outputs = []
    for mode in MODES:
        out = Output(1, n, torch.float32)
        grid = Grid(blocks=-(-n // elements_of_block), threads=cuda.THREADS)
        assert program.run([x_N, out.matrix, n], grid, mode, kernel=kernel) == ""
        assert out.guard_is_unchanged()
        outputs.append(out.matrix[0].clone())
    return outputs


@needs_compiler
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_agree_with_the_reference(kernel: str, emulator: Emulator) -> None:
    for n, g in SIZES:
        problem = OP.problem({"n": n, "g": g}, "fp32")
        (x_N,) = inputs_of(OP, problem)
        for y_N in called(emulator, kernel, x_N, g):
            assert compare(OP, problem, (x_N,), y_N).passed, (n, g)


MISTAKES = {
    "lanes take branches whatever g is": ("branch_divergent", "if (i / GROUP % 2 == 0)", "if (i % 2 == 0)"),
    "one branch for all": ("branch_select", "i / GROUP % 2 == 0 ? one : other", "one"),
    "both halves of a block take the same elements": ("branch_regrouped", " + half * g", ""),
    "a block leaves out its last pair": ("branch_regrouped", "k < pairs * g", "k < (pairs - 1) * g"),
    "one step too few": ("branch_select", "step < STEPS", "step < STEPS - 1"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    kernel, before, after = MISTAKES[mistake]
    text = cuda.SOURCE.read_text()
    assert before in text
    problem = OP.problem({"n": 1031, "g": 24}, "fp32")
    (x_N,) = inputs_of(OP, problem)
    for y_N in called(emulator, kernel, x_N, 24, text.replace(before, after)):
        assert not compare(OP, problem, (x_N,), y_N).passed


def test_the_branch_is_one_and_the_selection_is_none() -> None:
    """A compiler that turned the branch into a selection, or the other way round, would show nothing of divergence."""
    pytest.importorskip("cuda.core")
    names = ("branch_divergent", "branch_select")
    cubins = [read_cubin(nvrtc.compile_cubin(cuda.SOURCE, "sm_90", cuda.defines(8), name)) for name in names]
    opcodes = [
        {i.mnemonic for i in of_kernel[name]}
        for name, of_kernel in zip(names, instructions_of_many(cubins), strict=True)
    ]
    # BSSY and BSYNC: where the lanes of a warp that took two branches meet again.
    assert {"BSSY", "BSYNC"} <= opcodes[0]
    assert not {"BSSY", "BSYNC"} & opcodes[1]


def in_half_precision(x_N: Tensor, g: int) -> Tensor:
    return reference(x_N.half(), g)[0].float()


def one_step_too_few(x_N: Tensor, g: int) -> Tensor:
    first_N, second_N, one = x_N.clone(), x_N.abs(), torch.ones(())
    for _ in range(STEPS - 1):
        first_N.lerp_(one, RATE)
        second_N.addcmul_(second_N, second_N, value=-RATE)
    return torch.where(takes_first(x_N.numel(), g, x_N), first_N, second_N)


def the_other_branch(x_N: Tensor, g: int) -> Tensor:
    wide_N = torch.cat([x_N.new_zeros(g), x_N])  # everything moved along by one group
    return reference(wide_N, g)[0][g:]


def branches_of_one_element(x_N: Tensor, g: int) -> Tensor:
    return reference(x_N, 1)[0]


def without_the_absolute_value(x_N: Tensor, g: int) -> Tensor:
    y_N = x_N.clone()
    for _ in range(STEPS):
        y_N.addcmul_(y_N, y_N, value=-RATE)
    return torch.where(takes_first(x_N.numel(), g, x_N), reference(x_N, g)[0], y_N)


def two_roundings(x_N: Tensor, g: int) -> Tensor:
    """No multiply-add: each product is rounded."""
    first_N, second_N = x_N.clone(), x_N.abs()
    for _ in range(STEPS):
        first_N = first_N + RATE * (1.0 - first_N)
        second_N = second_N - RATE * (second_N * second_N)
    return torch.where(takes_first(x_N.numel(), g, x_N), first_N, second_N)


@pytest.mark.parametrize("data", ["normal", "uniform", "zeros", "outliers", "one_value", "small_integers"])
def test_honest_arithmetic_is_accepted(data: str) -> None:
    problem = OP.problem({"n": 4099, "g": 8}, "fp32", data=data)
    for seed in range(3):
        (x_N,) = inputs_of(OP, problem, seed)
        for y_N in (reference(x_N, 8)[0], two_roundings(x_N, 8), reference(x_N.double(), 8)[0].float()):
            assert compare(OP, problem, (x_N,), y_N).passed


@pytest.mark.parametrize(
    "wrong",
    [in_half_precision, one_step_too_few, the_other_branch, branches_of_one_element, without_the_absolute_value],
)
def test_another_function_is_rejected(wrong: Callable[[Tensor, int], Tensor]) -> None:
    problem = OP.problem({"n": 4099, "g": 8}, "fp32")
    (x_N,) = inputs_of(OP, problem)
    assert not compare(OP, problem, (x_N,), wrong(x_N, 8)).passed
