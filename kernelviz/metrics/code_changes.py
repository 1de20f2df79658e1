"""What differs between the machine code of two cases, the likeliest cause of the measured difference first.

The order of `_CAUSES` was derived from pairs of kernels that were explained by reading their SASS (docs/why.md, and
tests/machine_code/test_code_changes.py): a change that is further left was the reason in a pair that also had changes further
right. A change can be the reason only if it favours the side that is faster: a kernel with more occupancy can be slower all the
same, because L2 limits it (scatter_add), and one that loses cp.async can be faster, because it reads its data once (softmax).

Small differences are listed, but no cause: `_LEAST` of each kind. A kernel less is a cause only if it explains enough of the
difference of cold times, `_LEAST_OF_DIFFERENCE`, and never one of warm times, for which the kernels are not timed.
"""

from __future__ import annotations

import re
from math import prod

import msgspec

from kernelviz.core import Result
from kernelviz.core.code_changes import (
    AccessWidthChange,
    ArchitectureChange,
    AtomicsChange,
    BarriersChange,
    BusyMultiprocessorsChange,
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
    StoresChange,
    TechniqueChange,
    TensorChange,
    TensorShapeChange,
    TrafficChange,
    WarpRolesChange,
    WavesChange,
)
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.metrics import code_work as work
from kernelviz.metrics.code_comparison import longest_kernel, of_calls, of_pair
from kernelviz.metrics.figures import Headline, figure_of

_CAUSES: tuple[type, ...] = (
    SectorsChange,
    TrafficChange,
    SpillsChange,
    AtomicsChange,
    KernelCountChange,
    BusyMultiprocessorsChange,
    TensorChange,
    PassesChange,
    SharedStagingChange,
    CopiesChange,
    WarpRolesChange,
    TechniqueChange,
    AccessWidthChange,
    TensorShapeChange,
    StoresChange,
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
    BusyMultiprocessorsChange: 0.25,
    InstructionsChange: 0.1,
    OccupancyChange: 0.1,
    WavesChange: 0.1,
}
"""The least difference, as a fraction of the smaller value, that can be a reason. A kernel that issues 6 % fewer instructions
(w4a16_matmul, cuda_mma and cuda_mma_shuffled) is not faster by it."""
_LEAST_OF_DIFFERENCE = 0.5
"""The share of the difference of two times that the other kernels and launches must explain, so that their number can be the
reason. A 4-bit product of one row (w4a16_matmul, triton_fused) is slower by 33 µs, of which a second kernel takes 1.4 µs."""
_OTHER_NAME = re.compile(r"^[ab](?=_|$)")
"""What is swapped in the name of a field of one side: ``a``, or ``a_bytes``."""
_SIDES = frozenset({"favours", "staged", "only"})
OTHER_SIDE: dict[CodeSide, CodeSide] = {"a": "b", "b": "a"}


def code_changes(a: CaseFacts, b: CaseFacts, *, headline: Headline = "cold") -> CodeChanges:
    """The changes from A to B. Which side is faster is read from their times, by `headline`: one is if the intervals do not
    overlap. A comparison that has a verdict passes it to `ranked` instead."""
    return ranked(a, b, faster_side(a.result, b.result, headline), headline=headline)


def faster_side(a: Result, b: Result, headline: Headline = "cold") -> CodeSide | None:
    """The side whose whole interval is below the other's; None if they overlap, or if a time or an interval is not known."""
    first, second = figure_of(a.timing, headline), figure_of(b.timing, headline)
    if first is None or second is None or None in (first.low, first.high, second.low, second.high):
        return None
    assert first.low is not None and first.high is not None  # noqa: PT018
    assert second.low is not None and second.high is not None  # noqa: PT018
    return "a" if first.high < second.low else "b" if second.high < first.low else None


def ranked(a: CaseFacts, b: CaseFacts, faster: CodeSide | None, *, headline: Headline = "cold") -> CodeChanges:
    """The changes from A to B, where `faster` is the faster side by `headline`; None: neither is, or it is not known."""
    # A file may hold the kernels of several variants.
    kernels = [sorted((kernel.digest, kernel.facts.name) for kernel in case.kernels) for case in (a, b)]
    same = bool(kernels[0]) and kernels[0] == kernels[1]
    pairs = kernel_pairs(a, b)
    changes = [*of_calls(a, b), *(change for pair in pairs for change in of_pair(*pair, same))]
    # Each kernel is timed with flushed caches only, so that nobody knows what it takes of a warm time.
    main_only = headline != "cold" or _longest_kernels_explain(a.result, b.result)
    listed = [RankedChange(change=change, explains=_explains(change, faster, pairs, main_only)) for change in changes]
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
        a_library_kernel=library_kernel(a),
        b_library_kernel=library_kernel(b),
    )


