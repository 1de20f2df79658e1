"""`conv2d` and `conv_bias_relu`: reference, cost, faults that the bounds refuse, and the Triton kernel in the interpreter.

Run as a script with TRITON_INTERPRET=1 it tries the Triton kernel, interpreted, at all odd sizes, and prints one JSON line a
case: {"case", "wrong"}.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cases import odd_sizes
from checking import bind, checked, compare, inputs_of, reasons_of
from emulator import Emulator, Grid, Output, needs_compiler
from interpreter_process import interpreted_lines, write_case
from torch import Tensor
from torch.nn import functional

from kernelviz.core.errors import BadField
from kernelviz.ops import Op, op_named
from kernelviz.ops.convolution import cuda
from kernelviz.ops.convolution.boxes import box_of
from kernelviz.ops.convolution.geometry import MOST_PIXELS, Geometry, covered, require_pixels
from kernelviz.ops.convolution.reference import convolved
from kernelviz.ops.convolution.tiles import TILES, choose

PLAIN, FUSED = op_named("conv2d"), op_named("conv_bias_relu")
SIZES = {"n": 2, "h": 9, "w": 7, "c": 72, "k": 40, "r": 3, "s": 1}


def by_torch(x: Tensor, w: Tensor, s: int) -> Tensor:
    """torch's convolution of tensors in NHWC."""
    y = functional.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), stride=s, padding=w.shape[1] // 2)
    return y.permute(0, 2, 3, 1).contiguous()


@pytest.mark.parametrize("sizes", odd_sizes(PLAIN), ids=lambda s: "-".join(map(str, s.values())))
def test_the_reference_is_torchs_convolution(sizes: dict[str, int]) -> None:
    x, w = (t.double() for t in inputs_of(PLAIN, PLAIN.problem(sizes, "bf16")))
    (y,) = PLAIN.reference(x, w, s=sizes["s"])
    expected = by_torch(x, w, sizes["s"])
    assert y.shape == PLAIN.outputs[0].shape(sizes)
    torch.testing.assert_close(y, expected)
    bias = torch.randn(sizes["k"]).double()
    torch.testing.assert_close(FUSED.reference(x, w, bias, s=sizes["s"])[0], (expected + bias).relu())


