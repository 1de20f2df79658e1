"""Count what a region of code consists of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kernelviz.core.machine_code import (
    Access,
    AccessKind,
    AsynchronousCopy,
    BarrierKind,
    CodeFacts,
    CopyKind,
    Instruction,
    MemorySpace,
    OperandSource,
    RegisterChange,
    TensorInstruction,
)
from kernelviz.machine_code.opcodes import class_of

_ACCESSES: dict[str, tuple[MemorySpace, AccessKind]] = {
    "LDG": ("global", "load"),
    "STG": ("global", "store"),
    "ATOMG": ("global", "atomic"),
    "RED": ("global", "atomic"),
    "REDG": ("global", "atomic"),
    "LDGMC": ("global", "load"),
    "REDGMC": ("global", "atomic"),
    "LDS": ("shared", "load"),
    "LDSM": ("shared", "load"),
    "STS": ("shared", "store"),
    "STSM": ("shared", "store"),
    "STAS": ("shared", "store"),
    "ATOMS": ("shared", "atomic"),
    "LDL": ("local", "load"),
    "STL": ("local", "store"),
    "LD": ("generic", "load"),
    "ST": ("generic", "store"),
    "ATOM": ("generic", "atomic"),
}
_BITS = {"256": 256, "128": 128, "96": 96, "64": 64, "32": 32, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
_BITS_ARITHMETIC = {"F64": 64, "U64": 64, "S64": 64, "F16x2": 32, "F16X2": 32, "BF16_V2": 32, "BF16x2": 32}
"""Widths that an atomic's type states."""
_SHORT_SHAPES = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
}
"""M, N and K of mma.sync, as the modifier abbreviates them."""
_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
_COPIES: dict[str, CopyKind] = {
    "LDGSTS": "cp_async",
    "UBLKPF": "bulk_prefetch",
    "UBLKRED": "bulk_reduce",
    "UTMALDG": "tma_load",
    "UTMASTG": "tma_store",
    "UTMAREDG": "tma_reduce",
    "UTMAPF": "tma_prefetch",
}
_BARRIERS: dict[str, BarrierKind] = {
    "BAR": "block",
    "UBAR": "block",
    "UCGABAR_ARV": "cluster",
    "UCGABAR_WAIT": "cluster",
    "WARPSYNC": "warp",
    "WARPGROUP": "warpgroup",
    "ARRIVES": "mbarrier_arrive",
    "UTCBAR": "mbarrier_arrive",
    "DEPBAR": "copy_wait",
    "LDGDEPBAR": "copy_commit",
    "UTMACMDFLUSH": "copy_commit",
    "MEMBAR": "fence",
    "FENCE": "fence",
    "ERRBAR": "fence",
    "CGAERRBAR": "fence",
}
_MBARRIERS: dict[str, BarrierKind] = {
    "EXCH": "mbarrier_init",
    "ARRIVE": "mbarrier_arrive",
    "PHASECHK": "mbarrier_wait",
    "CCTL": "mbarrier_invalidate",
}


def count(instructions: Sequence[Instruction]) -> CodeFacts:
    """The facts of a region: every instruction counts once."""
    live = [i for i in instructions if not i.is_never_executed]
    classes = Counter(class_of(i) for i in instructions)
    stalls = [i.control.stall_cycles for i in instructions if i.control is not None]
    return CodeFacts(
        instructions=len(instructions),
        classes=dict(classes.most_common()),
        tensor=_tensor(i for i in live if class_of(i) == "tensor"),
        accesses=_accesses(live),
        copies=_copies(live),
        barriers=dict(Counter(kind for i in live if (kind := barrier_kind(i))).most_common()),
        special_functions=dict(Counter(i.opcode for i in live if i.mnemonic in ("MUFU", "UMUFU")).most_common()),
        register_changes=tuple(change for i in live if (change := register_change(i))),
        unknown=dict(Counter(i.opcode for i in live if class_of(i) == "unknown").most_common()),
        stall_cycles=sum(stalls) if stalls and len(stalls) == len(instructions) else None,
    )


def barrier_kind(instruction: Instruction) -> BarrierKind | None:
    """What a synchronising instruction does; None for others."""
    if instruction.mnemonic == "SYNCS":
        return next((_MBARRIERS[m] for m in instruction.modifiers if m in _MBARRIERS), None)
    return _BARRIERS.get(instruction.mnemonic)


def register_change(instruction: Instruction) -> RegisterChange | None:
    """The registers a thread has after a setmaxnreg; None for other instructions."""
    if instruction.mnemonic != "USETMAXREG":
        return None
    return RegisterChange(
        address=instruction.address,
        kind="decrease" if "DEALLOC" in instruction.modifiers else "increase",
        registers=int(instruction.operands[-1], 0),
    )


