"""`scaled_matmul` and `block_scaled_matmul`: what their bounds accept and reject, and the kernel for Hopper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, needs_compiler, tensor_maps, unwritten
from torch import Tensor

from kernelviz.core.problem import Problem
from kernelviz.core.reasons import LowerPrecision
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.measure.gate.diagnosis import diagnosis
from kernelviz.measure.session.inputs import unchanged
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul.reference_fp8 import BLOCK, FAST, PRECISE, block_reference, reference
from kernelviz.ops.matmul.variants_fp8 import NARROW, admits_triton
from kernelviz.ops.matmul.wgmma import hilbert_order
from kernelviz.ops.matmul.wgmma_fp8 import ROWS, SOURCE, Fp8Options, admits

pytestmark = pytest.mark.xdist_group("compile-1")

SCALED, BLOCK_SCALED = "scaled_matmul", "block_scaled_matmul"
FP8 = torch.float8_e4m3fn


def problem(
    name: str, k: int, compute: str | None = None, *, m: int = 48, n: int = 160, data: str = "normal"
) -> Problem:
    return op_named(name).problem({"m": m, "n": n, "k": k}, "fp8", compute=compute, data=data)


def cut(x: Tensor, largest: Tensor) -> Tensor:
    """Towards zero, to 13 fraction bits of the largest number."""
    step = 2.0 ** torch.floor(torch.log2(largest.clamp_min(1e-30))) * 2.0**-13
    return torch.trunc(x / step) * step


def as_on_hopper(a_MK: Tensor, b_NK: Tensor, fast: bool) -> Tensor:
    """A · Bᵀ with the arithmetic that reference_fp8 describes, in float64."""
    k = a_MK.shape[1]
    sums, total = (torch.zeros(a_MK.shape[0], b_NK.shape[0], dtype=torch.float64) for _ in range(2))
    for first in range(0, k, 32):
        part = slice(first, first + 32)
        products = torch.cat([a_MK[:, None, part] * b_NK[None, :, part], sums[..., None]], -1)
        sums = cut(products, products.abs().amax(-1, keepdim=True)).sum(-1)
        sums = cut(sums, sums.abs())
        if not fast and (first + 32) % BLOCK == 0:
            total, sums = total + sums, torch.zeros_like(sums)
    return total + sums


def scaled(inputs: tuple[Tensor, ...], fast: bool) -> Tensor:
    a, b, a_scale, b_scale = (t.double() for t in inputs)
    return (as_on_hopper(a, b, fast).float() * (a_scale * b_scale).float()).bfloat16()


def block_scaled(inputs: tuple[Tensor, ...]) -> Tensor:
    a, b, a_scale, b_scale = (t.double() for t in inputs)
    total = torch.zeros(a.shape[0], b.shape[0])
    for i in range(a_scale.shape[0]):
        part = slice(BLOCK * i, BLOCK * (i + 1))
        scale = a_scale[i][:, None] * b_scale[:, i].repeat_interleave(BLOCK)[: b.shape[0]]
        total += (as_on_hopper(a[:, part], b[:, part], fast=True) * scale).float()
    return total.bfloat16()


@pytest.mark.parametrize("data", ["normal", "outliers", "uniform", "small_integers", "one_value"])
@pytest.mark.parametrize("k", [32, 130, 1024, 4096])
def test_sums_of_a_tensor_core_are_within_the_bound_of_their_accumulation(k: int, data: str) -> None:
    for fast in (True, False):
        asked = problem(SCALED, k, FAST if fast else PRECISE, data=data)
        inputs = inputs_of(op_named(SCALED), asked)
        accuracy = compare(op_named(SCALED), asked, inputs, scaled(inputs, fast))
        assert accuracy.passed, (fast, accuracy.worst_of_bound)
    asked = problem(BLOCK_SCALED, k, data=data)
    inputs = inputs_of(op_named(BLOCK_SCALED), asked)
    accuracy = compare(op_named(BLOCK_SCALED), asked, inputs, block_scaled(inputs))
    assert accuracy.passed, accuracy.worst_of_bound


def test_products_of_one_sign_are_within_the_bound_of_their_accumulation() -> None:
    op = op_named(SCALED)
    for fast in (True, False):
        asked = problem(SCALED, 4096, FAST if fast else PRECISE)
        inputs = tuple(t.float().abs().to(t.dtype) for t in inputs_of(op, asked))
        accuracy = compare(op, asked, inputs, scaled(inputs, fast))
        assert accuracy.passed, accuracy.worst_of_bound


def test_fast_accumulation_is_no_accumulation_in_fp32() -> None:
    asked = problem(SCALED, 4096, PRECISE)
    inputs = inputs_of(op_named(SCALED), asked)
    assert not compare(op_named(SCALED), asked, inputs, scaled(inputs, fast=True)).passed
    asked = problem(BLOCK_SCALED, 4096)
    inputs = inputs_of(op_named(BLOCK_SCALED), asked)
    ones = (*inputs[:2], torch.ones_like(inputs[2]), torch.ones_like(inputs[3]))
    result = as_on_hopper(ones[0].double(), ones[1].double(), fast=True).bfloat16()
    assert not compare(op_named(BLOCK_SCALED), asked, ones, result).passed


def without_a_scale(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    return a, b, a_scale, torch.ones_like(b_scale)


def without_the_last_tile_of_k(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    shorter = a.clone()
    shorter.view(torch.uint8)[:, -BLOCK:] = 0
    return shorter, b, a_scale, b_scale


def without_32_of_k(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    shorter = a.clone()
    shorter.view(torch.uint8)[:, :32] = 0
    return shorter, b, a_scale, b_scale


def with_the_scales_of_the_next_block(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    return a, b, a_scale.roll(1, 0), b_scale


def with_the_scales_of_the_next_row(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    return a, b, a_scale.roll(1, 1), b_scale


def with_the_scales_of_the_next_columns(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, ...]:
    return a, b, a_scale, b_scale.roll(1, 0)


@pytest.mark.parametrize("k", [1024, 8192])
@pytest.mark.parametrize("wrong", [without_a_scale, without_the_last_tile_of_k, without_32_of_k])
@pytest.mark.parametrize("compute", [FAST, PRECISE])
def test_a_fault_is_rejected(compute: str, wrong: object, k: int) -> None:
    assert callable(wrong)
    asked = problem(SCALED, k, compute, m=256, n=256)
    inputs = inputs_of(op_named(SCALED), asked)
    (result,) = reference(*(t.double() for t in wrong(*inputs)))
    assert not compare(op_named(SCALED), asked, inputs, result.bfloat16()).passed


@pytest.mark.parametrize(
    "wrong",
    [
        without_a_scale,
        without_the_last_tile_of_k,
        without_32_of_k,
        with_the_scales_of_the_next_block,
        with_the_scales_of_the_next_row,
        with_the_scales_of_the_next_columns,
    ],
)
def test_a_fault_with_blocks_of_scales_is_rejected(wrong: object) -> None:
    assert callable(wrong)
    asked = problem(BLOCK_SCALED, 8192, m=256, n=256)
    inputs = inputs_of(op_named(BLOCK_SCALED), asked)
    (result,) = block_reference(*(t.double() for t in wrong(*inputs)))
    assert not compare(op_named(BLOCK_SCALED), asked, inputs, result.bfloat16()).passed


# --- the kernel for Hopper, on the processor and in machine code ----------------------------------------------------------------
FAST_OPTIONS = Fp8Options()
BLOCKS = Fp8Options(two_level=True, blocks=True)
NARROW_OPTIONS: dict[str, Any] = {"columns": 128, "stages": 3, "cluster": 1, "c_boxes": 1, "group": 4}
WHOLE_TILE: dict[str, Any] = {"columns": 192, "c_boxes": 3}
OPTIONS = {
    "fast": FAST_OPTIONS,
    "fast-narrow": replace(FAST_OPTIONS, **NARROW_OPTIONS),
    "fast-cluster-of-4": replace(FAST_OPTIONS, cluster=4, c_boxes=4, stages=3, group=0),
    "two-level": Fp8Options(two_level=True, **WHOLE_TILE),
    "blocks": BLOCKS,
    "blocks-192": replace(BLOCKS, **WHOLE_TILE),
    "blocks-narrow": replace(BLOCKS, **NARROW_OPTIONS),
}
SIZES_WITH_MISTAKES = 2 * ROWS, 512, 1200


def check(emulator: Emulator, options: Fp8Options, sizes: tuple[int, int, int], text: str | None = None) -> list[str]:
    """What is wrong with a product on the processor, in both modes. Products of small integers and powers of two are exact."""
    m, n, k = sizes
    program = emulator.program(SOURCE, "matmul_fp8", options.defines(), text=text)
    a, b = (torch.randint(-3, 4, shape).float().to(FP8) for shape in ((m, k), (n, k)))
    blocks_of_k = -(-k // BLOCK) if options.blocks else 1
    shapes = ((blocks_of_k, m), (-(-n // BLOCK), blocks_of_k)) if options.blocks else ((1,), (1,))
    scales = [2.0 ** torch.randint(-2, 3, shape) for shape in shapes]
    function = block_reference if options.blocks else reference
    (expected,) = function(*(t.double() for t in (a, b, *scales)))
    tiles = -(-m // (ROWS * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.group == 0 else [0], dtype=torch.uint32)
    grid = Grid(
        blocks=2 * options.cluster,
        threads=options.threads,
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
    )
    faults = []
    for mode in MODES:
        c = unwritten((m, n), torch.bfloat16)
        maps = tensor_maps([(a, ROWS), (b, options.columns // options.cluster), (c, 64)])
        error = program.run([maps, order, *scales, *sizes], grid, mode)
        faults.append(error or ("" if torch.equal(c, expected.bfloat16()) else "wrong"))
    return faults


@needs_compiler
@pytest.mark.parametrize("name", OPTIONS)
def test_the_product_is_right(name: str, emulator: Emulator) -> None:
    options = OPTIONS[name]
    for k in (400, 528):  # an even and an odd number of blocks of K
        many_tiles = (ROWS * options.cluster + 70, 2 * options.columns + 72, k)
        assert check(emulator, options, many_tiles) == ["", ""], k
    assert check(emulator, options, (8, 8, 16)) == ["", ""]


MISTAKES = {
    "a stage is released while it is multiplied": ("wgmma_wait<1>();", "wgmma_wait<7>();"),
    "C is overwritten while it is stored": ("store_wait_read<C_BOXES - 1>()", "store_wait_read<C_BOXES>()"),
    "a stage is multiplied before it is there": ("barrier_wait(shared.full + 8 * stage.number, stage.parity);", ""),
    "a stage is filled before it was multiplied": (
        "barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);",
        "",
    ),
    "a block of the cluster is not told": ("% WARPGROUP < CLUSTER)", "% WARPGROUP < 1)"),
    "banks": ("(eight + next_eight ^ lane % 8)", "(eight + next_eight)"),
}
MISTAKES_OF_BLOCKS = {
    "scales of another block of K": ("pointers.at(min(i + 2, depths - 1))", "pointers.at(min(i + 1, depths - 1))"),
    "scales of another block of columns": ("columns == 1 && begins_within", "columns == 1"),
    "sums are added before they are there": ("wgmma_wait<0>();", "wgmma_wait<1>();"),
}


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    for options in (FAST_OPTIONS, OPTIONS["blocks-192"]):
        assert check(emulator, options, SIZES_WITH_MISTAKES) == ["", ""]


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES | MISTAKES_OF_BLOCKS)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    right, wrong = (MISTAKES | MISTAKES_OF_BLOCKS)[mistake]
    options = OPTIONS["blocks-192"] if mistake in MISTAKES_OF_BLOCKS else FAST_OPTIONS
    text = SOURCE.read_text()
    assert right in text
    assert any(check(emulator, options, SIZES_WITH_MISTAKES, text.replace(right, wrong)))


@pytest.mark.parametrize("name", OPTIONS)
def test_the_kernel_multiplies_on_tensor_cores_without_spills(name: str) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    options = OPTIONS[name]
    arch = nvrtc.architecture("sm_90", specific=True)
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, options.defines(), "matmul_fp8"))
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    columns = 128 if options.two_level and options.columns != 192 else options.columns  # of an instruction
    assert {"wgmma", "tma", "warp_specialised"} <= techniques_of(kernel)
    assert ("multicast" in techniques_of(kernel)) == (options.cluster > 1)
    assert {t.shape for t in kernel.whole.tensor} == {(64, columns, 32)}
    assert {role.registers for role in kernel.roles} == {24, 240}
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block
    loop = kernel.roles[0].main_loop
    assert loop is not None
    classes = loop.iteration.classes
    assert classes["tensor"] % 4 == 0
    if options.two_level:
        # Two blocks of K: an addition in fp32 for each sum of a block, and products of scales, which are loaded in the loop.
        assert classes["tensor"] == 2 * 4 * (options.columns // columns)
        assert options.columns <= classes["fp32"] <= options.columns + 16
        of_b = -(-options.columns // 128)
        assert classes.get("global_memory", 0) == 2 * (2 + of_b) * options.blocks


def test_what_does_not_fit_is_refused_by_name() -> None:
    asked = problem(SCALED, 4096, FAST)
    default = {"columns": 256, "stages": 4, "cluster": 2, "c_boxes": 2, "group": 0}
    assert admits(default, asked) is None
    assert "shared memory" in (admits(default | {"stages": 5}, asked) or "")
    assert "boxes of C" in (admits(default | {"columns": 128, "c_boxes": 4}, asked) or "")
    tile = {key: values[0] for key, values in NARROW.items()}
    assert admits_triton(tile, problem(SCALED, 4096, PRECISE)) is None
    assert "at most 128 fit" in (admits_triton(tile | {"tile_n": 256}, problem(SCALED, 4096, PRECISE)) or "")
    assert admits_triton(tile | {"tile_n": 256, "stages": 3}, asked) is None


def test_too_few_bits_are_named() -> None:
    op, asked = op_named(SCALED), problem(SCALED, 4096, PRECISE)
    inputs = inputs_of(op, asked)
    found = diagnosis(op, asked, inputs, (scaled(inputs, fast=True),), {})
    assert found == LowerPrecision(precision=FAST)


@pytest.mark.parametrize("data", ["normal", "outliers", "uniform", "zeros", "small_integers", "one_value"])
def test_inputs_are_held_by_8_bit_floats_and_scales_are_positive(data: str) -> None:
    op, asked = op_named(BLOCK_SCALED), problem(BLOCK_SCALED, 272, data=data)
    inputs = inputs_of(op, asked)
    again, other = inputs_of(op, asked), inputs_of(op, asked, seed=1)
    for tensor, same in zip(inputs, again, strict=True):
        assert torch.equal(tensor.float(), same.float())
        assert bool(tensor.float().isfinite().all())
    assert unchanged(op, inputs, asked, seed=0) == []
    for scales, different in zip(inputs[2:], other[2:], strict=True):
        assert bool(((scales >= 1 / 256) & (scales <= 3 / 256)).all())
        assert not torch.equal(scales, different)
    if data == "normal":
        assert 0.95 < float(inputs[0].float().std()) < 1.05
        assert not torch.equal(inputs[0].float(), other[0].float())
        inputs[1].view(torch.uint8)[3, 5] ^= 1
        assert unchanged(op, inputs, asked, seed=0) == [1]
