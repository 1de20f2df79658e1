"""Find the main loop of each warp role of a kernel.

The main loop is the innermost loop with the most tensor instructions, else with the most memory instructions, else with the
most instructions. Innermost means that no loop within it has such instructions: the loop along K and not the persistent loop
around it, but a loop over memory around a loop that only computes. Loops that go through no data are not candidates: waits for
an mbarrier, for registers or for a flag, loops over the lanes of a warp, and the slow path of sin and cos for huge arguments.

Warp roles: code that only some warps run. A setmaxnreg begins a role, which reaches as far as the blocks that it dominates.
Without setmaxnreg, loops that exclude each other because of a comparison of the thread's index with a constant are of different
roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernelviz.core.machine_code import AddressRange, Instruction, MainLoop, WarpRole
from kernelviz.machine_code.control_flow import INSTRUCTION_BYTES, ControlFlow, Loop
from kernelviz.machine_code.counting import barrier_kind, count, register_change
from kernelviz.machine_code.opcodes import class_of
from kernelviz.machine_code.thread_index import depends_on_thread_index_only

_MEMORY = frozenset({"global_memory", "shared_memory", "asynchronous_copy", "tensor_memory", "texture"})
_ARITHMETIC = frozenset({"tensor", "fp32", "fp16", "fp64", "special_function", "conversion"})
_LONGEST_WAIT = 32
"""Instructions of a loop that polls a flag in memory: grid.sync() of cooperative groups has 6, the look-back of a scan 23."""
_LANE_BRANCHES = ("BRA.U.ANY", "BRA.U.ALL")
_RANGE_REDUCTION_STEPS = "0x6"
"""The reduction of huge arguments of sin and cos multiplies by six words of 2/pi (__cudart_i2opi_f)."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    loop: Loop
    tensor: int
    memory: int
    instructions: int
    """Numbers of instructions, without those of inner loops; but a loop over the lanes of a warp is not one."""
    depth: int


def warp_roles(flow: ControlFlow, code: Sequence[Instruction]) -> tuple[WarpRole, ...]:
    """The roles of a kernel with their main loops, in the order of addresses; one role if all warps run the same code.

    `code`: all instructions of the kernel's section, which are the body of the one role.
    """
    candidates = _candidates(flow)
    regions = _regions_by_registers(flow) or _regions_by_thread_index(flow, candidates)
    roles = []
    for entry, region, registers in regions:
        mine = [c for c in candidates if c.loop.blocks <= region]
        if mine:
            roles.append(_role(flow, entry, region, registers, mine))
    covered = frozenset().union(*(region for _, region, _ in regions)) if regions else frozenset()
    rest = [c for c in candidates if not c.loop.blocks & covered]
    if roles and not rest:
        return tuple(roles)
    if roles:
        outside = frozenset(flow.blocks) - covered
        roles.append(_role(flow, min(outside), outside, None, rest))
        return tuple(sorted(roles, key=lambda r: r.entry))
    loop = _main_loop(flow, _best(candidates)) if candidates else None
    return (WarpRole(entry=code[0].address, main_loop=loop, body=count(code)),)


def _role(
    flow: ControlFlow, entry: int, region: frozenset[int], registers: int | None, mine: Sequence[_Candidate]
) -> WarpRole:
    return WarpRole(
        entry=entry,
        registers=registers,
        main_loop=_main_loop(flow, _best(mine)),
        body=count(_instructions(flow, region)),
    )


def _best(candidates: Sequence[_Candidate]) -> _Candidate:
    """The innermost candidate with the most tensor instructions, else with the most memory instructions, else with the most."""
    numbers: tuple[Callable[[_Candidate], int], ...] = (
        lambda c: c.tensor,
        lambda c: c.memory,
        lambda c: c.instructions,
    )
    for number in numbers:
        having = [c for c in candidates if number(c)]
        innermost = [c for c in having if not any(other.loop.blocks < c.loop.blocks for other in having)]
        if innermost:
            return max(innermost, key=lambda c: (number(c), c.instructions))
    raise AssertionError("a loop has at least one instruction")


def _main_loop(flow: ControlFlow, best: _Candidate) -> MainLoop:
    waits = {
        a for loop in flow.loops if loop.blocks < best.loop.blocks and _only_waits(flow, loop) for a in loop.blocks
    }
    return MainLoop(
        header=best.loop.header,
        ranges=_ranges(_instructions(flow, best.loop.blocks)),
        depth=best.depth,
        iteration=count(_instructions(flow, best.loop.blocks - waits)),
    )


