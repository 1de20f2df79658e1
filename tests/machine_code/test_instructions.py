"""Instructions as nvdisasm prints them in its other format, control codes decoded by hand, dominators by their definition, and
files that cannot be read."""

from __future__ import annotations

import re

import pytest
from marked_kernels import HAS_TOOLS, cubin, facts

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import ControlCodes, Instruction
from kernelviz.machine_code.control_codes import control_codes
from kernelviz.machine_code.control_flow import ControlFlow, control_flow
from kernelviz.machine_code.counting import count
from kernelviz.machine_code.cubin import NotACubin, read_cubin
from kernelviz.machine_code.disassembly import disassembly, instructions_of
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.occupancy import occupancy, waves
from kernelviz.machine_code.tools import ToolFailed, ToolUnavailable, run_tool
from kernelviz.text.machine_code import format_resources

needs_tools = pytest.mark.skipif(not HAS_TOOLS, reason="neither triton nor the CUDA toolkit is installed: no nvdisasm")
pytestmark = pytest.mark.xdist_group("machine_code")

SECTION = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)
LINE = re.compile(
    r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([\w.]+).*/\* 0x([0-9a-f]{16}) \*/\n\s+/\* 0x([0-9a-f]{16}) \*/"
)


@needs_tools
@pytest.mark.parametrize("name", ["loops-sm_80", "matmul_warp_specialised-sm_90", "matmul-sm_100"])
def test_instructions_are_those_of_the_other_format(name: str) -> None:
    """`nvdisasm -hex` prints address, predicate, opcode and 128 bits of each instruction: nothing is lost or shifted."""
    _, *parts = SECTION.split(run_tool("nvdisasm", ("-c", "-hex"), cubin(name)))
    printed = {
        kernel: [
            (int(address, 16), f"@{predicate}" if predicate else None, opcode, high + low)
            for address, predicate, opcode, low, high in LINE.findall(text)
        ]
        for kernel, text in zip(parts[::2], parts[1::2], strict=True)
    }
    typed = instructions_of(cubin(name), read_cubin(cubin(name)))
    assert {k: [(i.address, i.predicate, i.opcode, i.encoding) for i in v] for k, v in typed.items()} == printed
    assert {k: f.whole.instructions for k, f in facts(name).items()} == {k: len(v) for k, v in printed.items()}


@needs_tools
def test_disassembly_names_kernels_and_labels() -> None:
    text = disassembly(cubin("loops-sm_80"))
    assert ".text.interpreter:" in text
    assert "BRANCH_TARGETS" in text
    assert "HMMA.16816.F32.BF16" in disassembly(cubin("matmul-sm_80"))


