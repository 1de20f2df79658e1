"""Whether a branch depends on the thread's index and on constants only: then it separates warps, not data."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelviz.core.machine_code import Instruction
from kernelviz.machine_code.control_flow import ControlFlow

_REGISTER = re.compile(r"^[!~|-]*(U?(?:R|P)(?:\d+|Z|T))\b")
_THREAD_INDEX = frozenset({"SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_TID", "SR_WARPID", "SR_LANEID", "SR_VIRTID"})
_TRACED = frozenset(
    re.findall(
        r"\w+",
        "ISETP UISETP PLOP3 UPLOP3 SHF USHF LOP3 ULOP3 MOV UMOV IMAD R2UR SHFL S2R S2UR SEL USEL LEA ULEA IADD3 UIADD3 VIADD "
        "SGXT USGXT P2R R2P ELECT",
    )
)
"""Instructions through which the index is followed. Others, such as loads, end the search without a result."""
_MOST_STEPS = 64


def depends_on_thread_index_only(flow: ControlFlow, address: int) -> bool:
    """Whether the condition of the branch that ends a block is computed from the thread's index and from constants alone.

    The definitions are searched backwards in the blocks that dominate the branch.
    """
    branch = flow.blocks[address].last
    conditions = [c for c in (_name(branch.predicate), *map(_name, branch.operands[:-1])) if c]
    if branch.mnemonic != "BRA" or not conditions:
        return False
    waiting = [(c, address, len(flow.blocks[address].instructions) - 1) for c in conditions]
    seen: set[tuple[str, int]] = set()
    uses_index = False
    while waiting and len(seen) < _MOST_STEPS:
        register, block, position = waiting.pop()
        definition = _definition(flow, register, block, position)
        if definition is None:
            return False
        instruction, block, position = definition
        if (register, instruction.address) in seen:
            continue
        seen.add((register, instruction.address))
        if instruction.mnemonic not in _TRACED:
            return False
        if instruction.mnemonic in ("S2R", "S2UR"):
            if instruction.operands[-1] not in _THREAD_INDEX:
                return False
            uses_index = True
            continue
        if any("c[" in operand for operand in instruction.operands):
            return False
        waiting.extend((r, block, position) for r in _read(instruction))
    return uses_index and not waiting


def _definition(flow: ControlFlow, register: str, block: int, position: int) -> tuple[Instruction, int, int] | None:
    """The last instruction before a position that writes a register, in the block and the blocks that dominate it."""
    while True:
        instructions = flow.blocks[block].instructions
        for n in range(position - 1, -1, -1):
            if register in _written(instructions[n]):
                return instructions[n], block, n
        parent = flow.dominators[block]
        if parent == block:
            return None
        block, position = parent, len(flow.blocks[parent].instructions)


def _written(instruction: Instruction) -> tuple[str, ...]:
    """The registers and predicates that an instruction writes: its first operand, and a second that is a predicate."""
    names = [_name(o) for o in instruction.operands[:2]]
    first = names[0] if names else None
    second = names[1] if len(names) > 1 and names[1] and names[1].lstrip("U").startswith("P") else None
    return tuple(n for n in (first, second) if n)


def _read(instruction: Instruction) -> Iterator[str]:
    """The registers and predicates that an instruction reads, without those that are constants (RZ, PT)."""
    written = len(_written(instruction))
    for operand in (*instruction.operands[written:], instruction.predicate or ""):
        name = _name(operand)
        if name is not None:
            yield name


def _name(operand: str | None) -> str | None:
    """The register or predicate of an operand: ``-R4.reuse`` is R4, ``@!P0`` is P0; None for constants and RZ, PT, URZ, UPT."""
    match = _REGISTER.match((operand or "").removeprefix("@"))
    if match is None or match[1].endswith(("Z", "T")):
        return None
    return match[1]
