"""What differs between the machine code of two cases, the likeliest cause of the measured difference first.

The order of `_CAUSES` was derived from pairs of kernels that were explained by reading their SASS (docs/why.md, and
tests/machine_code/test_code_changes.py): a change that is further left was the reason in a pair that also had changes further
right. A change can be the reason only if it favours the side that is faster: a kernel with more occupancy can be slower all the
same, because L2 limits it (scatter_add), and one that loses cp.async can be faster, because it reads its data once (softmax).

Small differences are listed, but no cause: `_LEAST` of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from kernelviz.core import Result
from kernelviz.core.code_changes import (
    AccessWidthChange,
    ArchitectureChange,
    AtomicsChange,
    BarriersChange,
    CodeChange,
    CodeChanges,
    CodeSide,
    CompilerChange,
    CopiesChange,
    Explains,
    InstructionsChange,
    KernelCountChange,
    LaunchChange,
    OccupancyChange,
    PassesChange,
    RankedChange,
    RegistersChange,
    SectorsChange,
    SharedLayoutChange,
    SharedMemoryChange,
    SharedStagingChange,
    SpillsChange,
    TechniqueChange,
    TensorChange,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.machine_code import architecture_number
from kernelviz.metrics import code_work as work
from kernelviz.metrics.counters import call_counters
from kernelviz.metrics.figures import Headline, figure_of

_CAUSES: tuple[type, ...] = (
    SectorsChange,
    TrafficChange,
    SpillsChange,
    AtomicsChange,
    KernelCountChange,
    TensorChange,
    PassesChange,
    SharedStagingChange,
    WarpRolesChange,
    CopiesChange,
    TechniqueChange,
    AccessWidthChange,
    TensorShapeChange,
    InstructionsChange,
    BarriersChange,
    OccupancyChange,
    WavesChange,
    SharedLayoutChange,
)
"""What can be the reason of a difference, the likeliest first. Measured traffic comes before what machine code lets expect."""
_NO_CAUSES: tuple[type, ...] = (ArchitectureChange, CompilerChange, RegistersChange, SharedMemoryChange, LaunchChange)
"""What is no reason by itself, in the order of a list."""
_ORDER = {kind: number for number, kind in enumerate((*_CAUSES, *_NO_CAUSES))}
_LEAST: dict[type, float] = {
    SectorsChange: 0.25,
    TrafficChange: 0.1,
    InstructionsChange: 0.1,
    OccupancyChange: 0.1,
    WavesChange: 0.1,
}
"""The least difference, as a fraction of the smaller value, that can be a reason. A kernel that issues 6 % fewer instructions
(w4a16_matmul, cuda_mma and cuda_mma_shuffled) is not faster by it."""
_LEAST_UTILISATION, _LEAST_INSTRUCTIONS = 0.01, 0.02
"""Smaller differences are not listed."""
MOST_PADDING = 0.25
"""A row of 8 elements with a padding of 2 has a quarter more; rows of 32 elements with one have 3 %."""


def code_changes(a: CaseFacts, b: CaseFacts, *, headline: Headline = "cold") -> CodeChanges:
    """The changes from A to B. Which side is faster is read from their times, by `headline`: one is if the intervals do not
    overlap. A comparison that has a verdict passes it to `ranked` instead."""
    return ranked(a, b, faster_side(a.result, b.result, headline))


def faster_side(a: Result, b: Result, headline: Headline = "cold") -> CodeSide | None:
    """The side whose whole interval is below the other's; None if they overlap, or if a time or an interval is not known."""
    first, second = figure_of(a.timing, headline), figure_of(b.timing, headline)
    if first is None or second is None or None in (first.low, first.high, second.low, second.high):
        return None
    assert first.low is not None and first.high is not None  # noqa: PT018
    assert second.low is not None and second.high is not None  # noqa: PT018
    return "a" if first.high < second.low else "b" if second.high < first.low else None


def ranked(a: CaseFacts, b: CaseFacts, faster: CodeSide | None) -> CodeChanges:
    """The changes from A to B, where `faster` is the faster side; None: neither is, or it is not known."""
    digests = [sorted(kernel.digest for kernel in case.kernels) for case in (a, b)]
    same = bool(digests[0]) and digests[0] == digests[1]
    pairs = kernel_pairs(a, b)
    changes = [*_of_calls(a.result, b.result), *(change for pair in pairs for change in _of_pair(*pair, same))]
    listed = [RankedChange(change=change, explains=_explains(change, faster, pairs)) for change in changes]
    groups: tuple[Explains, ...] = ("can", "neutral", "against")
    listed.sort(key=lambda one: (groups.index(one.explains) if faster else 0, _ORDER[type(one.change)]))
    main = pairs[0] if pairs else None
    return CodeChanges(
        changes=tuple(listed),
        faster=faster,
        same_code=same,
        a_missing=a.reason,
        b_missing=b.reason,
        a_kernel=main[0].facts.name if main else None,
        b_kernel=main[1].facts.name if main else None,
    )


