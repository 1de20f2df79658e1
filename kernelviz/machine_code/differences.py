"""Which facts about two kernels differ: two compilers of one kernel, or two variants of one op.

Each warp role of A is compared with the role of B at the same place in the code. Where the numbers of roles differ, no role has a
counterpart, and the whole kernels are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kernelviz.core.machine_code import (
    AccessType,
    CodeFacts,
    CopyType,
    FactDifference,
    FactKind,
    FactValue,
    KernelFacts,
    Region,
    WarpRole,
)
from kernelviz.machine_code.techniques import techniques_of

_Detail = str | AccessType | CopyType


def fact_differences(a: KernelFacts, b: KernelFacts) -> tuple[FactDifference, ...]:
    """What differs between two kernels: resources first, then techniques, then what an iteration of the main loop consists of
    (of the whole body where there is no loop), then the whole kernel. Empty for equal facts."""
    return tuple(d for d in _all(a, b) if d.a != d.b)


def _all(a: KernelFacts, b: KernelFacts) -> Iterator[FactDifference]:
    yield _kernel("architecture", a.architecture, b.architecture)
    yield _kernel("registers", a.registers, b.registers)
    yield _kernel("stack_bytes", a.stack_bytes, b.stack_bytes)
    yield _kernel("local_stores", a.spill_stores, b.spill_stores)
    yield _kernel("local_loads", a.spill_loads, b.spill_loads)
    yield _kernel("static_shared_bytes", a.static_shared_bytes, b.static_shared_bytes)
    yield _kernel("warp_roles", len(a.roles), len(b.roles))
    first, second = techniques_of(a), techniques_of(b)
    for technique in sorted(first | second):
        yield _kernel("technique", technique in first, technique in second, technique)
    if len(a.roles) == len(b.roles):
        for number, (role_a, role_b) in enumerate(zip(a.roles, b.roles, strict=True), start=1):
            yield from _roles(role_a, role_b, number)
    else:
        for fact, detail, first_count, second_count in _counted(a.whole, b.whole):
            yield _kernel(fact, first_count, second_count, detail)
    yield _kernel("instructions", a.whole.executable, b.whole.executable)


def _kernel(fact: FactKind, a: FactValue, b: FactValue, detail: _Detail = "") -> FactDifference:
    return FactDifference(region="kernel", fact=fact, detail=detail, a=a, b=b)


def _roles(a: WarpRole, b: WarpRole, number: int) -> Iterator[FactDifference]:
    def of(fact: FactKind, of_a: FactValue, of_b: FactValue, detail: _Detail = "") -> FactDifference:
        return FactDifference(region=region, role=number, fact=fact, detail=detail, a=of_a, b=of_b)

    region: Region = "main_loop" if a.main_loop and b.main_loop else "body"
    yield of("has_loop", a.main_loop is not None, b.main_loop is not None)
    yield of("registers", a.registers, b.registers)
    if (a.main_loop is None) is not (b.main_loop is None):
        return  # an iteration and a whole body cannot be compared
    first, second = a.work, b.work
    yield of("instructions", first.executable, second.executable)
    yield of("stall_cycles", first.stall_cycles, second.stall_cycles)
    for fact, detail, first_count, second_count in _counted(first, second):
        yield of(fact, first_count, second_count, detail)


def _counted(a: CodeFacts, b: CodeFacts) -> Iterator[tuple[FactKind, _Detail, int, int]]:
    """What is counted in either of two regions, with both counts."""
    for fact, counts_a, counts_b in zip(_COUNTED, _counts(a), _counts(b), strict=True):
        for detail in dict.fromkeys((*counts_a, *counts_b)):
            yield fact, detail, counts_a.get(detail, 0), counts_b.get(detail, 0)


_COUNTED: tuple[FactKind, ...] = (
    "tensor_instruction",
    "access",
    "copy",
    "barrier",
    "special_function",
    "instruction_class",
)


def _counts(work: CodeFacts) -> tuple[Mapping[_Detail, int], ...]:
    """The counts of each kind in _COUNTED, by what is counted."""
    accesses: Counter[_Detail] = Counter()
    for access in work.accesses:
        accesses[AccessType(space=access.space, kind=access.kind, width_bytes=access.width_bytes)] += access.count
    copies: Counter[_Detail] = Counter()
    for copy in work.copies:
        copies[CopyType(kind=copy.kind, multicast=copy.multicast, width_bytes=copy.width_bytes)] += copy.count
    tensor: Counter[_Detail] = Counter()
    for instruction in work.tensor:
        tensor[instruction.opcode] += instruction.count
    classes = Counter[_Detail]({kind: n for kind, n in work.classes.items() if kind != "no_operation"})
    return tensor, accesses, copies, Counter(work.barriers), Counter(work.special_functions), classes
