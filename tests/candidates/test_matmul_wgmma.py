"""The bf16 ladder of `matmul` before it has run on a GPU: each rung compiles for sm_90a and its machine code shows its idea."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from candidates.matmul_wgmma import RUNGS, SOURCE, cubin, shared_bytes
from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import LIMITS
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import with_plugins

pytestmark = pytest.mark.xdist_group("compile-1")


@functools.cache
def facts(name: str, element: str = "bf16") -> KernelFacts:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    (kernel,) = facts_of(cubin(RUNGS[name], element))
    return kernel


@pytest.mark.parametrize("name", RUNGS)
def test_each_rung_multiplies_on_tensor_cores_without_spills(name: str) -> None:
    kernel, rung = facts(name), RUNGS[name]
    assert {"wgmma", "tma"} <= techniques_of(kernel)
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {t.shape for t in kernel.whole.tensor} == {(64, rung["COLUMNS"], 16)}
    assert shared_bytes(rung) <= LIMITS[90].shared_bytes_per_block
    loop = kernel.roles[0].main_loop
    assert loop is not None
    assert loop.iteration.classes["tensor"] % 4 == 0


def test_the_ideas_show_in_the_machine_code() -> None:
    shown = {name: techniques_of(facts(name)) for name in RUNGS}
    assert [name for name, techniques in shown.items() if "warp_specialised" in techniques] == list(RUNGS)[2:]
    assert [name for name, techniques in shown.items() if "multicast" in techniques] == list(RUNGS)[5:]
    stores = [name for name in RUNGS if any(c.kind == "tma_store" for c in facts(name).whole.copies)]
    assert stores == ["tma_store"]
    assert {role.registers for role in facts("tma_store").roles} == {24, 240}


def test_fp16_compiles_to_the_same_instructions_of_its_own_type() -> None:
    bf16, fp16 = (facts("tma_store", element).whole.tensor for element in ("bf16", "f16"))
    assert [t.opcode.replace(".BF16", "") for t in bf16] == [t.opcode.replace(".F16", "") for t in fp16]


def test_the_plug_in_declares_the_ladder() -> None:
    variants = with_plugins([str(Path(SOURCE).with_suffix(".py"))])["matmul"].variants
    assert sum("wgmma" in v.name for v in variants) == len(RUNGS)
