"""The control flow of a kernel: basic blocks, dominators and natural loops.

Branches that nvdisasm shows as calls: ``CALL.REL.NOINC`` to an address within the kernel leaves a region for good and does not
return, so it is a branch; a call of a function comes back to the next instruction. BSYNC goes to the address that its BSSY named.
An indirect branch goes to the targets that the cubin lists for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelviz.core.machine_code import Instruction

INSTRUCTION_BYTES = 16
_ENDS = frozenset({"EXIT", "RET", "KILL", "RTT"})
_JUMPS = frozenset({"BRA", "JMP"})
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other. Successors are addresses of blocks."""

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]

    @property
    def address(self) -> int:
        return self.instructions[0].address

    @property
    def last(self) -> Instruction:
        return self.instructions[-1]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header and all its blocks, those of inner loops included. `latches` are the blocks that branch back."""

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """The blocks that are reachable from the kernel's entry, by address; the immediate dominator of each; the natural loops."""

    blocks: Mapping[int, Block]
    dominators: Mapping[int, int]
    loops: tuple[Loop, ...]
    indirect_branches_unknown: int

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the entry to block b goes through block a."""
        while b != a:
            parent = self.dominators[b]
            if parent == b:
                return False
            b = parent
        return True

    def reachable_from(self, address: int) -> set[int]:
        """The block itself and all blocks to which a path leads from it."""
        return _reachable(self.blocks, address)


def control_flow(
    instructions: Sequence[Instruction], branch_targets: Mapping[int, tuple[int, ...]], functions: Iterable[int] = ()
) -> ControlFlow:
    """The control flow of a kernel that starts with the first instruction. `functions`: addresses of functions that it calls,
    whose code is not a part of it; `branch_targets`: of each indirect branch."""
    end = min(functions, default=instructions[-1].address + INSTRUCTION_BYTES)
    own = [i for i in instructions if i.address < end]
    unknown = sum(i.mnemonic in _INDIRECT and i.address not in branch_targets for i in own)
    successors = _successors_of(own, branch_targets)
    blocks = _blocks(own, successors)
    reachable = _reachable(blocks, own[0].address)
    blocks = {a: b for a, b in blocks.items() if a in reachable}
    order = _reverse_postorder(blocks, own[0].address)
    dominators = _dominators(blocks, order)
    flow = ControlFlow(blocks, dominators, (), unknown)
    return ControlFlow(blocks, dominators, _loops(flow), unknown)


def branch_target(instruction: Instruction) -> int | None:
    """The address to which a direct branch goes; None for other instructions, and for a call of a function by its name."""
    if instruction.mnemonic in _JUMPS or instruction.mnemonic == "CALL":
        target = instruction.operands[-1] if instruction.operands else ""
        return int(target, 16) if _ADDRESS.fullmatch(target) else None
    return None


def is_conditional(instruction: Instruction) -> bool:
    """Whether control may also go on behind a branch or an EXIT: it has a predicate, or an operand that is a condition."""
    if instruction.predicate is not None and instruction.predicate not in ("@PT", "@UPT"):
        return True
    return instruction.mnemonic in _JUMPS and len(instruction.operands) > 1


def _successors_of(
    instructions: Sequence[Instruction], branch_targets: Mapping[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Where control goes behind each instruction that is not simply followed by the next one."""
    known = {i.address for i in instructions}
    converged = _reconvergence_addresses(instructions)
    result: dict[int, tuple[int, ...]] = {}
    for i in instructions:
        following = (i.address + INSTRUCTION_BYTES,)
        target = branch_target(i)
        if i.is_never_executed:
            continue
        if target is not None:
            if target in known:
                result[i.address] = (*following, target) if is_conditional(i) else (target,)
        elif i.mnemonic in _INDIRECT:
            targets = branch_targets.get(i.address, ())
            result[i.address] = (*following, *targets) if i.predicate else targets
        elif i.mnemonic in _ENDS:
            result[i.address] = following if is_conditional(i) else ()
        elif i.mnemonic == "BSYNC" and i.address in converged:
            target = converged[i.address]
            result[i.address] = (*following, target) if is_conditional(i) else (target,)
    return {a: tuple(dict.fromkeys(t for t in targets if t in known)) for a, targets in result.items()}


