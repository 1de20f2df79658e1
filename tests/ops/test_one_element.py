"""Kernels with one element a thread, run on the processor: they write every element, and nothing beside the output."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from emulator import MODES, Argument, Emulator, Grid, Output, needs_compiler, with_header
from test_one_block import view_of
from torch import Tensor

from kernelviz.ops.activation import cuda as activation
from kernelviz.ops.arithmetic import cuda as arithmetic
from kernelviz.ops.cast import cuda as cast
from kernelviz.ops.copy import cuda as copy
from kernelviz.ops.copy import known_size
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.one_element import SMALL_INDEX, OneElement
from kernelviz.ops.norm_activation import cuda as norm_activation
from kernelviz.ops.pointwise_chain import cuda as chain
from kernelviz.ops.scale import cuda as scale

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
sizes = pytest.mark.parametrize("n", [1, 31, 33, 300])
INTEGERS = 4
"""Numbers are small integers, so that every order and format of the operations gives the same."""


def check(
    emulator: Emulator,
    source: Path,
    kernel: str,
    arguments: tuple[Argument, ...],
    expected: Tensor,
    defines: dict[str, str],
    grid: Grid,
    text: str | None = None,
) -> None:
    """Run a kernel; `arguments` are those before and after the output, which replaces a None."""
    macros = {"ELEMENT": nvrtc.element_type(expected.dtype), **defines}
    program = emulator.program(source, kernel, macros, text=text)
    for mode in MODES:
        out = Output(1, expected.numel(), expected.dtype)
        given = [out.matrix if one is OUTPUT else one for one in arguments]
        assert program.run(given, grid, mode) == ""
        assert out.guard_is_unchanged()
        assert torch.equal(out.matrix[0], expected.flatten())


OUTPUT = torch.empty(0)


def integers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randint(-INTEGERS, INTEGERS, shape).to(dtype)


def plain_loads(source: Path) -> str:
    """The text of a file whose other kernels have streaming loads, for which the emulator wants to know the input."""
    return source.read_text().replace("__ldcs(from + i)", "from[i]")


def grid_of(one: OneElement) -> Grid:
    return Grid(blocks=one.blocks, threads=one.threads)


@needs_compiler
class Recorded:
    """A driver that keeps the arguments of launches."""

    def __init__(self) -> None:
        self.numbers: list[object] = []

    def kernel(self, *_: object) -> None:
        """No kernel is needed."""

    def launch(
        self, _kernel: object, _blocks: object, _threads: object, _cluster: int, _shared: int, args: object
    ) -> None:
        assert isinstance(args, tuple)
        self.numbers += [arg.value for arg in args if not isinstance(arg, int)]

    def resident(self, *_: object) -> int:
        raise AssertionError


@pytest.mark.parametrize("n", [1, 5])
def test_kernels_get_the_index_of_the_last_element(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of one element, which is 0."""
    driver = Recorded()
    monkeypatch.setattr(nvrtc, "active", driver)
    x_N = torch.ones(n)
    launches = (
        arithmetic.bind_scalar(x_N, x_N, "mul"),
        cast.bind_scalar(x_N, torch.bfloat16),
        copy.bind_scalar(x_N),
        copy.bind_strided_scalar(torch.ones(n, 1)),
        activation.bind_scalar(x_N, "relu"),
        scale.bind_scalar(x_N, 2.0),
    )
    for launch in launches:
        driver.numbers.clear()
        launch()
        assert driver.numbers[0] == n - 1, driver.numbers


@dtypes
@sizes
def test_elements_are_copied(emulator: Emulator, n: int, dtype: torch.dtype) -> None:
    x, one = integers(n, dtype=dtype), OneElement(n)
    index = "long long" if n == 33 else "unsigned"
    text = plain_loads(copy.SOURCE)
    check(
        emulator, copy.SOURCE, "copy_scalar", (x, OUTPUT, n - 1), x, {**one.defines, "INDEX": index}, grid_of(one), text
    )


@needs_compiler
@dtypes
@pytest.mark.parametrize("n", [1, 7, 129, 512, 1000, 4100, 8193, 33027])
@pytest.mark.parametrize("offset", [0, 1])
def test_elements_of_a_known_number_are_copied(emulator: Emulator, n: int, offset: int, dtype: torch.dtype) -> None:
    x = view_of(integers(n, dtype=dtype), offset)
    known = known_size.known_size(n, x.element_size(), x.data_ptr())
    assert known is not None
    text = with_header(known_size.SOURCE, "access_bits.cuh")
    defines = known.defines(n, x.element_size())
    program = emulator.program(known_size.SOURCE, "copy_known_size", defines, text=text)
    out = Output(1, n, dtype)
    for mode in MODES:
        assert program.run([x, out.matrix], Grid(blocks=known.blocks, threads=known.threads), mode) == ""
        assert out.guard_is_unchanged()
        assert torch.equal(out.matrix[0], x)


@needs_compiler
@pytest.mark.parametrize("stride", [1, 3, 32])
@sizes
def test_elements_at_a_stride_are_copied(emulator: Emulator, n: int, stride: int) -> None:
    x, one = integers(n, stride).int(), OneElement(n, stride)
    program = emulator.program(copy.STRIDED, "strided_scalar", {"ELEMENT": "unsigned", **one.defines})
    out = Output(1, n, torch.float32)
    assert program.run([x, out.matrix, n - 1, stride], grid_of(one)) == ""
    assert out.guard_is_unchanged()
    assert torch.equal(out.matrix[0].view(torch.int32), x[:, 0])