def kernel_pairs(a: CaseFacts, b: CaseFacts) -> list[tuple[KernelOfCase, KernelOfCase, bool]]:
    """The kernels that are compared, and whether these are the main ones, which come first: those that take the longest. After
    them the other kernels of the same name, in their order."""
    if not a.kernels or not b.kernels:
        return []
    first, second = main_kernel(a), main_kernel(b)
    rest_a = [k for k in a.kernels if k is not first]
    rest_b = [k for k in b.kernels if k is not second]
    pairs = [(first, second, True)]
    for kernel in rest_a:
        other = next((k for k in rest_b if k.facts.name == kernel.facts.name), None)
        if other is not None:
            rest_b.remove(other)
            pairs.append((kernel, other, False))
    return pairs


def main_kernel(case: CaseFacts) -> KernelOfCase:
    """The kernel that takes the longest; without times, the one with the most instructions of all its threads."""
    durations: dict[str, float] = {}
    for traced in case.result.kernels:
        durations[traced.name] = max(durations.get(traced.name, 0.0), traced.duration_s or 0.0)

    def weight(kernel: KernelOfCase) -> tuple[float, int]:
        threads = prod(kernel.grid or (1,)) * (kernel.threads or 1)
        return durations.get(kernel.facts.name, 0.0), threads * kernel.facts.whole.executable

    return max(case.kernels, key=weight)


def _explains(
    change: CodeChange, faster: CodeSide | None, pairs: list[tuple[KernelOfCase, KernelOfCase, bool]]
) -> Explains:
    if faster is None or change.favours is None:
        return "neutral"
    if change.favours != faster:
        return "against"
    if type(change) not in _CAUSES or change.kernel or _is_small(change):
        return "neutral"
    # A few warps keep tensor cores busy: the fastest products have an occupancy of 12 to 25 %, because tiles fill shared memory.
    if isinstance(change, OccupancyChange) and pairs and all(work.tensor_kind(k) for k in pairs[0][:2]):
        return "neutral"
    return "can"


def _is_small(change: CodeChange) -> bool:
    least = _LEAST.get(type(change))
    match change:
        case InstructionsChange():
            low, high = sorted((change.a, change.b))
        case SectorsChange() | TrafficChange():
            low, high = sorted((change.a_bytes, change.b_bytes))
        case OccupancyChange():
            low, high = sorted((change.a_fraction, change.b_fraction))
        case WavesChange():
            low, high = sorted((change.a.utilisation, change.b.utilisation))
        case _:
            return False
    return least is not None and low > 0 and high / low - 1 < least


def _less(a: float, b: float) -> CodeSide:
    """The side with the smaller of two different values."""
    return "a" if a < b else "b"


def _more(a: float, b: float) -> CodeSide:
    return "b" if a < b else "a"


def _of_calls(a: Result, b: Result) -> Iterator[CodeChange]:
    """Changes that are known without machine code: the compiler, the number of kernels, and counters."""
    compilers = [_compilers(result) for result in (a, b)]
    if a.variant == b.variant and all(compilers) and compilers[0] != compilers[1]:
        yield CompilerChange(a=compilers[0], b=compilers[1])
    if a.kernels and b.kernels and len(a.kernels) != len(b.kernels):
        first, second = len(a.kernels), len(b.kernels)
        yield KernelCountChange(a=first, b=second, favours=_less(first, second))
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


def _of_pair(a: KernelOfCase, b: KernelOfCase, main: bool, same_code: bool) -> Iterator[CodeChange]:
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
    if passes[0] and passes[1] and passes[0] != passes[1]:
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
    for technique in ("cluster", "multicast"):
        has = [technique in work.cluster_techniques(k) for k in (a, b)]
        if has[0] != has[1]:
            only: CodeSide = "a" if has[0] else "b"
            yield TechniqueChange(technique=technique, only=only, favours=only, kernel=kernel)
    yield from _widths(a, b, kernel)
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
    for space in work.SPACES:
        by_widths: dict[tuple[int, int], list[work.LoadOrStore]] = {}
        for access in work.LOADS_AND_STORES:
            first, second = work.usual_width(a, space, access), work.usual_width(b, space, access)
            if first is not None and second is not None and first != second:
                by_widths.setdefault((first, second), []).append(access)
        for (first, second), accesses in by_widths.items():
            yield AccessWidthChange(
                space=space,
                accesses=tuple(accesses),
                a_bytes=first,
                b_bytes=second,
                favours=_more(first, second),
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


def _shared_memory(a: KernelOfCase, b: KernelOfCase, kernel: str) -> Iterator[CodeChange]:
    if a.shared_bytes is None or b.shared_bytes is None:
        return
    staged = work.stages_in_shared_memory(a), work.stages_in_shared_memory(b)
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