def listed_changes(changes: CodeChanges) -> tuple[RankedChange, ...]:
    """The changes in the order of a list that may be cut. Without a cause, those that usually change the time most come first,
    whichever side they favour, so that the list begins with what a reader would look for."""
    if changes.cause is not None or changes.faster is None:
        return changes.changes
    return tuple(sorted(changes.changes, key=lambda one: _ORDER[type(one.change)]))


def kernel_pairs(a: CaseFacts, b: CaseFacts) -> list[tuple[KernelOfCase, KernelOfCase, bool]]:
    """The kernels that are compared, and whether these are the main ones, which come first: those that take the longest. After
    them the other kernels of the same name, in their order."""
    if not a.kernels or not b.kernels or library_kernel(a) or library_kernel(b):
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


def library_kernel(case: CaseFacts) -> str | None:
    """The name of the kernel that takes the longest, if only other kernels of the call have machine code: torch.compile calls a
    library's product and compiles what follows it. None without machine code at all, and where no traced kernel has its name."""
    names = {kernel.facts.name for kernel in case.kernels}
    longest = longest_kernel(case.result)
    if longest is None or longest.name in names or not names & {k.name for k in case.result.kernels}:
        return None
    return longest.name


def main_kernel(case: CaseFacts) -> KernelOfCase:
    """The kernel that takes the longest; without times, the one with the most instructions of all its threads."""
    durations: dict[str, float] = {}
    for traced in case.result.kernels:
        durations[traced.name] = max(durations.get(traced.name, 0.0), traced.duration_s or 0.0)

    def weight(kernel: KernelOfCase) -> tuple[float, int]:
        threads = prod(kernel.grid or (1,)) * (kernel.threads or 1)
        return durations.get(kernel.facts.name, 0.0), threads * kernel.facts.whole.executable

    return max(case.kernels, key=weight)


def _longest_kernels_explain(a: Result, b: Result) -> bool:
    """Whether the longest kernels of two calls explain most of the difference of their times, so that the other kernels and the
    launches cannot be its reason. False if times or kernels are not known."""
    first, second = _time_and_rest(a), _time_and_rest(b)
    if first is None or second is None:
        return False
    difference = first[0] - second[0]
    return difference != 0 and (first[1] - second[1]) / difference < _LEAST_OF_DIFFERENCE


def _time_and_rest(result: Result) -> tuple[float, float] | None:
    """The cold time of a call, and what of it is outside of its longest kernel, in seconds; None if one of them is not known."""
    figure, longest = figure_of(result.timing, "cold"), longest_kernel(result)
    if figure is None or longest is None or longest.duration_s is None:
        return None
    return figure.estimate, figure.estimate - longest.duration_s


def _explains(
    change: CodeChange,
    faster: CodeSide | None,
    pairs: list[tuple[KernelOfCase, KernelOfCase, bool]],
    main_only: bool,
) -> Explains:
    if faster is None or change.favours is None:
        return "neutral"
    if change.favours != faster:
        return "against"
    if type(change) not in _CAUSES or change.kernel or _is_small(change):
        return "neutral"
    if isinstance(change, AccessWidthChange) and change.outside_main:
        return "neutral"
    if isinstance(change, KernelCountChange) and main_only:
        return "neutral"
    if isinstance(change, SpillsChange) and change.a_of_iteration == 0 == change.b_of_iteration:
        return "neutral"  # each thread has them once, before or behind its loop
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
        case OccupancyChange() | BusyMultiprocessorsChange():
            low, high = sorted((change.a_fraction, change.b_fraction))
        case WavesChange():
            low, high = sorted((change.a.utilisation, change.b.utilisation))
        case _:
            return False
    return least is not None and low > 0 and high / low - 1 < least


def mirrored(change: CodeChange) -> CodeChange:
    """The same change seen from B to A.

    >>> from kernelviz.core.code_changes import Role
    >>> mirrored(WarpRolesChange(a=(), b=(Role(does="copies"),), favours="b"))
    WarpRolesChange(favours='a', kernel='', a=(Role(does='copies', registers=None),), b=())
    """
    values = msgspec.structs.asdict(change)
    swapped = {_OTHER_NAME.sub(lambda m: "b" if m[0] == "a" else "a", name): value for name, value in values.items()}
    for name in _SIDES & values.keys():
        swapped[name] = OTHER_SIDE.get(values[name])
    return type(change)(**swapped)