# Upper 64 bits of instructions, decoded by hand: stall, yields, write barrier, read barrier, waits, reuse.
DECODED_BY_HAND = [
    ("sm_80", "MUFU.RCP R4, R4", 0x002E680000001000, (4, False, 1, None, (1,), ())),
    ("sm_80", "F2I.FTZ.U32.TRUNC.NTZ R3, R2", 0x0002A4000021F000, (2, False, 2, 1, (), ())),
    (
        "sm_80",
        "HMMA.16816.F32.BF16 R104, R124.reuse, R84, R104",
        0x042FF00000041868,
        (8, False, None, None, (1,), (0,)),
    ),
    ("sm_80", "HMMA.16816.F32.BF16 R124, R124, R96, R48", 0x010FE20000041830, (1, False, None, None, (4,), ())),
    ("sm_80", "LDGSTS.E.BYPASS.128 [R63], [R36.64], !P2", 0x0003E2000D101C44, (1, False, None, 1, (), ())),
    ("sm_80", "LDGDEPBAR", 0x000E220000000000, (1, False, 0, None, (), ())),
    ("sm_80", "ISETP.GE.AND P0, PT, R11, c[0x0][0x180], PT", 0x001FDA0003F06270, (13, True, None, None, (0,), ())),
    ("sm_90a", "S2R R0, SR_TID.X", 0x000EA40000002100, (2, False, 2, None, (), ())),
    ("sm_90a", "SHF.R.U32.HI R2, RZ, 0x5, R0", 0x004FC80000011600, (4, True, None, None, (2,), ())),
    ("sm_90a", "HGMMA.64x128x16.F32.BF16 R24, …, gsb0", 0x000FE60008001818, (3, False, None, None, (), ())),
    ("sm_90a", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, …", 0x000E640008000156, (2, False, 1, None, (), ())),
    ("sm_90a", "UTMALDG.2D [UR24], [UR12]", 0x0003E20008008000, (1, False, None, 1, (), ())),
]


@pytest.mark.parametrize(("architecture", "text", "upper", "expected"), DECODED_BY_HAND)
def test_control_codes_decoded_by_hand(architecture: str, text: str, upper: int, expected: tuple[object, ...]) -> None:
    codes = control_codes(upper << 64, architecture)
    assert codes == ControlCodes(**dict(zip(ControlCodes.__struct_fields__, expected, strict=True)))
    assert control_codes(upper << 64, "sm_100") is None


@needs_tools
def test_reuse_flags_are_those_that_nvdisasm_prints_and_exclude_a_yield() -> None:
    """After a yield another warp may have replaced the cached registers, so ptxas sets no reuse flag together with it."""
    flags = yields = 0
    for name in ("matmul-sm_80", "matmul_warp_specialised-sm_90"):
        for instructions in instructions_of(cubin(name), read_cubin(cubin(name))).values():
            for i in instructions:
                assert i.control is not None
                assert len(i.control.reused_operands) == sum(".reuse" in operand for operand in i.operands)
                assert not (i.control.reused_operands and i.control.yields)
                flags += bool(i.control.reused_operands)
                yields += i.control.yields
    assert flags > 50
    assert yields > 200


def _flow(*lines: str, **targets: tuple[int, ...]) -> ControlFlow:
    """The control flow of instructions such as ``@P0 BRA 0x20``, one every 16 bytes."""
    instructions = []
    for n, line in enumerate(lines):
        predicate, rest = line.split(" ", 1) if line.startswith("@") else (None, line)
        opcode, _, operands = rest.partition(" ")
        listed = tuple(operands.split(",")) if operands else ()
        instructions.append(
            Instruction(address=16 * n, predicate=predicate, opcode=opcode, operands=listed, encoding="")
        )
    return control_flow(instructions, {int(k.removeprefix("at_"), 16): v for k, v in targets.items()})


@pytest.mark.parametrize(
    ("lines", "targets", "expected"),
    [
        (["NOP", "@P0 BRA 0x0", "EXIT"], {}, [(0x0, {0x0})]),
        (["NOP", "@!PT BRA 0x0", "EXIT"], {}, []),  # never taken
        (["NOP", "@PT EXIT", "BRA 0x0"], {}, []),  # always leaves
        (["NOP", "@P1 BRA P0,0x0", "EXIT"], {}, [(0x0, {0x0})]),
        (["NOP", "@P0 CALL.REL.NOINC 0x30", "BRA 0x0", "EXIT"], {}, [(0x0, {0x0, 0x20})]),  # a call that leaves a loop
        (["NOP", "BRX R2,-0x20", "BRA 0x0", "EXIT"], {"at_10": (0x20, 0x30)}, [(0x0, {0x0, 0x20})]),
        # BSYNC goes to the address that BSSY named, here back to the header.
        (["BSSY B0,0x10", "NOP", "@P0 EXIT", "NOP", "BSYNC B0", "EXIT"], {}, [(0x10, {0x10, 0x30})]),
        (["BRA 0x20", "NOP", "@P0 BRA 0x10", "@P1 BRA 0x20", "EXIT"], {}, [(0x20, {0x10, 0x20, 0x30})]),
    ],
)
def test_loops_of_small_graphs(
    lines: list[str], targets: dict[str, tuple[int, ...]], expected: list[tuple[int, set[int]]]
) -> None:
    assert [(loop.header, set(loop.blocks)) for loop in _flow(*lines, **targets).loops] == expected


def test_an_indirect_branch_without_known_targets_is_counted() -> None:
    assert _flow("BRX R2,-0x20", "EXIT").indirect_branches_unknown == 1


@needs_tools
@pytest.mark.parametrize(("name", "kernel"), [("loops-sm_80", "interpreter"), ("matmul_warp_specialised-sm_90", None)])
def test_dominators_by_their_definition(name: str, kernel: str | None) -> None:
    """Block a dominates block b if b cannot be reached once a is removed."""
    file = read_cubin(cubin(name))
    found = next(k for k in file.kernels if kernel in (None, k.name))
    code = instructions_of(cubin(name), file)[found.name]
    flow = control_flow(code, found.branch_targets, [f.offset for f in found.functions])
    for removed in flow.blocks:
        seen, waiting = {removed}, [min(flow.blocks)]
        while waiting:
            address = waiting.pop()
            if address not in seen:
                seen.add(address)
                waiting.extend(flow.blocks[address].successors)
        unreachable = set(flow.blocks) - seen | {removed}
        assert {b for b in flow.blocks if flow.dominates(removed, b)} == (
            set(flow.blocks) if removed == min(flow.blocks) else unreachable
        )


def test_an_unknown_opcode_counts_as_unknown() -> None:
    facts = count(
        [Instruction(address=0, opcode="FROB.128", encoding=""), Instruction(address=16, opcode="EXIT", encoding="")]
    )
    assert facts.unknown == {"FROB.128": 1}
    assert facts.classes == {"unknown": 1, "control_flow": 1}


def test_multicast_and_copies_between_blocks() -> None:
    opcodes = ("UTMALDG.2D.MULTICAST", "UTMALDG.2D", "UBLKCP.S.G.MULTICAST", "UBLKCP.G.S")
    copies = count([Instruction(address=16 * n, opcode=o, encoding="") for n, o in enumerate(opcodes)]).copies
    assert {(c.kind, c.multicast) for c in copies} == {
        ("tma_load", True),
        ("tma_load", False),
        ("bulk_load", True),
        ("bulk_store", False),
    }


def test_wgmma_with_its_first_operand_in_registers() -> None:
    operands = ("R24", "R88", "gdesc[UR4].tnspB", "R24", "gsb0")
    (found,) = count([Instruction(address=0, opcode="HGMMA.64x256x16.F32.BF16", operands=operands, encoding="")]).tensor
    assert (found.shape, found.a_source, found.b_source) == ((64, 256, 16), "registers", "shared_memory")


@needs_tools
def test_occupancy_with_what_limits_it() -> None:
    # Threads, dynamic shared memory, then by hand: blocks by threads, blocks, registers, shared memory.
    # 168 registers: 168 x 32 = 5376 a warp, 3 warps in each of 4 partitions of 16384; 384 threads are 12 warps.
    specialised = facts("matmul_warp_specialised-sm_90")["persistent_matmul"]
    found = occupancy(specialised, 384, 132_560)
    assert found is not None
    assert found.limits == {"threads": 5, "blocks": 32, "registers": 1, "shared_memory": 1}
    assert found.limited_by == ("registers", "shared_memory")
    # 14 registers are allocated as 16: 512 a warp, 128 warps. 256 threads: 2048 / 256 = 8 blocks, 64 of 64 warps.
    stride = occupancy(facts("loops-sm_80")["grid_stride"], 256)
    assert stride is not None
    assert (stride.blocks, stride.fraction, stride.limited_by) == (8, 1.0, ("threads",))
    # Of the 2048 bytes in the file of sm_90, the kernel declares 1024; the system takes 1024 of each block.
    nested = facts("loops-sm_90")["nested"]
    assert (nested.static_shared_bytes, nested.own_shared_bytes) == (2048, 1024)
    assert facts("loops-sm_80")["nested"].own_shared_bytes == 1024
    with pytest.raises(BadField, match="threads"):
        occupancy(specialised, 2048)
    with pytest.raises(BadField, match="grid"):
        waves(0, 132, 1)


@pytest.mark.parametrize("content", [b"", b"not an ELF file", b"\x7fELF\x02\x01" + bytes(58)])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(NotACubin, match="not a cubin"):
        facts_of(content)


def test_a_damaged_cubin_is_refused_or_read() -> None:
    """Cut off anywhere, or with bytes overwritten, a cubin raises NotACubin and nothing else."""
    content = cubin("copy_bulk-sm_90")
    refused = 0
    for step in range(0, len(content), 61):
        for damaged in (content[:step], content[:step] + b"\xff" * 8 + content[step + 8 :]):
            try:
                read_cubin(damaged)
            except NotACubin:
                refused += 1
    assert refused > 50


def test_a_missing_tool_is_named_with_its_remedy() -> None:
    with pytest.raises(ToolUnavailable, match="pip install nvidia-cuda-nvdisassembler"):
        run_tool("nvdisassembler", (), b"")


@needs_tools
def test_a_file_that_nvdisasm_cannot_read_is_refused_by_name() -> None:
    with pytest.raises(ToolFailed, match="nvdisasm"):
        run_tool("nvdisasm", ("-json",), b"nothing")


def test_functions_that_the_driver_adds_are_named() -> None:
    """Found on an H100: a kernel with an assertion has 24 registers in its cubin, and 32 once the driver has loaded it."""
    nvrtc = pytest.importorskip("cuda.core")
    source = """
    extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
    extern "C" __device__ int printf(const char*, ...);
    extern "C" __device__ __noinline__ int own(int x) { return x * 3 + 1; }
    extern "C" __global__ void asserts(int* x) { if (x[0] == 3) __assertfail("m", "f", 1, "g", 1); x[1] = 2; }
    extern "C" __global__ void prints(int* x) { if (x[0] == 3) printf("%d", x[1]); x[2] = own(x[3]); }
    extern "C" __global__ void neither(int* x) { x[0] = own(x[1]); }
    """
    options = nvrtc.ProgramOptions(arch="sm_90")
    made = facts_of(bytes(nvrtc.Program(source, "c++", options).compile("cubin").code))
    assert {k.name: k.external_functions for k in made} == {
        "asserts": ("__assertfail",),
        "prints": ("vprintf",),
        "neither": (),
    }
    said = {k.name: str(format_resources(k)) for k in made}
    assert "registers per thread (or more, for __assertfail)" in said["asserts"]
    assert "or more" not in said["neither"]
