"""Detect what differs between two calls and between two kernels of them. `metrics.code_changes` ranks the changes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from msgspec.structs import replace

from kernelviz.core import Kernel, Result
from kernelviz.core.code_changes import (
    AccessWidthChange,
    ArchitectureChange,
    AtomicsChange,
    BarriersChange,
    BusyMultiprocessorsChange,
    CodeChange,
    CodeSide,
    CompilerChange,
    CopiesChange,
    InstructionsChange,
    KernelCountChange,
    LaunchChange,
    OccupancyChange,
    PassesChange,
    RegistersChange,
    SectorsChange,
    SharedLayoutChange,
    SharedMemoryChange,
    SharedStagingChange,
    SpillsChange,
    StoresChange,
    TechniqueChange,
    TensorChange,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.machine_code import Technique, architecture_number
from kernelviz.metrics import code_work as work
from kernelviz.metrics.counters import call_counters

_LEAST_UTILISATION, _LEAST_INSTRUCTIONS = 0.01, 0.02
"""Smaller differences are not listed."""
MOST_PADDING = 0.25
"""A row of 8 elements with a padding of 2 has a quarter more; rows of 32 elements with one have 3 %."""
_OF_CLUSTERS: tuple[Technique, ...] = ("cluster", "multicast")


def _less(a: float, b: float) -> CodeSide:
    """The side with the smaller of two different values."""
    return "a" if a < b else "b"


def _more(a: float, b: float) -> CodeSide:
    return "b" if a < b else "a"


def of_calls(a_case: CaseFacts, b_case: CaseFacts) -> Iterator[CodeChange]:
    """Changes that are known without machine code: the compiler, the launches, and counters."""
    a, b = a_case.result, b_case.result
    compilers = [_compilers(result) for result in (a, b)]
    if a.variant == b.variant and all(compilers) and compilers[0] != compilers[1]:
        yield CompilerChange(a=compilers[0], b=compilers[1])
    if a.kernels and b.kernels and len(a.kernels) != len(b.kernels):
        first, second = len(a.kernels), len(b.kernels)
        yield KernelCountChange(a=first, b=second, favours=_less(first, second))
    yield from _busy_multiprocessors(a_case, b_case)
    counters_a, counters_b = call_counters(a.hardware_counters), call_counters(b.hardware_counters)
    if counters_a is None or counters_b is None:
        return
    moved_a, moved_b = counters_a.dram_bytes, counters_b.dram_bytes
    if moved_a is not None and moved_b is not None and moved_a != moved_b:
        yield TrafficChange(a_bytes=moved_a, b_bytes=moved_b, favours=_less(moved_a, moved_b))
    touched_a, touched_b = counters_a.sector_bytes, counters_b.sector_bytes
    if touched_a is not None and touched_b is not None and touched_a != touched_b:
        yield SectorsChange(a_bytes=touched_a, b_bytes=touched_b, favours=_less(touched_a, touched_b))


def _compilers(result: Result) -> str:
    """The compilers of the case with their versions; empty if no code was captured."""
    return ", ".join(sorted({f"{one.compiler} {one.version}" for one in result.code or () if one.version}))


def of_pair(a: KernelOfCase, b: KernelOfCase, main: bool, same_code: bool) -> Iterator[CodeChange]:
    """Changes between two kernels."""
    kernel = "" if main else a.facts.name
    if not same_code:
        yield from _of_code(a, b, kernel)
    yield from _of_launch(a, b, kernel)


def _of_code(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    # sm_90a is sm_90 with instructions of this architecture alone.
    if architecture_number(a.facts.architecture) != architecture_number(b.facts.architecture):
        yield ArchitectureChange(a=a.facts.architecture, b=b.facts.architecture, kernel=kernel)
    spills, other = work.spills(a), work.spills(b)
    if spills.whole != other.whole:
        inside = spills.of_iteration, other.of_iteration
        counts = inside if None not in inside and inside[0] != inside[1] else (spills.whole, other.whole)
        yield SpillsChange(
            a=spills.whole,
            b=other.whole,
            a_of_iteration=spills.of_iteration,
            b_of_iteration=other.of_iteration,
            favours=_less(counts[0] or 0, counts[1] or 0),
            kernel=kernel,
        )
    yield from _atomics(a, b, kernel)
    yield from _tensor(a, b, kernel)
    passes = a.facts.load_passes, b.facts.load_passes
    # A product with parts along K loads its factors in one loop, and the sums of the parts in another.
    multiplies = work.tensor_kind(a) or work.tensor_kind(b)
    if passes[0] and passes[1] and passes[0] != passes[1] and not multiplies:
        yield PassesChange(a=passes[0], b=passes[1], favours=_less(passes[0], passes[1]), kernel=kernel)
    roles = work.roles(a), work.roles(b)
    if roles[0] != roles[1] and max(map(len, roles)) > 1:
        several = [len(side) > 1 for side in roles]
        favours: CodeSide | None = None if several[0] == several[1] else "a" if several[0] else "b"
        yield WarpRolesChange(a=roles[0], b=roles[1], favours=favours, kernel=kernel)
    copies = work.copies(a), work.copies(b)
    if copies[0] != copies[1]:
        rank = [work.COPY_RANK[max(c, key=work.COPY_RANK.__getitem__)] if c else 0 for c in copies]
        better = None if rank[0] == rank[1] else _more(rank[0], rank[1])
        yield CopiesChange(a=copies[0], b=copies[1], favours=better, kernel=kernel)
    for technique in _OF_CLUSTERS:
        has = [technique in work.cluster_techniques(k) for k in (a, b)]
        if has[0] != has[1]:
            only: CodeSide = "a" if has[0] else "b"
            yield TechniqueChange(technique=technique, only=only, favours=only, kernel=kernel)
    yield from _widths(a, b, kernel)
    yield from _stores(a, b, kernel)
    for basis in work.BASES if _same_regions(a, b) else ():
        first, second = work.instructions_per(a, basis), work.instructions_per(b, basis)
        if first is not None and second is not None and abs(first / second - 1) >= _LEAST_INSTRUCTIONS:
            yield InstructionsChange(basis=basis, a=first, b=second, favours=_less(first, second), kernel=kernel)
            break
    barriers = work.block_barriers(a), work.block_barriers(b)
    if barriers[0] is not None and barriers[1] is not None and barriers[0] != barriers[1]:
        yield BarriersChange(a=barriers[0], b=barriers[1], favours=_less(barriers[0], barriers[1]), kernel=kernel)
    if a.facts.registers is not None and b.facts.registers is not None and a.facts.registers != b.facts.registers:
        yield RegistersChange(a=a.facts.registers, b=b.facts.registers, kernel=kernel)


def _same_regions(a: KernelOfCase, b: KernelOfCase) -> bool:
    """Whether the work of both is an iteration, or of both the whole code, of as many passes over the data."""
    return (a.role.main_loop is None) is (b.role.main_loop is None) and a.facts.load_passes == b.facts.load_passes


def _atomics(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    first, second = work.atomics(a), work.atomics(b)
    if first == second:
        return
    favours: CodeSide | None = None
    if bool(first.of_global) != bool(second.of_global):
        favours = "b" if first.of_global else "a"
    elif bool(first.of_shared) != bool(second.of_shared):  # partial results in shared memory
        favours = "a" if first.of_shared else "b"
    yield AtomicsChange(
        a_global=first.of_global,
        b_global=second.of_global,
        a_shared=first.of_shared,
        b_shared=second.of_shared,
        favours=favours,
        kernel=kernel,
    )


def _tensor(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    first, second = work.tensor_kind(a), work.tensor_kind(b)
    if first != second:
        favours = _more(work.TENSOR_RANK[first], work.TENSOR_RANK[second])
        yield TensorChange(a=first, b=second, favours=favours, kernel=kernel)
        return
    shapes = work.tensor_shape(a), work.tensor_shape(b)
    if first and shapes[0] and shapes[1] and shapes[0] != shapes[1]:
        sizes = prod(shapes[0]), prod(shapes[1])
        larger = None if sizes[0] == sizes[1] else _more(*sizes)
        yield TensorShapeChange(tensor=first, a=shapes[0], b=shapes[1], favours=larger, kernel=kernel)


def _widths(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    """Widths of global and of shared accesses; loads and stores in one change if both have the same widths."""
    staged = work.stages_in_shared_memory(a) and work.stages_in_shared_memory(b)
    for space in work.SPACES:
        if space == "shared" and not staged:
            continue  # a reduction exchanges few bytes
        by_widths: dict[tuple[int, int, bool], list[work.LoadOrStore]] = {}
        for access in work.LOADS_AND_STORES:
            first, second = work.usual_width(a, space, access), work.usual_width(b, space, access)
            if first is not None and second is not None and first.bytes != second.bytes:
                around = not (first.in_work and second.in_work)
                by_widths.setdefault((first.bytes, second.bytes, around), []).append(access)
        for (first_bytes, second_bytes, around), accesses in by_widths.items():
            yield AccessWidthChange(
                space=space,
                accesses=tuple(accesses),
                a_bytes=first_bytes,
                b_bytes=second_bytes,
                outside_main=around,
                favours=_more(first_bytes, second_bytes),
                kernel=kernel,
            )


def _stores(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    first, second = work.store_technique(a), work.store_technique(b)
    if first == second:
        return
    rank = [work.COPY_RANK[one] if one else 0 for one in (first, second)]
    widths = [work.usual_width(k, "global", "store") for k in (a, b)]
    yield StoresChange(
        a=first,
        b=second,
        a_bytes=widths[0].bytes if widths[0] else None,
        b_bytes=widths[1].bytes if widths[1] else None,
        favours=_more(*rank),
        kernel=kernel,
    )


def _of_launch(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    yield from _shared_memory(a, b, kernel)
    if a.occupancy is not None and b.occupancy is not None and a.occupancy.fraction != b.occupancy.fraction:
        yield OccupancyChange(
            a_fraction=a.occupancy.fraction,
            b_fraction=b.occupancy.fraction,
            a_limited_by=a.occupancy.limited_by,
            b_limited_by=b.occupancy.limited_by,
            favours=_more(a.occupancy.fraction, b.occupancy.fraction),
            kernel=kernel,
        )
    if a.waves is not None and b.waves is not None:
        used = a.waves.utilisation, b.waves.utilisation
        if abs(used[0] - used[1]) >= _LEAST_UTILISATION:
            yield WavesChange(a=a.waves, b=b.waves, favours=_more(*used), kernel=kernel)
    blocks = [prod(k.grid) if k.grid else None for k in (a, b)]
    if blocks[0] != blocks[1] or a.threads != b.threads:
        yield LaunchChange(
            a_blocks=blocks[0], b_blocks=blocks[1], a_threads=a.threads, b_threads=b.threads, kernel=kernel
        )


def _busy_multiprocessors(a: CaseFacts, b: CaseFacts) -> Iterator[CodeChange]:
    """By the launches of the kernels that take the longest."""
    longest = longest_kernel(a.result), longest_kernel(b.result)
    if longest[0] is None or longest[1] is None or not (longest[0].grid and longest[1].grid):
        return
    if not a.multiprocessors or not b.multiprocessors:
        return
    change = BusyMultiprocessorsChange(
        a_blocks=prod(longest[0].grid),
        b_blocks=prod(longest[1].grid),
        a_multiprocessors=a.multiprocessors,
        b_multiprocessors=b.multiprocessors,
    )
    if change.a_fraction != change.b_fraction:
        yield replace(change, favours=_more(change.a_fraction, change.b_fraction))


def longest_kernel(result: Result) -> Kernel | None:
    """The traced kernel that takes the longest; None if none was traced."""
    return max(result.kernels, key=lambda k: k.duration_s or 0.0, default=None)


def _shared_memory(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    if a.shared_bytes is None or b.shared_bytes is None:
        return
    staged = work.stages_in_shared_memory(a), work.stages_in_shared_memory(b)
    if staged[0] is None or staged[1] is None:
        return
    if staged[0] != staged[1]:
        side: CodeSide = "a" if staged[0] else "b"
        kernel_of = a if staged[0] else b
        uses = work.shared_uses(kernel_of)
        yield SharedStagingChange(
            staged=side,
            bytes=kernel_of.shared_bytes or 0,
            loads=uses.loads,
            stores=uses.stores,
            barriers=uses.barriers,
            favours=side,
            kernel=kernel,
        )
    elif a.shared_bytes != b.shared_bytes:
        low, high = sorted((a.shared_bytes, b.shared_bytes))
        if staged[0] and work.same_accesses(a, b) and high <= low * (1 + MOST_PADDING):
            yield SharedLayoutChange(
                a_bytes=a.shared_bytes,
                b_bytes=b.shared_bytes,
                favours=_more(a.shared_bytes, b.shared_bytes),
                kernel=kernel,
            )
        else:
            statics = [k.facts.own_shared_bytes for k in (a, b)]
            yield SharedMemoryChange(
                a_bytes=a.shared_bytes, b_bytes=b.shared_bytes, a_static=statics[0], b_static=statics[1], kernel=kernel
            )
