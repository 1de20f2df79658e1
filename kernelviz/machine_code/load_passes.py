"""How often a kernel goes through data in global memory.

A kernel that needs a result of all data before it uses them again, as softmax needs the maximum, reads them in two loops, and
its threads exchange data in between, by shuffles or through shared memory and a barrier. Loops without such an exchange in
between are parts of one pass: ptxas makes a second loop of what remains after an unrolled one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelviz.core.machine_code import Instruction
from kernelviz.machine_code.control_flow import ControlFlow
from kernelviz.machine_code.counting import barrier_kind

_LOADS = frozenset({"LDG", "LD", "LDGSTS", "UBLKCP", "UTMALDG"})
_EXCHANGES = frozenset({"SHFL", "REDUX", "CREDUX"})


def load_passes(flow: ControlFlow, instructions: Sequence[Instruction]) -> int | None:
    """Passes over global memory; 1 if all loads are outside of loops, 0 without loads; None with unknown indirect branches."""
    if flow.indirect_branches_unknown:
        return None
    if not any(_loads(one) for one in instructions):
        return 0
    passes, end = 0, 0
    for blocks in sorted(_loading_loops(flow), key=min):
        first = min(blocks)
        between = (i for i in instructions if end <= i.address < first)
        if passes == 0 or any(map(_exchanges, between)):
            passes += 1
        end = max(end, *(flow.blocks[address].last.address for address in blocks))
    return max(1, passes)


def _loading_loops(flow: ControlFlow) -> list[frozenset[int]]:
    """The blocks of each loop with a load, if no inner loop has one."""
    having = [
        one.blocks for one in flow.loops if any(_loads(i) for a in one.blocks for i in flow.blocks[a].instructions)
    ]
    return [blocks for blocks in having if not any(inner < blocks for inner in having)]


def _loads(instruction: Instruction) -> bool:
    return instruction.mnemonic in _LOADS and not instruction.is_never_executed


def _exchanges(instruction: Instruction) -> bool:
    return instruction.mnemonic in _EXCHANGES or barrier_kind(instruction) in ("block", "cluster")
