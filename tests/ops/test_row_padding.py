"""Copies of rows to padded ones and back: their kernel on the processor, its machine code, and the launches that need them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import odd_sizes
from checking import checked
from emulator import MODES, Emulator, Grid, Output, needs_compiler
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.machine_code.facts import facts_of
from kernelviz.ops import op_named
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.convolution import wgmma as convolution
from kernelviz.ops.convolution.reference import convolved
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.row_padding import (
    MOST_ELEMENTS_OF_32_BITS,
    SOURCE,
    THREADS,
    VECTOR,
    defines,
    load_width,
    padded,
    row_copy,
)
from kernelviz.ops.linear_cross_entropy import wgmma as losses
from kernelviz.ops.linear_cross_entropy.reference import backward_reference

LENGTHS = [(1, 8), (7, 8), (53, 56), (82, 88), (164, 168), (24, 24), (8, 1), (16, 9), (88, 82), (168, 164)]
ROWS = (1, 5, 67)


def fault(
    emulator: Emulator,
    lengths: tuple[int, int],
    rows: tuple[int, int],
    *,
    elements: int = 0,
    changed: tuple[str, str] = ("", ""),
) -> str:
    """What is wrong with the copies of two matrices."""
    text = SOURCE.read_text().replace(*changed)
    program = emulator.program(SOURCE, "copy_rows", defines(*lengths, elements), text=text)
    sources = [torch.randint(1, 2**15, (count, lengths[0]), dtype=torch.int16).view(torch.bfloat16) for count in rows]
    for source in sources:
        source[source.isnan()] = 1
    results = [Output(count, lengths[1], torch.bfloat16) for count in rows]
    numbers = [count * lengths[1] for count in rows]
    grid = Grid(blocks=-(-sum(-(-n // VECTOR) for n in numbers) // THREADS), threads=THREADS)
    pointers = [sources[0], results[0].matrix, sources[1], results[1].matrix]
    for mode in MODES:
        error = program.run([*pointers, *numbers, *lengths], grid, mode)
        for source, result in zip(sources, results, strict=True):
            expected = torch.zeros_like(result.matrix)
            width = min(lengths)
            expected[:, :width] = source[:, :width]
            if error or not torch.equal(result.matrix, expected) or not result.guard_is_unchanged():
                return error or "wrong"
    return ""


@needs_compiler
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("elements", [0, MOST_ELEMENTS_OF_32_BITS])
def test_rows_are_copied_exactly_on_the_processor(lengths: tuple[int, int], elements: int, emulator: Emulator) -> None:
    for first in ROWS:
        for second in (0, *ROWS):
            assert fault(emulator, lengths, (first, second), elements=elements) == "", (first, second)


MISTAKES = {
    "a row too long by one part": ("column < from_length", "column <= from_length"),
    "the padding is what was there": ("Vector copied = {};", "Vector copied = *reinterpret_cast<Vector*>(to + first);"),
    "the next row is not begun": ("            ++row;\n", ""),
    "elements after the last one are written": ("if (first + VECTOR <= elements) {", "if (true) {"),
    "the last elements are not written": ("        if (first + i * LOAD < elements) {", "        if (false) {"),
    "the second matrix is the first": ("copy_vector(from_other,", "copy_vector(from,"),
    "the second matrix begins later": ("to_length, number - vectors)", "to_length, number - vectors + 1)"),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    assert SOURCE.read_text().count(MISTAKES[mistake][0]) == 1
    problems = [((53, 56), (5, 3)), ((16, 9), (5, 3))]
    assert any(fault(emulator, lengths, rows, changed=MISTAKES[mistake]) for lengths, rows in problems)


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("lengths", [(164, 168), (82, 88), (53, 56), (16, 9)], ids=str)
def test_nothing_is_spilled_and_a_thread_stores_16_bytes(lengths: tuple[int, int]) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    for elements in (0, MOST_ELEMENTS_OF_32_BITS):
        (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, "sm_90", defines(*lengths, elements), "copy_rows"))
        assert (kernel.spill_stores, kernel.spill_loads, kernel.local_bytes) == (0, 0, 0)


def test_loads_are_as_wide_as_rows_and_addresses_allow() -> None:
    assert [load_width(c, padded(c), 512) for c in (1, 53, 82, 164, 147)] == [1, 1, 2, 4, 1]
    assert [load_width(164, 168, 512, address) for address in (8, 4, 2)] == [4, 2, 1]


class Processor:
    """A driver that runs copies on the processor and launches nothing else."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.copies = 0

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        assert source == SOURCE
        return self.emulator.program(source, name, defines)

    def launch(
        self, kernel: Any, blocks: Any, threads: Any, cluster: int, shared_bytes: int, args: tuple[Any, ...]
    ) -> None:
        self.copies += 1
        numbers = [arg if isinstance(arg, int) else arg.value for arg in args]
        assert kernel.run(numbers, Grid(blocks=blocks, threads=threads)) == ""

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        raise AssertionError


