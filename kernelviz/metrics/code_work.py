"""Single facts about the machine code of a kernel that two cases are compared by: pure arithmetic on `KernelOfCase`.

"The work" of a kernel is an iteration of the main loop of its warp role with the most tensor core instructions, or the whole body
where there is no loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kernelviz.core.code_changes import CopyTechnique, Role, StoreTechnique, TensorKind, WorkBasis
from kernelviz.core.code_facts import KernelOfCase
from kernelviz.core.machine_code import Access, CodeFacts, MemorySpace, Technique, TensorInstruction

LoadOrStore = Literal["load", "store"]
LOADS_AND_STORES: tuple[LoadOrStore, ...] = ("load", "store")
SPACES: tuple[MemorySpace, ...] = ("global", "shared")
BASES: tuple[WorkBasis, ...] = ("multiply_add", "byte")
TENSOR_RANK: dict[TensorKind | None, int] = {None: 0, "mma_sync": 1, "wgmma": 2, "tcgen05": 3}
"""The higher, the more multiply-adds per cycle: mma.sync reaches 65 % of the peak of an H100 (arXiv 2402.13499)."""
COPY_RANK: dict[CopyTechnique, int] = {"cp_async": 1, "bulk_copy": 2, "tma": 3}
"""The higher, the fewer instructions start a copy of the same bytes: a thread copies 16 bytes by cp.async, a tile by TMA."""
_WARPGROUP = 4
"""Warps that issue one wgmma together."""
_MULTIPLY_ADDS = 1024
_LEAST_STAGED_BYTES = 4
"""Shared memory per thread from which a kernel passes its data through it. A reduction over a block needs 4 bytes per warp."""


@dataclass(frozen=True, slots=True)
class Spills:
    """Loads from and stores to local memory in the whole code, and in an iteration of all main loops; None without a loop."""

    whole: int
    of_iteration: int | None


@dataclass(frozen=True, slots=True)
class Atomics:
    """Atomic instructions of the work, by memory."""

    of_global: int
    of_shared: int


@dataclass(frozen=True, slots=True)
class Width:
    """Bytes of an access. `in_work`: whether the work has such accesses, and not only the code around a loop."""

    bytes: int
    in_work: bool


@dataclass(frozen=True, slots=True)
class SharedUses:
    """Loads from and stores to shared memory, and block barriers, in the whole code."""

    loads: int
    stores: int
    barriers: int


def spills(kernel: KernelOfCase) -> Spills:
    iterations = [role.main_loop.iteration for role in kernel.facts.roles if role.main_loop]
    inside = sum(a.count for one in iterations for a in one.accesses if a.space == "local")
    return Spills(kernel.facts.spill_loads + kernel.facts.spill_stores, inside if iterations else None)


def atomics(kernel: KernelOfCase) -> Atomics:
    """The bookkeeping of a kernel that counts finished blocks is outside of its main loop, so it does not count."""
    counts: Counter[MemorySpace] = Counter()
    for region in _works(kernel):
        for access in region.accesses:
            if access.kind == "atomic":
                counts[access.space] += access.count
    return Atomics(counts["global"] + counts["generic"], counts["shared"])


def tensor_kind(kernel: KernelOfCase) -> TensorKind | None:
    """The kind of the tensor core instructions of the work; None without any."""
    kinds = {_kind(one) for one in kernel.role.work.tensor}
    return max(kinds, key=TENSOR_RANK.__getitem__) if kinds else None


def _kind(instruction: TensorInstruction) -> TensorKind:
    mnemonic = instruction.opcode.partition(".")[0]
    return "tcgen05" if mnemonic.startswith("UTC") else "wgmma" if mnemonic.endswith("GMMA") else "mma_sync"


def tensor_shape(kernel: KernelOfCase) -> tuple[int, int, int] | None:
    """M, N and K of the most frequent tensor core instruction of the work."""
    most = max(kernel.role.work.tensor, key=lambda one: one.count, default=None)
    return most.shape if most else None


def roles(kernel: KernelOfCase) -> tuple[Role, ...]:
    """What each warp role does."""
    return tuple(Role(does=_does(role.work), registers=role.registers) for role in kernel.facts.roles)


def _does(region: CodeFacts) -> Literal["multiplies", "copies", "other"]:
    return "multiplies" if region.tensor else "copies" if region.copies else "other"


def copies(kernel: KernelOfCase) -> tuple[CopyTechnique, ...]:
    """How asynchronous copies of the whole code load, the one with the fewest instructions first."""
    used: set[CopyTechnique] = set()
    for copy in kernel.facts.whole.copies:
        if copy.kind == "cp_async":
            used.add("cp_async")
        elif copy.kind == "bulk_load":
            used.add("bulk_copy")
        elif copy.kind == "tma_load":
            used.add("tma")
    return tuple(sorted(used, key=lambda one: -COPY_RANK[one]))


def cluster_techniques(kernel: KernelOfCase) -> frozenset[Technique]:
    whole = kernel.facts.whole
    techniques: set[Technique] = set()
    if whole.barriers.get("cluster") or kernel.facts.cluster is not None:
        techniques.add("cluster")
    if any(copy.multicast for copy in whole.copies):
        techniques.add("multicast")
    return frozenset(techniques)


def usual_width(kernel: KernelOfCase, space: MemorySpace, access: LoadOrStore) -> Width | None:
    """The width by which most bytes are moved: in the work; of global memory, in the whole code if the work has no such accesses.
    None without any, and for global memory that a kernel copies by tiles, whose instructions have no width."""
    whole = kernel.facts.whole
    if space == "global" and access == "load" and any(c.kind in ("bulk_load", "tma_load") for c in whole.copies):
        return None
    if space == "global" and access == "store" and any(c.kind in ("bulk_store", "tma_store") for c in whole.copies):
        return None
    whole_code = [whole] if space == "global" else []
    for regions in (list(_works(kernel)), whole_code):
        moved: Counter[int] = Counter()
        for region in regions:
            moved.update(_bytes_by_width(region, space, access))
        if moved:
            return Width(max(moved, key=lambda width: (moved[width], width)), regions is not whole_code)
    return None


def store_technique(kernel: KernelOfCase) -> StoreTechnique | None:
    """The copies by which tiles are stored to global memory; None if threads store."""
    kinds = {copy.kind for copy in kernel.facts.whole.copies}
    return (
        "tma" if kinds & {"tma_store", "tma_reduce"} else "bulk_copy" if kinds & {"bulk_store", "bulk_reduce"} else None
    )


def _bytes_by_width(region: CodeFacts, space: MemorySpace, access: LoadOrStore) -> Counter[int]:
    moved: Counter[int] = Counter()
    for one in region.accesses:
        if one.kind == access and _is_in(one, space):
            moved[one.width_bytes] += one.width_bytes * one.count
    if (space, access) == ("global", "load"):
        for copy in region.copies:
            if copy.kind == "cp_async" and copy.width_bytes:
                moved[copy.width_bytes] += copy.width_bytes * copy.count
    return moved


def _is_in(access: Access, space: MemorySpace) -> bool:
    return access.space == space or (space == "global" and access.space == "generic")


def instructions_per(kernel: KernelOfCase, basis: WorkBasis) -> float | None:
    """Instructions of the work of a warp for each 1,024 multiply-adds of its tensor core instructions, or for each byte that a
    thread loads from or stores to global memory. None where these are not known, and for bytes where the tensor cores work."""
    region = kernel.role.work
    if basis == "multiply_add":
        done = _multiply_adds(region)
        return None if not done else region.executable / done * _MULTIPLY_ADDS
    if region.tensor or any(c.kind != "cp_async" for c in region.copies):
        return None
    moved = sum(
        width_bytes for access in LOADS_AND_STORES for width_bytes in _bytes_by_width(region, "global", access).values()
    )
    return region.executable / moved if moved else None


def _multiply_adds(region: CodeFacts) -> int | None:
    """Multiply-adds of a warp; None where a shape is unknown, and for tcgen05, which one thread issues for the block."""
    total = 0
    for one in region.tensor:
        kind = _kind(one)
        if one.shape is None or kind == "tcgen05":
            return None
        m, n, k = one.shape
        total += one.count * m * n * k // (_WARPGROUP if kind == "wgmma" else 1)
    return total


def block_barriers(kernel: KernelOfCase) -> int | None:
    """Block barriers of an iteration of the main loop; None without a loop, and for warp roles, whose barriers some warps use."""
    if len(kernel.facts.roles) != 1 or kernel.facts.roles[0].main_loop is None:
        return None
    return kernel.facts.roles[0].main_loop.iteration.barriers.get("block", 0)


def shared_uses(kernel: KernelOfCase) -> SharedUses:
    whole = kernel.facts.whole

    def of(access: LoadOrStore) -> int:
        return sum(a.count for a in whole.accesses if (a.space, a.kind) == ("shared", access))

    return SharedUses(of("load"), of("store"), whole.barriers.get("block", 0))


def stages_in_shared_memory(kernel: KernelOfCase) -> bool | None:
    """Whether the data go through shared memory: the block has 4 bytes of it per thread or more, and stores to it or copies into
    it. Less than that is for the partial results of a reduction. None if the launch is not known."""
    if kernel.shared_bytes is None or kernel.threads is None:
        return None
    enough = kernel.shared_bytes >= _LEAST_STAGED_BYTES * kernel.threads
    return enough and bool(shared_uses(kernel).stores or kernel.facts.whole.copies)


def same_accesses(a: KernelOfCase, b: KernelOfCase) -> bool:
    """Whether two kernels access global and shared memory by the same instructions, as often, with as many threads."""
    return (
        a.threads == b.threads
        and a.facts.whole.accesses == b.facts.whole.accesses
        and a.facts.whole.copies == b.facts.whole.copies
    )


def _works(kernel: KernelOfCase) -> Iterator[CodeFacts]:
    """The work of each warp role."""
    return (role.work for role in kernel.facts.roles)
