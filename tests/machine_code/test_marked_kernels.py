"""Facts of the committed cubins: main loops as marked by hand, resources as cuobjdump prints them, and traces of techniques."""

from __future__ import annotations

from typing import Any

import pytest
from marked_kernels import HAS_TOOLS, MARKED, NAMES, cubin, facts
from resource_usage import as_cuobjdump_says, resource_usage

from kernelviz.core.machine_code import Access, AddressRange, AsynchronousCopy, CodeFacts
from kernelviz.machine_code.facts import facts_of_many
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.tables.machine_code import MACHINE_CODE, roles
from kernelviz.text.machine_code import describe_kernel

pytestmark = [
    pytest.mark.xdist_group("machine_code"),
    pytest.mark.skipif(not HAS_TOOLS, reason="neither triton nor the CUDA toolkit is installed: no nvdisasm"),
]


@pytest.mark.parametrize("marked", MARKED, ids=lambda m: f"{m['cubin']}-{m['name']}")
def test_main_loop_of_each_role_is_the_marked_one(marked: dict[str, Any]) -> None:
    roles = facts(marked["cubin"])[marked["name"]].roles
    expected = [tuple(AddressRange(first=first, last=last) for first, last in ranges) for ranges in marked["roles"]]
    assert [role.main_loop.ranges if role.main_loop else () for role in roles] == expected


@pytest.mark.parametrize("name", NAMES)
def test_resources_are_those_of_cuobjdump(name: str) -> None:
    assert {k: as_cuobjdump_says(f) for k, f in facts(name).items()} == resource_usage(cubin(name))


def test_every_opcode_has_a_class_and_none_is_lost() -> None:
    for name in NAMES:
        for kernel in facts(name).values():
            assert kernel.whole.unknown == {}
            assert sum(kernel.whole.classes.values()) == kernel.whole.instructions == kernel.code_bytes // 16


def _work(name: str, kernel: str, role: int = 0) -> CodeFacts:
    return facts(name)[kernel].roles[role].work


def _tensor(work: CodeFacts) -> list[tuple[object, ...]]:
    return [(t.opcode.partition(".")[0], t.shape, t.a_source, t.b_source, t.count) for t in work.tensor]


def test_tensor_instructions_by_architecture() -> None:
    mma, wgmma, tcgen05 = (_work(f"matmul-sm_{arch}", "grouped_kernel") for arch in (80, 90, 100))
    assert _tensor(mma) == [("HMMA", (16, 8, 16), "registers", "registers", 64)]
    assert _tensor(wgmma) == [("HGMMA", (64, 128, 16), "shared_memory", "shared_memory", 4)]
    assert _tensor(tcgen05) == [("UTCHMMA", None, "shared_memory", "shared_memory", 4)]
    for work in (mma, wgmma, tcgen05):
        assert work.copies == (AsynchronousCopy(kind="cp_async", width_bytes=16, count=8),)
    # 152 instructions, of which three LDS are never executed and 64 are HMMA.
    assert mma.other_per_tensor == (mma.instructions - 3 - 64) / 64
    assert mma.accesses == (Access(space="shared", kind="load", width_bytes=16, count=24),)


def test_warp_specialised_roles() -> None:
    kernel = facts("matmul_warp_specialised-sm_90")["persistent_matmul"]
    assert kernel.required_threads == (384, 1, 1)
    assert kernel.architecture == "sm_90a"
    assert [role.registers for role in kernel.roles] == [232, 232, 40]
    assert [[c.kind for c in role.work.copies] for role in kernel.roles] == [[], [], ["tma_load"]]
    assert [role.work.classes.get("tensor", 0) for role in kernel.roles] == [4, 4, 0]
    # Of its waits a loop has those that every iteration tries, not those that spin behind the end of the kernel.
    assert [role.work.barriers["mbarrier_wait"] for role in kernel.roles] == [2, 2, 4]
    assert {c.kind for c in kernel.whole.copies} == {"tma_load", "tma_store"}
    assert [c.registers for c in kernel.whole.register_changes if c.kind == "increase"] == [232, 232, 256, 256]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matmul-sm_80", {"cp_async", "mma_sync", "vec16"}),
        ("matmul-sm_90", {"cp_async", "wgmma", "vec16"}),
        ("matmul-sm_100", {"cp_async", "tcgen05", "vec16"}),
        ("matmul_persistent-sm_90", {"tma", "wgmma"}),
        ("matmul_warp_specialised-sm_90", {"tma", "wgmma", "warp_specialised"}),
        # The same source, with eight warps instead of four: Triton specialises no warps and does not say so.
        ("matmul_not_specialised-sm_90", {"tma", "wgmma"}),
        ("copy_bulk-sm_90", {"bulk_copy"}),
    ],
)
def test_techniques_are_those_of_the_source(name: str, expected: set[str]) -> None:
    (kernel,) = facts(name).values()
    assert techniques_of(kernel) == expected


def test_accesses_special_functions_and_bulk_copies() -> None:
    softmax = facts("softmax_three_pass-sm_90")["three_pass_kernel"]
    assert Access(space="global", kind="load", width_bytes=16, count=8) in softmax.roles[0].work.accesses
    assert softmax.whole.special_functions == {"MUFU.EX2": 16, "MUFU.RCP": 1}
    vec16 = facts("arithmetic-sm_90")["arithmetic_vec16"].whole
    assert vec16.accesses == (
        Access(space="global", kind="load", width_bytes=4, count=2),
        Access(space="global", kind="load", width_bytes=16, count=2),
        Access(space="global", kind="store", width_bytes=4, count=1),
        Access(space="global", kind="store", width_bytes=16, count=1),
    )
    assert [(c.kind, c.count) for c in facts("copy_bulk-sm_90")["copy_bulk"].whole.copies] == [
        ("bulk_load", 1),
        ("bulk_store", 1),
    ]


def test_launch_bounds_clusters_and_spills() -> None:
    kernel = facts("clustered-sm_90")["clustered"]
    assert kernel.max_threads == (256, 1, 1)
    assert kernel.max_registers == 128
    assert kernel.cluster == (4, 2, 1)
    assert kernel.stack_bytes == 160
    assert kernel.spill_stores > 0
    assert kernel.spill_loads > 0


def test_many_cubins_at_once_have_the_same_facts() -> None:
    assert [{f.name: f for f in each} for each in facts_of_many([cubin(name) for name in NAMES])] == list(
        map(facts, NAMES)
    )


def test_text_and_table_of_every_kernel() -> None:
    for name in NAMES:
        for kernel in facts(name).values():
            lines = list(map(str, describe_kernel(kernel)))
            assert lines[0] == f"{kernel.name} ({kernel.architecture})"
            assert all(lines)
            for row in roles([kernel]):
                cells = {column.name: column.read(row) for column in MACHINE_CODE}
                assert cells["instructions"] == row.role.work.executable > 0
                assert sum(int(part.split()[0]) for part in str(cells["mix"]).split(", ")) == cells["instructions"]
    specialised = "\n".join(map(str, describe_kernel(facts("matmul_warp_specialised-sm_90")["persistent_matmul"])))
    assert "Warp role 2 with 232 registers: main loop 0x2740–0x2ae0, 0x5740–0x5790" in specialised
    assert "4 HGMMA 64×128×16 (both operands from shared memory)" in specialised
    assert "3 TMA load" in specialised


def test_stall_cycles_only_where_control_codes_are_verified() -> None:
    assert facts("loops-sm_80")["grid_stride"].roles[0].work.stall_cycles is not None
    assert facts("loops-sm_100")["grid_stride"].roles[0].work.stall_cycles is None