def _candidates(flow: ControlFlow) -> tuple[_Candidate, ...]:
    loops = [
        loop
        for loop in flow.loops
        if not _only_waits(flow, loop) and not _goes_over_lanes(flow, loop) and not _reduces_range(flow, loop)
    ]
    apart = [loop for loop in flow.loops if not _goes_over_lanes(flow, loop)]
    candidates = []
    for loop in loops:
        inner = frozenset[int]().union(*(other.blocks for other in apart if other.blocks < loop.blocks))
        depth = sum(loop.blocks <= other.blocks for other in loops)
        classes = [class_of(i) for i in _instructions(flow, loop.blocks - inner)]
        memory = sum(c in _MEMORY for c in classes)
        candidates.append(_Candidate(loop, classes.count("tensor"), memory, len(classes), depth))
    return tuple(candidates)


def _only_waits(flow: ControlFlow, loop: Loop) -> bool:
    """Whether a loop polls: an mbarrier, registers to be free, tensor memory, or a flag in memory that others write."""
    live = [i for i in _instructions(flow, loop.blocks) if not i.is_never_executed]
    classes = [class_of(i) for i in live]
    if _ARITHMETIC & set(classes) or "asynchronous_copy" in classes:
        return False
    memory = [i for i, c in zip(live, classes, strict=True) if c in _MEMORY and c != "tensor_memory"]
    polls_hardware = any(
        barrier_kind(i) == "mbarrier_wait" or i.mnemonic in ("NANOSLEEP", "UTCATOMSWS") or "TRY_ALLOC" in i.modifiers
        for i in live
    )
    if not memory:
        return polls_hardware
    polls_memory = all("STRONG" in i.modifiers or i.mnemonic == "CCTL" for i in memory) and len(live) <= _LONGEST_WAIT
    return polls_memory and all(not i.mnemonic.startswith("ST") for i in memory)


def _goes_over_lanes(flow: ControlFlow, loop: Loop) -> bool:
    """Whether a loop repeats an instruction with uniform operands for each distinct value among the lanes of a warp."""
    return all(flow.blocks[latch].last.opcode in _LANE_BRANCHES for latch in loop.latches)


def _reduces_range(flow: ControlFlow, loop: Loop) -> bool:
    """Whether a loop is the slow path of sin and cos: one load of a constant, no arithmetic but on integers, and six steps."""
    live = _instructions(flow, loop.blocks)
    memory = [i for i in live if class_of(i) in _MEMORY]
    return (
        len(memory) == 1
        and "CONSTANT" in memory[0].modifiers
        and not any(class_of(i) in _ARITHMETIC for i in live)
        and any(i.mnemonic in ("ISETP", "UISETP") and _RANGE_REDUCTION_STEPS in i.operands for i in live)
    )


def _regions_by_registers(flow: ControlFlow) -> list[tuple[int, frozenset[int], int | None]]:
    """Of each block with a setmaxnreg its address, the blocks that it dominates up to the next setmaxnreg, and the registers."""
    entries = {
        address: changes[-1].registers
        for address, block in flow.blocks.items()
        if (changes := [c for i in block.instructions if (c := register_change(i))])
    }
    owner = {address: _nearest(flow, address, entries) for address in flow.blocks}
    return [
        (entry, frozenset(a for a, nearest in owner.items() if nearest == entry), registers)
        for entry, registers in sorted(entries.items())
    ]


def _nearest(flow: ControlFlow, address: int, entries: dict[int, int]) -> int | None:
    """The nearest of the entries that dominates a block."""
    while address not in entries:
        parent = flow.dominators[address]
        if parent == address:
            return None
        address = parent
    return address


def _regions_by_thread_index(
    flow: ControlFlow, candidates: Sequence[_Candidate]
) -> list[tuple[int, frozenset[int], int | None]]:
    """Of each side of a branch on the thread's index its address and the blocks that it dominates, where two sides have a
    candidate each, of which neither leads to the other."""
    for address, block in sorted(flow.blocks.items()):
        if len(block.successors) != 2 or not depends_on_thread_index_only(flow, address):
            continue
        sides = []
        for successor in block.successors:
            region = frozenset(a for a in flow.blocks if flow.dominates(successor, a))
            if flow.dominators[successor] == address and any(c.loop.blocks <= region for c in candidates):
                sides.append((successor, region, None))
        if len(sides) == 2 and all(_excludes(flow, a, b) for a, b in (sides, sides[::-1])):
            return sorted(sides)
    return []


def _excludes(flow: ControlFlow, a: tuple[int, frozenset[int], None], b: tuple[int, frozenset[int], None]) -> bool:
    return b[0] not in flow.reachable_from(a[0])


def _instructions(flow: ControlFlow, blocks: Iterable[int]) -> tuple[Instruction, ...]:
    return tuple(i for address in sorted(blocks) for i in flow.blocks[address].instructions)


def _ranges(instructions: Sequence[Instruction]) -> tuple[AddressRange, ...]:
    ranges: list[AddressRange] = []
    for i in instructions:
        if ranges and ranges[-1].last + INSTRUCTION_BYTES == i.address:
            ranges[-1] = AddressRange(first=ranges[-1].first, last=i.address)
        else:
            ranges.append(AddressRange(first=i.address, last=i.address))
    return tuple(ranges)
