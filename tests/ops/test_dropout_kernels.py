"""The CUDA C++ kernels of `dropout` by fibers of the processor: which bits of which call each element takes."""

from __future__ import annotations

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from test_uniform_fill import philox
from torch import Tensor

from kernelviz.ops import op_named
from kernelviz.ops.dropout import cuda
from kernelviz.ops.dropout.reference import P
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.one_element import OneElement

KINDS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
KERNELS = ("dropout_scalar", "dropout_vec16")
OP = op_named("dropout")
SEED = 2**32 + 5
THRESHOLD = round(P * 2**32)
UPPER_HALF = 0xFFFF0000
SCALE = 2
"""The emulator passes whole numbers, so the input is multiplied by the rest of 4/3 before."""


def kept(kernel: str, dtype: torch.dtype, n: int) -> list[bool]:
    """Which elements stay, computed in Python."""
    width = 16 // dtype.itemsize
    flags = []
    for i in range(n):
        if kernel == "dropout_scalar":
            flags.append(philox(i, SEED, 10)[0] >= THRESHOLD)
        elif dtype == torch.float32:
            flags.append(philox(i // width, SEED, 10)[i % width] >= THRESHOLD)
        else:
            number = philox(i // width, SEED, 10)[i % width // 2]
            half = number if i % 2 else number << 16 & UPPER_HALF
            flags.append(half >= THRESHOLD & UPPER_HALF)
    return flags


def called(emulator: Emulator, kernel: str, x_N: Tensor, mode: Mode, text: str | None = None) -> Tensor:
    """What a launch leaves."""
    n, one = x_N.numel(), OneElement(x_N.numel())
    x_N = (x_N.float() / (1 - P) / SCALE).to(x_N.dtype)
    macros = {"ELEMENT": nvrtc.element_type(x_N.dtype), **one.defines}
    program = emulator.program(cuda.SOURCE, KERNELS, macros, text=text)
    out = Output(1, n, x_N.dtype)
    grid, size = Grid(blocks=one.blocks, threads=one.threads), n - 1
    if kernel == "dropout_vec16":
        of_block = 16 * cuda.THREADS * (1 if x_N.dtype == torch.float32 else 2)
        grid, size = Grid(blocks=-(-n * x_N.element_size() // of_block), threads=cuda.THREADS), n
    assert program.run([x_N, out.matrix, size, THRESHOLD, SCALE, SEED], grid, mode, kernel=kernel) == ""
    assert out.guard_is_unchanged()
    return out.matrix[0].clone()


@needs_compiler
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", KINDS)
def test_each_element_takes_its_bits(dtype: str, kernel: str, emulator: Emulator) -> None:
    for n in (1, 7, 8, 517, 2048, 4099):
        problem = OP.problem({"n": n}, dtype)
        (x_N,) = inputs_of(OP, problem)
        halves_N = (x_N.float() / (1 - P) / SCALE).to(x_N.dtype)
        expected = (halves_N * SCALE).where(torch.tensor(kept(kernel, x_N.dtype, n)), 0.0)
        for mode in MODES:
            y_N = called(emulator, kernel, x_N, mode)
            assert torch.equal(y_N, expected)
            assert compare(OP, problem, (x_N,), y_N).passed


MISTAKES = {
    "all blocks have one counter": (
        "dropout_vec16",
        "(long long)blockIdx.x * (128 * VECTORS) + threadIdx.x",
        "threadIdx.x",
    ),
    "the end is not written": ("dropout_vec16", "if (i * WIDTH + j < n) {", "if (false) {"),
    "the end is not loaded": ("dropout_vec16", "? x[i * WIDTH + j] :", "? from_float<ELEMENT>(1.0f) :"),
    "both halves of a number are one": (
        "dropout_vec16",
        "j % 2 ? numbers[j / 2] : numbers[j / 2] << 16",
        "numbers[j / 2]",
    ),
    "every element has one call": ("dropout_scalar", "philox(i, seed).x", "philox(7, seed).x"),
    "dropped elements stay": ("dropout_scalar", "? 0.0f : v * scale", "? v : v * scale"),
    "others are not scaled": ("dropout_scalar", "0.0f : v * scale)", "0.0f : v)"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    kernel, before, after = MISTAKES[mistake]
    text = cuda.SOURCE.read_text()
    assert before in text
    problem = OP.problem({"n": 65541}, "bf16")
    (x_N,) = inputs_of(OP, problem)
    y_N = called(emulator, kernel, x_N, MODES[0], text.replace(before, after))
    assert not compare(OP, problem, (x_N,), y_N).passed