@pytest.mark.parametrize("side", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("stride", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 11])
def test_pixels_that_are_read_are_those_that_a_gradient_reaches(length: int, side: int, stride: int) -> None:
    x = torch.ones((1, 1, length, 1), dtype=torch.float64, requires_grad=True)
    padded = functional.pad(x, (0, 0, side // 2, side // 2))
    functional.conv2d(padded, torch.ones((1, 1, side, 1), dtype=torch.float64), stride=stride).sum().backward()
    assert x.grad is not None
    assert covered(length, side, stride) == int((x.grad != 0).sum())


def exact(x: Tensor, w: Tensor) -> Tensor:
    return convolved(x.double(), w.double(), SIZES["s"]).to(x.dtype)


def border_not_masked(x: Tensor, w: Tensor) -> Tensor:
    """The first column of the next row is read where the filter lies beyond the last column."""
    padded = functional.pad(x.double(), (0, 0, 1, 1, 1, 1))
    padded[:, 1:-2, -1] = x[:, 1:, 0].double()
    y = functional.conv2d(padded.permute(0, 3, 1, 2), w.double().permute(0, 3, 1, 2))
    return y.permute(0, 2, 3, 1).contiguous().to(x.dtype)


def last_column_masked(x: Tensor, w: Tensor) -> Tensor:
    """A mask wrong by one: the last column of an image is taken for padding."""
    less = x.clone()
    less[:, :, -1] = 0
    return exact(less, w)


def without_the_last_tap(x: Tensor, w: Tensor) -> Tensor:
    less = w.clone()
    less[:, -1, -1] = 0
    return exact(x, less)


def without_the_last_step_of_channels(x: Tensor, w: Tensor) -> Tensor:
    """As if 64 channels were all."""
    less = w.clone()
    less[..., 64:] = 0
    return exact(x, less)


def without_the_last_tile(x: Tensor, w: Tensor) -> Tensor:
    y = exact(x, w)
    y.view(-1, y.shape[-1])[-1] = 0
    return y


def flipped_filter(x: Tensor, w: Tensor) -> Tensor:
    """A convolution as mathematics defines it, where the filter is flipped."""
    return exact(x, w.flip(1, 2))


def added_up_in_its_own_format(x: Tensor, w: Tensor) -> Tensor:
    """Each product is added in 16 bits."""
    windows = functional.unfold(x.permute(0, 3, 1, 2).float(), 3, padding=1).to(x.dtype)  # (N, C R R, P Q)
    filters = w.permute(0, 3, 1, 2).reshape(w.shape[0], -1)
    y = torch.zeros((x.shape[0], w.shape[0], windows.shape[2]), dtype=x.dtype)
    for t in range(filters.shape[1]):
        y += filters[None, :, t, None] * windows[:, t, None]
    return y.view(x.shape[0], w.shape[0], x.shape[1], x.shape[2]).permute(0, 2, 3, 1).contiguous()


FAULTS = (
    border_not_masked,
    last_column_masked,
    without_the_last_tap,
    without_the_last_step_of_channels,
    without_the_last_tile,
    flipped_filter,
    added_up_in_its_own_format,
)


@pytest.mark.parametrize("wrong", FAULTS)
@pytest.mark.parametrize("dtype", PLAIN.dtypes)
def test_the_bound_refuses_faults(wrong: Callable[[Tensor, Tensor], Tensor], dtype: str) -> None:
    problem = PLAIN.problem(SIZES, dtype)
    x, w = inputs_of(PLAIN, problem)
    assert compare(PLAIN, problem, (x, w), exact(x, w)).passed
    assert not compare(PLAIN, problem, (x, w), wrong(x, w)).passed


@pytest.mark.parametrize("dtype", FUSED.dtypes)
def test_the_bound_of_bias_and_relu_refuses_faults(dtype: str) -> None:
    problem = FUSED.problem(SIZES, dtype)
    x, w, b = inputs_of(FUSED, problem)

    def passes(y: Tensor) -> bool:
        return compare(FUSED, problem, (x, w, b), y).passed

    wide = convolved(x.double(), w.double(), 1)
    assert passes((wide + b.double()).relu().to(x.dtype))
    assert passes((wide.to(x.dtype) + b).relu())  # the steps stored one after the other
    assert not passes((wide + b.double()).to(x.dtype))
    assert not passes(wide.relu().to(x.dtype))
    assert not passes((wide.relu() + b.double()).to(x.dtype))
    assert not passes((wide + b.double().roll(1)).relu().to(x.dtype))
    for wrong in FAULTS:
        assert not passes((wrong(x, w).double() + b.double()).relu().to(x.dtype)), wrong


def test_sums_in_fp32_are_within_the_bound() -> None:
    for sizes in odd_sizes(PLAIN):
        problem = PLAIN.problem(sizes, "bf16")
        x, w = inputs_of(PLAIN, problem)
        y = convolved(x.float(), w.float(), sizes["s"]).bfloat16()
        assert compare(PLAIN, problem, (x, w), y).passed


@pytest.mark.parametrize("op", [PLAIN, FUSED], ids=lambda op: op.name)
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(op: Op) -> None:
    problem = op.problem({**SIZES, "n": 5, "s": 2}, "bf16")
    x, *others = (t.double() for t in inputs_of(op, problem))
    (whole,) = op.expected(problem, (x, *others))
    (allowed,) = op.bound(problem, (x, *others), (whole,))
    for first, last in ((0, 2), (2, 5)):
        cut = (x[first:last], *others)
        (piece,) = op.expected(problem, cut)
        torch.testing.assert_close(piece, whole[first:last])
        torch.testing.assert_close(op.bound(problem, cut, (piece,))[0], allowed[first:last])


def test_nan_stays_nan() -> None:
    problem = FUSED.problem(SIZES, "bf16")
    x, w, b = inputs_of(FUSED, problem)
    x[0, 4, 4] = float("nan")
    y = bind(FUSED.variant_named("torch_eager"), problem, (x, w, b))()
    assert isinstance(y, Tensor)
    assert y[0, 3:6, 3:6].isnan().all()
    assert not y[1].isnan().any()


def test_more_pixels_than_32_bits_number_are_refused() -> None:
    whole = Geometry(n=MOST_PIXELS // 64, h=8, w=8, c=1, k=1, r=1, s=1)
    require_pixels(whole)
    with pytest.raises(BadField, match=r"size n: .*pixels"):
        require_pixels(Geometry(n=whole.n + 2048, h=8, w=8, c=1, k=1, r=1, s=1))


def test_the_choice_fits_small_gpus_and_steps_are_no_wider_than_needed() -> None:
    assert {choose(10**6, k, 64, 576, 128, 101_376).shared_bytes <= 101_376 for k in (8, 64, 512)} == {True}
    assert [choose(10**6, 128, c, 9 * c, 132, 232_448).bk for c in (3, 24, 33, 512)] == [16, 32, 64, 64]
    assert {t.accumulators <= 128 for t in TILES} == {True}


@needs_compiler
@pytest.mark.parametrize("sizes", odd_sizes(PLAIN), ids=lambda s: "-".join(map(str, s.values())))
def test_the_plain_kernels_are_exact_on_the_processor(sizes: dict[str, int], emulator: Emulator) -> None:
    """Sums of small integers are exact in every order."""
    g = Geometry(**sizes)
    x = torch.randint(-3, 4, (g.n, g.h, g.w, g.c)).bfloat16()
    w = torch.randint(-3, 4, (g.k, g.r, g.r, g.c)).bfloat16()
    bias = torch.randint(-9, 10, (g.k,)).bfloat16()
    exact_NPQK = convolved(x.double(), w.double(), g.s)
    numbers = [size.value for size in cuda.sizes_of(g)]
    for relu in (0, 1):
        program = emulator.program(
            cuda.SOURCE, "conv_direct", {"ELEMENT": "__nv_bfloat16", "RELU": str(relu), "WIDTH": "1"}
        )
        y = Output(g.pixels, g.k, torch.bfloat16)
        grid = Grid(blocks=-(-g.pixels * g.k // cuda.THREADS), threads=cuda.THREADS)
        assert program.run([x, w, bias, y.matrix, *numbers], grid) == ""
        expected = (exact_NPQK + bias.double()).relu() if relu else exact_NPQK
        assert torch.equal(y.matrix.double(), expected.bfloat16().double().view(g.pixels, g.k))
        assert y.guard_is_unchanged()
    for width in (1, 8) if g.c % 8 == 0 else (1,):
        program = emulator.program(
            cuda.SOURCE, "conv_windows", {"ELEMENT": "__nv_bfloat16", "RELU": "0", "WIDTH": str(width)}
        )
        windows = Output(g.pixels, g.terms, torch.bfloat16)
        grid = Grid(blocks=-(-g.pixels * g.terms // width // cuda.THREADS), threads=cuda.THREADS)
        assert program.run([x, windows.matrix, *numbers], grid) == ""
        assert torch.equal(windows.matrix.double() @ w.double().view(g.k, g.terms).T, exact_NPQK.view(g.pixels, g.k))
        assert windows.guard_is_unchanged()


def main() -> None:
    for op in (PLAIN, FUSED):
        for sizes in odd_sizes(op):
            accuracy = checked(op, op.variant_named("triton_implicit"), op.problem(sizes, "fp16"))
            write_case(f"{op.name} {sizes}", reasons_of(accuracy))


@pytest.mark.xdist_group("interpreter")
def test_the_triton_kernel_is_right_at_all_odd_sizes_in_the_interpreter() -> None:
    """In fp16, which test_interpreter.py tries at two sizes only."""
    pytest.importorskip("triton")
    lines = interpreted_lines(Path(__file__))
    assert len(lines) == 2 * len(odd_sizes(PLAIN))
    assert [line for line in lines if line["wrong"]] == []


@pytest.mark.parametrize("op", [PLAIN, FUSED], ids=lambda op: op.name)
@pytest.mark.parametrize(("c", "k", "message"), [(24, 64, "size c: .*multiple of 16"), (64, 60, "size k: .*16 bytes")])
def test_what_boxes_cannot_address_is_refused_by_name(op: Op, c: int, k: int, message: str) -> None:
    pytest.importorskip("triton.experimental.gluon")
    problem = op.problem({**SIZES, "c": c, "k": k}, "bf16")
    with pytest.raises(BadField, match=message):
        bind(op.variant_named("gluon_boxes"), problem, inputs_of(op, problem))


@pytest.mark.parametrize("sizes", odd_sizes(PLAIN), ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize(("filters", "pixels"), [(256, 128), (64, 256)])
def test_boxes_and_their_halves_cover_each_pixel_once(sizes: dict[str, int], filters: int, pixels: int) -> None:
    """In the order in which the kernel numbers the pixels of a box: the second half follows the first."""
    g = Geometry(**sizes)
    box = box_of(g, filters, pixels)
    assert box.pixels == pixels
    whole = torch.arange(pixels).view(box.images, box.rows, box.columns)
    images, rows, columns = box.half
    first = whole[:images, :rows, :columns]
    second = whole[box.images - images :, box.rows - rows :, box.columns - columns :]
    assert first.flatten().tolist() == list(range(pixels // 2))
    assert second.flatten().tolist() == list(range(pixels // 2, pixels))
    assert box.count(g) * box.pixels >= g.pixels


if __name__ == "__main__":
    main()
