"""The wgmma kernel of `grouped_matmul`: its results by fibers of the processor, its machine code, and what is refused."""

from __future__ import annotations

import functools
from dataclasses import fields, replace
from itertools import pairwise

import pytest
import torch
from emulator import AT_ONCE, LATE, Emulator, Grid, Output, Program, needs_compiler, tensor_maps

from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.groups import group_ends
from kernelviz.ops.matmul import variants_groups_wgmma as ladder
from kernelviz.ops.matmul.groups_reference import reference
from kernelviz.ops.matmul.groups_wgmma import ROWS, SOURCE, THREADS, W_BOX, Options

OP = op_named("grouped_matmul")
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
LADDER = {name: getattr(ladder, name) for name in ("FIRST", "TMA_STORE", "HALVES", "CLUSTER")}


def program(emulator: Emulator, options: Options, dtype: str, text: str | None = None) -> Program:
    macros = options.defines(nvrtc.element_type(TORCH[dtype]))
    macros = {name: value for name, value in macros.items() if name != "ELEMENT_PTX"}
    return emulator.program(SOURCE, "grouped_wgmma", macros, text=text)


def check(
    compiled: Program,
    options: Options,
    dtype: str,
    ends: tuple[int, ...],
    sizes: tuple[int, int],
    unassigned: int = 5,
) -> None:
    """Products of small integers are exact in every order of additions. The rows after the last group must stay as they are.

    One cluster computes all tiles, a few do, or each tile (or half of one) has its own: in reverse order, tiles that reach into
    the next group come last.
    """
    n, k = sizes
    rows = ends[-1] + unassigned
    x = torch.randint(-3, 4, (rows, k)).to(TORCH[dtype])
    w = torch.randint(-3, 4, (len(ends), n, k)).to(TORCH[dtype])
    offsets = torch.tensor(ends, dtype=torch.int32)
    (exact,) = reference(x.double(), w.double(), offsets)
    expected = exact[: ends[-1]].to(TORCH[dtype])
    most = (rows // ROWS + len(ends)) * -(-n // (options.columns * options.cluster))
    for count, mode in ((1, LATE), (5, AT_ONCE), (most * (1 + options.halves), AT_ONCE)):
        y = Output(rows, n, TORCH[dtype])
        box_rows = ROWS // options.cluster, W_BOX, 64
        maps = tensor_maps(list(zip((x, w, y.matrix), box_rows, strict=True)))
        grid = Grid(
            blocks=count * options.cluster, threads=THREADS, shared_bytes=options.shared_bytes, cluster=options.cluster
        )
        error = compiled.run([maps, offsets, y.matrix, len(ends), rows, n, k], grid, mode)
        assert error == "", (ends, sizes, count, mode, error)
        assert torch.equal(y.matrix[: ends[-1]], expected), (ends, sizes, count, mode)
        assert (y.matrix[ends[-1] :].view(torch.int16) == -1).all()
        assert y.guard_is_unchanged()


EMULATED = {
    "registers": (LADDER["FIRST"], "bf16"),
    "tma-store": (LADDER["TMA_STORE"], "bf16"),
    "halves": (LADDER["HALVES"], "bf16"),
    "cluster": (LADDER["CLUSTER"], "fp16"),
    "narrow": (replace(LADDER["CLUSTER"], halves=0, columns=128, stages=3, c_boxes=1, band=1), "bf16"),
    "one-box": (replace(LADDER["TMA_STORE"], columns=128, stages=6, c_boxes=1, band=2), "fp16"),
}
PROBLEMS = (
    ((200, 200, 330, 400), (264, 136)),  # an empty group; tiles whose second half is empty, full, or neither
    (group_ends(5, 70, 3), (272, 72)),
    ((0, 128, 384, 384), (256, 64)),  # empty first and last groups, whole tiles
    ((1,), (8, 8)),
)


@needs_compiler
@pytest.mark.parametrize("name", EMULATED)
def test_results_are_exact_on_the_processor(name: str, emulator: Emulator) -> None:
    options, dtype = EMULATED[name]
    compiled = program(emulator, options, dtype)
    for ends, sizes in PROBLEMS:
        check(compiled, options, dtype, ends, sizes)


WITH_MISTAKES = replace(LADDER["HALVES"], stages=3, c_boxes=1)
PROBLEM_WITH_MISTAKES = ((200, 200, 330, 400), (264, 328))
RELEASE = "if (before >= 0) {\n            release(shared, before);"
DRAINED = "release(shared, stage.number);\n                }\n                continue;"
MISTAKES = {
    "rows of the next group are written": ("const bool full = row0 + 64 <= end;", "const bool full = true;"),
    "the last row of a group is not written": ("(row0 + of_box < end && column", "(row0 + of_box + 1 < end && column"),
    "both halves have the same columns": ("(number - whole) % 2 * W_BOX", "0"),
    "half a tile waits for a whole weight": ("(half ? W_BOX_BYTES : W_BYTES)", "W_BYTES"),
    "the weight of the next group": ("walk.group * n + walk.column", "(walk.group + 1) * n + walk.column"),
    "a stage is released before it was read": ("wgmma_wait<1>();\n        " + RELEASE, RELEASE),
    "a warpgroup without rows does not arrive": (DRAINED, "}\n                continue;"),
    "a box is overwritten while TMA reads it": ("store_wait_read<C_BOXES - 1>();", "store_wait_read<C_BOXES>();"),
    "TMA does not see what was written": ("fence_for_tma();", ""),
    "the last stores are not waited for": ("store_wait();\n        }\n    }", "}\n    }"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_processor_notices_mistakes_of_the_kernel(mistake: str, emulator: Emulator) -> None:
    correct, wrong = MISTAKES[mistake]
    text = SOURCE.read_text()
    assert text.count(correct) == 1
    compiled = program(emulator, WITH_MISTAKES, "bf16", text.replace(correct, wrong))
    with pytest.raises(AssertionError):
        check(compiled, WITH_MISTAKES, "bf16", *PROBLEM_WITH_MISTAKES)


@needs_compiler
def test_without_a_mistake_the_processor_notices_nothing(emulator: Emulator) -> None:
    check(program(emulator, WITH_MISTAKES, "bf16"), WITH_MISTAKES, "bf16", *PROBLEM_WITH_MISTAKES)


@functools.cache
def facts(name: str, element: str = "__nv_bfloat16") -> KernelFacts:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    arch = nvrtc.architecture("sm_90", specific=True)
    cubin = nvrtc.compile_cubin(SOURCE, arch, LADDER[name].defines(element), "grouped_wgmma")
    (kernel,) = facts_of(cubin)
    return kernel


def test_each_variant_adds_one_idea() -> None:
    changed = [
        [f.name for f in fields(Options) if getattr(before, f.name) != getattr(after, f.name)]
        for before, after in pairwise(LADDER.values())
    ]
    assert changed == [["c_boxes"], ["halves"], ["cluster"]]
    assert len(ladder.GROUP_WGMMA_VARIANTS) == len(LADDER)


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("name", LADDER)
def test_the_ideas_show_in_the_machine_code_without_spills(name: str) -> None:
    kernel, options = facts(name), LADDER[name]
    assert {"wgmma", "tma", "warp_specialised"} <= techniques_of(kernel)
    assert ("multicast" in techniques_of(kernel)) == (options.cluster > 1)
    assert any(c.kind == "tma_store" for c in kernel.whole.copies) == (options.c_boxes > 0)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {t.shape for t in kernel.whole.tensor} == {(64, options.columns, 16)} | (
        {(64, 128, 16)} if options.halves else set()
    )
    roles = {role.registers: role for role in kernel.roles if role.registers is not None}
    assert set(roles) == {40, 232}
    assert kernel.required_threads is None or kernel.required_threads[0] == THREADS
    assert options.shared_bytes <= LIMITS[90].shared_bytes_per_block
    loop = roles[232].main_loop
    assert loop is not None
    assert loop.iteration.classes["tensor"] % 4 == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuda_wgmma_tma_store[stages=5]", "bytes of shared memory"),
        ("cuda_wgmma_cluster[c_boxes=4]", "bytes of shared memory"),
        ("cuda_wgmma_tma_store[columns=128,c_boxes=4,stages=3]", "2 boxes of y"),
        ("cuda_wgmma_tma_store[band=4]", "a band of 8 is the same"),
        ("cuda_wgmma_tma_store[band=16]", "a band of 8 is the same"),
    ],
)
def test_what_cannot_run_is_refused_before_it_is_compiled(name: str, message: str) -> None:
    refusal = OP.variant_named(name).refuses(OP.problem({"g": 8, "m": 256, "n": 4096, "k": 4096, "s": 2}, "bf16"))
    assert refusal is not None
    assert message in refusal.text  # type: ignore[union-attr]