def _reconvergence_addresses(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Of each BSYNC the address that its BSSY named: of the BSSYs of the same register the one that names the next
    instruction, else the nearest one before it."""
    named: dict[str, list[tuple[int, int]]] = {}
    for i in instructions:
        if i.mnemonic == "BSSY" and len(i.operands) == 2 and _ADDRESS.fullmatch(i.operands[1]):
            named.setdefault(i.operands[0], []).append((i.address, int(i.operands[1], 16)))
    result = {}
    for i in instructions:
        if i.mnemonic == "BSYNC" and i.operands and i.operands[0] in named:
            pairs = named[i.operands[0]]
            following = i.address + INSTRUCTION_BYTES
            before = [target for address, target in pairs if address < i.address]
            if all(target != following for _, target in pairs) and before:
                result[i.address] = before[-1]
    return result


def _blocks(instructions: Sequence[Instruction], successors: Mapping[int, tuple[int, ...]]) -> dict[int, Block]:
    leaders = {instructions[0].address, *(t for targets in successors.values() for t in targets)}
    leaders |= {a + INSTRUCTION_BYTES for a in successors}
    blocks = {}
    current: list[Instruction] = []
    for n, i in enumerate(instructions):
        current.append(i)
        following = instructions[n + 1].address if n + 1 < len(instructions) else None
        if i.address in successors or following is None or following in leaders:
            onward = successors.get(i.address, () if following is None else (following,))
            blocks[current[0].address] = Block(tuple(current), onward)
            current = []
    return blocks


def _reachable(blocks: Mapping[int, Block], start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        for successor in blocks[waiting.pop()].successors:
            if successor not in seen:
                seen.add(successor)
                waiting.append(successor)
    return seen


def _reverse_postorder(blocks: Mapping[int, Block], entry: int) -> list[int]:
    order: list[int] = []
    seen = {entry}
    stack = [(entry, iter(blocks[entry].successors))]
    while stack:
        address, remaining = stack[-1]
        following = next((s for s in remaining if s not in seen), None)
        if following is None:
            order.append(address)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following].successors)))
    return order[::-1]


def _dominators(blocks: Mapping[int, Block], order: Sequence[int]) -> dict[int, int]:
    """The immediate dominator of each block, the entry's is itself. Cooper, Harvey and Kennedy, "A Simple, Fast Dominance
    Algorithm" (2001)."""
    rank = {address: n for n, address in enumerate(order)}
    predecessors = _predecessors(blocks)
    dominators = {order[0]: order[0]}

    def common(a: int, b: int) -> int:
        while a != b:
            while rank[a] > rank[b]:
                a = dominators[a]
            while rank[b] > rank[a]:
                b = dominators[b]
        return a

    changed = True
    while changed:
        changed = False
        for address in order[1:]:
            known = [p for p in predecessors[address] if p in dominators]
            closest = known[0]
            for other in known[1:]:
                closest = common(closest, other)
            if dominators.get(address) != closest:
                dominators[address] = closest
                changed = True
    return dominators


def _predecessors(blocks: Mapping[int, Block]) -> dict[int, list[int]]:
    predecessors: dict[int, list[int]] = {address: [] for address in blocks}
    for address, block in blocks.items():
        for successor in block.successors:
            predecessors[successor].append(address)
    return predecessors


def _loops(flow: ControlFlow) -> tuple[Loop, ...]:
    """Natural loops, those with one header merged."""
    predecessors = _predecessors(flow.blocks)
    latches: dict[int, list[int]] = {}
    for address, block in flow.blocks.items():
        for successor in block.successors:
            if flow.dominates(successor, address):
                latches.setdefault(successor, []).append(address)
    loops = []
    for header, sources in latches.items():
        blocks, waiting = {header}, list(sources)
        while waiting:
            address = waiting.pop()
            if address not in blocks:
                blocks.add(address)
                waiting.extend(predecessors[address])
        loops.append(Loop(header, frozenset(blocks), tuple(sources)))
    return tuple(loops)