def width_bytes(instruction: Instruction) -> int:
    """Bytes that one thread transfers: 4 unless a modifier says otherwise. A matrix instruction moves 4 bytes for each of its
    one, two or four matrices.

    >>> width_bytes(Instruction(address=0, opcode="LDG.E.128.CONSTANT", encoding=""))
    16
    >>> width_bytes(Instruction(address=0, opcode="LDSM.16.MT88.4", encoding=""))
    16
    """
    if instruction.mnemonic in ("LDSM", "STSM"):
        last = instruction.modifiers[-1] if instruction.modifiers else ""
        return 4 * int(last) if last in ("2", "4") else 4
    known = _BITS | _BITS_ARITHMETIC if "ATOM" in instruction.mnemonic or "RED" in instruction.mnemonic else _BITS
    return next((known[m] for m in instruction.modifiers if m in known), 32) // 8


def tensor_shape(instruction: Instruction) -> tuple[int, int, int] | None:
    """M, N and K of a tensor core instruction; None where they are in a descriptor."""
    for modifier in instruction.modifiers:
        if modifier in _SHORT_SHAPES:
            return _SHORT_SHAPES[modifier]
        if match := _SHAPE.fullmatch(modifier):
            m, n, k = map(int, match.groups())
            return m, n, k
    return None


def operand_sources(instruction: Instruction) -> tuple[OperandSource | None, OperandSource | None]:
    """Where a tensor core instruction reads A and B from.

    wgmma names its result first, then A if it is in registers, then the descriptors of
    shared memory. tcgen05.mma names A, then B.
    """
    operands = instruction.operands
    if instruction.mnemonic.startswith("UTC"):
        a, b = (*map(_source, operands[:2]), None, None)[:2]
        return a, b
    if instruction.mnemonic.endswith("GMMA"):
        return (_source(operands[1]) if len(operands) > 1 else None), "shared_memory"
    return "registers", "registers"


def _source(operand: str) -> OperandSource | None:
    if operand.startswith(("gdesc", "desc")):
        return "shared_memory"
    if operand.startswith("tmem"):
        return "tensor_memory"
    return "registers" if re.match(r"[-~|]?R(\d|Z)", operand) else None


def _tensor(instructions: Iterable[Instruction]) -> tuple[TensorInstruction, ...]:
    kinds = Counter((i.opcode, tensor_shape(i), *operand_sources(i)) for i in instructions)
    return tuple(
        TensorInstruction(opcode=opcode, shape=shape, a_source=a, b_source=b, count=n)
        for (opcode, shape, a, b), n in kinds.most_common()
    )


def memory_access(instruction: Instruction) -> tuple[MemorySpace, AccessKind, int] | None:
    """The memory that an instruction accesses, how, and the bytes that one thread transfers; None for other instructions.

    >>> memory_access(Instruction(address=0, opcode="STG.E.128", encoding=""))
    ('global', 'store', 16)
    """
    known = _ACCESSES.get(instruction.mnemonic)
    return None if known is None else (*known, width_bytes(instruction))


def copy_kind(instruction: Instruction) -> CopyKind | None:
    """What an asynchronous copy copies; None for other instructions."""
    return _bulk_kind(instruction) if instruction.mnemonic == "UBLKCP" else _COPIES.get(instruction.mnemonic)


def _accesses(instructions: Iterable[Instruction]) -> tuple[Access, ...]:
    kinds = Counter(access for i in instructions if (access := memory_access(i)))
    return tuple(
        Access(space=space, kind=kind, width_bytes=width, count=n) for (space, kind, width), n in sorted(kinds.items())
    )


def _copies(instructions: Iterable[Instruction]) -> tuple[AsynchronousCopy, ...]:
    kinds: Counter[tuple[CopyKind, bool, int | None]] = Counter()
    for i in instructions:
        kind = copy_kind(i)
        if kind is not None:
            kinds[kind, "MULTICAST" in i.modifiers, width_bytes(i) if kind == "cp_async" else None] += 1
    return tuple(
        AsynchronousCopy(kind=kind, multicast=multicast, width_bytes=width, count=n)
        for (kind, multicast, width), n in kinds.most_common()
    )


def _bulk_kind(instruction: Instruction) -> CopyKind:
    """The modifiers of UBLKCP name the destination, then the source: shared (S), global (G), another block's memory (SX, C)."""
    ends = [m for m in instruction.modifiers if m in ("S", "G", "SX", "C")]
    if ends[:1] == ["G"]:
        return "bulk_store"
    return "bulk_load" if ends[-1:] == ["G"] else "bulk_between_blocks"