@pytest.fixture
def processor(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Processor:
    """Copies run on the processor. In place of the wgmma kernels, which need a GPU, what they compute of what they are given."""
    driver = Processor(emulator)
    monkeypatch.setattr(nvrtc, "active", driver)

    def convolve(x: Tensor, w: Tensor, b: Tensor | None, s: int, *, resident: bool, parts: bool) -> Launch:
        assert x.shape[-1] % VECTOR == w.shape[-1] % VECTOR == w.shape[0] % VECTOR == 0
        for tensor in (x, w) if b is None else (x, w, b):
            assert tensor.data_ptr() % 16 == 0

        def launch() -> Tensor:
            y = convolved(x.double(), w.double(), s)
            return (y if b is None else (y + b.double()).relu()).to(x.dtype)

        return launch

    def lose(x: Tensor, w: Tensor, labels: Tensor, options: losses.Options) -> Launch:
        assert x.shape[-1] % VECTOR == w.shape[-1] % VECTOR == 0
        return lambda: op_named("linear_cross_entropy").reference(x.double(), w.double(), labels)[0].to(x.dtype)

    def differentiate(x: Tensor, w: Tensor, labels: Tensor, dloss: Tensor) -> Staged:
        assert x.shape[-1] % VECTOR == w.shape[-1] % VECTOR == 0

        def backward() -> tuple[Tensor, ...]:
            gradients = backward_reference(x.double(), w.double(), labels, dloss.double())
            return tuple(gradient.to(x.dtype) for gradient in gradients)

        return Staged(lambda: None, backward)

    monkeypatch.setattr(convolution, "bind_by_size", convolve)
    monkeypatch.setattr(losses, "bind_loss", lose)
    monkeypatch.setattr(losses, "bind_backward", differentiate)
    return driver


@needs_compiler
@pytest.mark.parametrize("name", ["conv2d", "conv_bias_relu"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_convolutions_of_any_channels_and_filters_are_right(name: str, dtype: str, processor: Processor) -> None:
    op = op_named(name)
    for sizes in odd_sizes(op):
        processor.copies = 0
        assert checked(op, op.variant_named("cuda_wgmma_padded"), op.problem(sizes, dtype)).passed, sizes
        c, k = sizes["c"] % VECTOR, sizes["k"] % VECTOR
        assert processor.copies == int(c + k > 0) + int(k > 0) * (2 if name == "conv_bias_relu" else 1), sizes


@needs_compiler
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_losses_and_gradients_of_any_hidden_size_are_right(direction: Any, dtype: str, processor: Processor) -> None:
    op = op_named("linear_cross_entropy")
    for sizes in odd_sizes(op):
        processor.copies = 0
        problem = op.problem(sizes, dtype, direction=direction)
        assert checked(op, op.variant_named("cuda_wgmma_padded"), problem).passed, sizes
        assert (processor.copies > 0) == (sizes["h"] % VECTOR > 0)


@pytest.mark.parametrize(
    ("sizes", "message"), [({"s": 9}, "size s: .*stride of at most 8"), ({"r": 256}, "size r: .*at most 255")]
)
def test_what_no_copy_makes_addressable_is_refused_by_name(sizes: dict[str, int], message: str) -> None:
    op = op_named("conv2d")
    whole = {"n": 1, "h": 3, "w": 3, "c": 3, "k": 5, "r": 3, "s": 1} | sizes
    x, w = torch.zeros(1, 3, 3, 3).bfloat16(), torch.zeros(5, whole["r"], whole["r"], 3).bfloat16()
    with pytest.raises(BadField, match=message):
        op.variant_named("cuda_wgmma_padded").bind(x, w, s=whole["s"])


def test_inputs_that_are_not_contiguous_are_refused_by_name() -> None:
    conv, loss = op_named("conv2d"), op_named("linear_cross_entropy")
    x, w = torch.zeros(1, 3, 5, 6).bfloat16()[..., :5], torch.zeros(5, 3, 3, 5).bfloat16()
    with pytest.raises(BadField, match="x_NHWC"):
        conv.variant_named("cuda_wgmma_padded").bind(x, w, s=1)
    with pytest.raises(BadField, match="w_VH"):
        loss.variant_named("cuda_wgmma_padded").bind(
            torch.zeros(4, 33).half(), torch.zeros(33, 9).half().t(), torch.zeros(4, dtype=torch.int64)
        )


@needs_compiler
def test_a_copy_of_a_tensor_that_begins_anywhere_is_right(processor: Processor) -> None:
    memory = torch.randn(500).half()
    for first in range(4):
        source, copy = memory[first : first + 480].view(5, 96)[:, :96], torch.empty(5, 104).half()
        row_copy(96, 104, 5, source)((source, copy))
        assert torch.equal(copy[:, :96], source)
        assert not copy[:, 96:].any()