@needs_compiler
@dtypes
@sizes
def test_elements_are_scaled(emulator: Emulator, n: int, dtype: torch.dtype) -> None:
    x, one = integers(n, dtype=dtype), OneElement(n)
    # The emulator passes whole numbers.
    text = plain_loads(scale.SOURCE).replace("INDEX last, float s", "INDEX last, int s")
    check(emulator, scale.SOURCE, "scale_scalar", (x, OUTPUT, n - 1, 3), 3 * x, one.defines, grid_of(one), text)


@needs_compiler
@dtypes
@sizes
def test_elements_are_added(emulator: Emulator, n: int, dtype: torch.dtype) -> None:
    x, y, one = integers(n, dtype=dtype), integers(n, dtype=dtype), OneElement(n)
    division = 'asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));'
    text = arithmetic.SOURCE.read_text()
    assert division in text
    defines = {"COMBINE": "plus", **one.defines}
    arguments = (x, y, OUTPUT, n - 1)
    text = text.replace(division, "q = a / b;")
    check(emulator, arithmetic.SOURCE, "arithmetic_scalar", arguments, x + y, defines, grid_of(one), text)


@needs_compiler
@dtypes
@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 221), (3, 257), (300, 3), (257, 32), (7, 32)])
def test_channels_are_normalised(emulator: Emulator, m: int, n: int, dtype: torch.dtype) -> None:
    inputs, expected = channels_and_result(m, n, dtype)
    few = norm_activation.few_elements(m, n, 1.0)
    check(
        emulator, norm_activation.ONE_ELEMENT_SOURCE, few.name, (*inputs, OUTPUT), expected, few.defines, grid_few(few)
    )


def channels_and_result(m: int, n: int, dtype: torch.dtype) -> tuple[tuple[Tensor, ...], Tensor]:
    """x, mean, variance, w and b, and what must be computed of them. Variances plus 1 are 1, 4 or 1/4."""
    x, mean, w, b = integers(m, n, dtype=dtype), integers(n), integers(n), integers(n)
    variance = torch.tensor([0.0, 3.0, -3.0])[torch.randint(3, (n,))]
    expected = ((x.float() - mean) * w / (variance.abs() + 1).sqrt() + b).relu().to(dtype)
    return (x, mean, variance, w, b), expected


def grid_few(few: norm_activation.FewElements) -> Grid:
    return Grid(blocks=few.blocks, threads=few.threads)


CHANNEL_MISTAKES = {
    "the channel is the row": ("i % COLUMNS", "i / COLUMNS"),
    "every row is the first": ("blockIdx.y * COLUMNS + c", "c"),
    "threads behind the end of a row go on": (
        "element_of_thread(COLUMNS - 1)",
        "blockIdx.x * BLOCK_THREADS + threadIdx.x",
    ),
    "the variance has no eps": ("+ EPS", ""),
    "no absolute value": ("fabsf(variance[c])", "variance[c]"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", CHANNEL_MISTAKES)
def test_a_mistake_in_the_kernels_of_channels_is_found(mistake: str, emulator: Emulator) -> None:
    m, n = (300, 3) if mistake == "the channel is the row" else (16, 221)
    inputs, expected = channels_and_result(m, n, torch.float32)
    few = norm_activation.few_elements(m, n, 1.0)
    source = norm_activation.ONE_ELEMENT_SOURCE
    text = source.read_text()
    assert CHANNEL_MISTAKES[mistake][0] in text
    text = text.replace(*CHANNEL_MISTAKES[mistake])
    with pytest.raises(AssertionError):
        check(emulator, source, few.name, (*inputs, OUTPUT), expected, few.defines, grid_few(few), text)


@needs_compiler
@dtypes
@sizes
def test_steps_of_a_chain_follow_each_other_also_in_place(emulator: Emulator, n: int, dtype: torch.dtype) -> None:
    x, s, b = integers(n, dtype=dtype), integers(2, dtype=dtype), integers(2, dtype=dtype)
    expected = ((x * s[0] + b[0]).relu() * s[1] + b[1]).relu()
    defines = {"SCALARS": "1", "PACKED": "0", "VECTORS": "1", "STEPS": "2"}
    grid = Grid(blocks=-(-n // chain.SCALAR_THREADS), threads=chain.SCALAR_THREADS)
    check(emulator, chain.SOURCE, "chain_steps", (x, s, b, OUTPUT, n - 1), expected, defines, grid)
    program = emulator.program(chain.SOURCE, "chain_steps", {"ELEMENT": nvrtc.element_type(dtype), **defines})
    for mode in MODES:
        out = x.clone()
        assert program.run([out, s, b, out, n - 1], grid, mode) == ""
        assert torch.equal(out, expected)


def test_an_index_has_64_bits_where_32_are_not_enough() -> None:
    assert OneElement(SMALL_INDEX).defines["INDEX"] == "unsigned"
    assert OneElement(SMALL_INDEX + 1).defines["INDEX"] == "long long"
    assert OneElement(SMALL_INDEX // 4, stride=5).defines["INDEX"] == "long long"
    last = SMALL_INDEX + 2 * max(OneElement(n).threads for n in (1, 2**14, 2**15, 2**16, 2**20))
    assert last < 2**32, "threads behind the last element would begin again at the first"
