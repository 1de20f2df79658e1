"""The kernels of `attention_decode`: results by fibers of the processor, machine code, choices by size."""

from __future__ import annotations

import math

import pytest
import torch
from emulator import MODES, Emulator, Grid, Output, needs_compiler

from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops.attention_decode import mma
from kernelviz.ops.attention_decode.reference import paged_reference, reference
from kernelviz.ops.attention_decode.sizes import PAGE, pages
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
MULTIPROCESSORS = 6
Sizes = tuple[int, int, int, int, int]
"""Sequences, tokens, query heads, key/value heads, numbers of a head."""


def tile(*, heads: int = 1, warps: int = 2, stages: int = 2) -> mma.Tile:
    return mma.Tile(heads=heads, warps=warps, stages=stages, blocks=1)


def inputs_of(sizes: Sizes, dtype: str, *, paged: bool) -> tuple[torch.Tensor, ...]:
    b, length, hq, hk, d = sizes
    generator = torch.Generator().manual_seed(sum(sizes))
    shape = (b * pages(length), PAGE, hk, d) if paged else (b, length, hk, d)
    q, k, v = (torch.randn(s, generator=generator).to(TORCH[dtype]) for s in ((b, hq, d), shape, shape))
    if not paged:
        return q, k, v
    table = torch.randperm(b * pages(length), generator=generator).to(torch.int32).view(b, -1)
    if length % PAGE:  # what no token is in must not be read
        for cache in (k, v):
            cache[table[:, -1].long(), length % PAGE :] = float("nan")
    return q, k, v, table


def check(
    emulator: Emulator,
    chosen: mma.Tile,
    sizes: Sizes,
    *,
    dtype: str = "bf16",
    paged: bool = False,
    text: str | None = None,
) -> None:
    b, length, hq, hk, d = sizes
    defines = chosen.defines(nvrtc.element_type(TORCH[dtype]), hq // hk, d, paged=paged)
    source = mma.SOURCE.read_text() if text is None else text
    whole_scale = " float scale) {\n"  # the emulator passes whole numbers
    if whole_scale not in source:
        raise ValueError(whole_scale)
    scale = mma.LOG2_E / math.sqrt(d)
    source = source.replace(whole_scale, f" int unused) {{\n    const float scale = {scale!r}f;\n")
    program = emulator.program(mma.SOURCE, mma.KERNEL, defines, text=source)
    q, k, v, *table = inputs_of(sizes, dtype, paged=paged)
    wide = (q.double(), k.double(), v.double())
    (expected,) = paged_reference(*wide, *table, length) if paged else reference(*wide)
    shares = chosen.shares(b, length, hk, d, MULTIPROCESSORS)
    blocks = shares * hk // chosen.heads
    sums, tops, totals, arrived = mma.memory_of_parts(q, chosen, blocks, hk, hq // hk)
    shared_bytes = chosen.shared_bytes(d, hq // hk)
    grid = Grid(blocks=blocks, threads=32 * chosen.warps, shared_bytes=shared_bytes)
    for mode in MODES:
        for memory in (sums, tops, totals):
            memory.fill_(float("nan"))
        out = Output(b * hq, d, TORCH[dtype])
        arguments = [q, k, v, *(table or [q]), out.matrix, sums, tops, totals, arrived, b, length, hk, shares, 0]
        error = program.run(arguments, grid, mode, readable=(k, v))
        assert error == "", (sizes, mode, error)
        difference = (out.matrix.double() - expected.view(b * hq, d)).abs().max()
        assert difference <= (0.02 if dtype == "bf16" else 0.003), (sizes, mode, float(difference))
        assert out.guard_is_unchanged()
        assert not arrived.any(), "the counters are not zero for the next launch"


CASES: dict[str, tuple[mma.Tile, Sizes]] = {
    "one token": (tile(), (1, 1, 1, 1, 64)),
    "few tokens": (tile(), (2, 5, 8, 2, 64)),
    "a sequence in parts": (tile(warps=4, stages=3), (1, 1031, 8, 1, 64)),
    "more rows than blocks": (tile(stages=3), (3, 100, 14, 2, 128)),
    "two heads of a block": (tile(heads=2, warps=4), (2, 257, 16, 2, 128)),
    "as many heads as warps": (tile(heads=4, warps=4, stages=3), (2, 83, 4, 4, 128)),
    "16 query heads": (tile(), (2, 75, 16, 1, 128)),
    "heads of 256": (tile(stages=3), (1, 90, 12, 1, 256)),
    "blocks with several rows": (tile(heads=2), (7, 47, 16, 2, 64)),
}


@needs_compiler
@pytest.mark.parametrize("paged", [False, True], ids=["contiguous", "paged"])
@pytest.mark.parametrize("case", [*CASES])
def test_the_result_is_right(case: str, paged: bool, emulator: Emulator) -> None:
    check(emulator, *CASES[case], dtype="bf16" if len(case) % 2 else "fp16", paged=paged)


MISTAKES = {
    "one token too many": ("+ j / 2 * 8 >= inside", "+ j / 2 * 8 > inside", "few tokens", False),
    "a token too few": ("+ j / 2 * 8 >= inside", "+ j / 2 * 8 >= inside - 1", "few tokens", False),
    "a step is read before it arrived": ("<STAGES - 2>", "<STAGES - 1>", "a sequence in parts", False),
    "a step is overwritten before it is used": ("slot == 0 ? STAGES - 1 : slot - 1", "slot", "more rows than blocks", False),
    "sums are not rescaled": ("o[i][step][j] *= rescale[j % 2];", "", "more rows than blocks", False),
    "parts are not rescaled": ("two(other_top -", "two(0.0f * other_top - 0.0f *", "a sequence in parts", False),
    "a part is left out": ("other + j <= to ?", "other + j < to ?", "a sequence in parts", False),
    "a part is another one": ("share == from && late", "late", "blocks with several rows", False),
    "the page of another sequence": ("(long long)of_row * count + page)", "0 + page)", "more rows than blocks", True),
    "equal columns of rows in one bank": ("(chunk ^ (row & 7))", "chunk", "one token", False),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("mistake", [*MISTAKES])
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    correct, wrong, case, paged = MISTAKES[mistake]
    text = mma.SOURCE.read_text()
    if correct not in text:
        raise ValueError(correct)
    with pytest.raises(AssertionError):
        check(emulator, *CASES[case], dtype="fp16", paged=paged, text=text.replace(correct, wrong))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("paged", [False, True], ids=["contiguous", "paged"])
@pytest.mark.parametrize(("group", "d"), [(8, 128), (4, 128), (16, 128), (8, 64), (8, 256), (16, 256)])
def test_the_kernel_spills_nothing_and_wastes_no_products(arch: str, paged: bool, group: int, d: int) -> None:
    pytest.importorskip("triton")
    shared = {"sm_80": 163 * 1024, "sm_120": 99 * 1024}.get(arch, MOST_SHARED_BYTES)
    chosen = mma.choose(8, d, 132, shared)
    defines = chosen.defines("__nv_bfloat16", group, d, paged=paged)
    (kernel,) = facts_of(nvrtc.compile_cubin(mma.SOURCE, arch, defines, mma.KERNEL))
    spills = sum(access.count for access in kernel.whole.accesses if access.space == "local")
    assert spills <= (2 if (arch, d) == ("sm_80", 64) else 0), "more than one register, once"
    parts, queries = (2 if d == 64 else 1), -(-group // 8)
    assert sum(one.count for one in kernel.whole.tensor) == 2 * parts * queries * d // 16
    assert techniques_of(kernel) >= {"cp_async", "mma_sync"}
