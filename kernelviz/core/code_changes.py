"""What differs between the machine code of two cases, as tagged values with both sides. `text.code_changes` has the text.

`a` and `b` are the two sides. Counts are static, as in `core.machine_code`. Unknown is None.
"""

from __future__ import annotations

from typing import Literal

from kernelviz.core.code_facts import NoFactsReason
from kernelviz.core.machine_code import AccessKind, MemorySpace, OccupancyLimit, Technique, Waves
from kernelviz.core.problem import Struct

CodeSide = Literal["a", "b"]
Explains = Literal["can", "neutral", "against"]
"""How a change relates to the measured difference: it can make the faster side faster; it is no reason for either side; or it
favours the side that is slower."""
TensorKind = Literal["mma_sync", "wgmma", "tcgen05"]
CopyTechnique = Literal["cp_async", "bulk_copy", "tma"]
StoreTechnique = Literal["bulk_copy", "tma"]
WorkBasis = Literal["multiply_add", "byte"]
"""What instructions are counted for: 1,024 multiply-adds of a warp on the tensor cores, or a byte that a thread loads from or
stores to global memory."""


class _Change(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all changes. `favours`: the side that this makes faster, as far as the fact alone tells. `kernel`: the kernel that
    has changed, where it is not the one that takes the longest."""

    favours: CodeSide | None = None
    kernel: str = ""


class ArchitectureChange(_Change, frozen=True, kw_only=True, tag="architecture"):
    """The kernels were compiled for different architectures, such as ``sm_80`` and ``sm_90a``."""

    a: str
    b: str


class CompilerChange(_Change, frozen=True, kw_only=True, tag="compiler"):
    """Another compiler, or another version of it; each with its version, as ``triton 3.7.1``."""

    a: str
    b: str


class SectorsChange(_Change, frozen=True, kw_only=True, tag="sectors"):
    """By counters: bytes of all 32-byte sectors that loads and stores on global memory touch in a call. Threads of a warp that
    access neighbouring elements touch few sectors; if each is elsewhere, they touch a sector for each element."""

    a_bytes: int
    b_bytes: int


class TrafficChange(_Change, frozen=True, kw_only=True, tag="traffic"):
    """By counters: bytes between L2 and device memory of a call."""

    a_bytes: int
    b_bytes: int


class SpillsChange(_Change, frozen=True, kw_only=True, tag="spills"):
    """Loads from and stores to local memory: spilled registers, or arrays that are indexed with a variable. `a`, `b`: in the
    whole code. `*_of_iteration`: in an iteration of the main loop; None without a loop."""

    a: int
    b: int
    a_of_iteration: int | None = None
    b_of_iteration: int | None = None


class AtomicsChange(_Change, frozen=True, kw_only=True, tag="atomics"):
    """Atomic instructions on global and on shared memory, in an iteration of the main loop or in the body without a loop."""

    a_global: int
    b_global: int
    a_shared: int = 0
    b_shared: int = 0


class KernelCountChange(_Change, frozen=True, kw_only=True, tag="kernel_count"):
    """The number of kernels that a call launches."""

    a: int
    b: int


class BusyMultiprocessorsChange(_Change, frozen=True, kw_only=True, tag="busy_multiprocessors"):
    """Blocks of the grid, of which one side has fewer than the device has multiprocessors: the others have nothing to do."""

    a_blocks: int
    b_blocks: int
    a_multiprocessors: int
    b_multiprocessors: int

    @property
    def a_fraction(self) -> float:
        """Multiprocessors with a block, at most."""
        return min(1.0, self.a_blocks / self.a_multiprocessors)

    @property
    def b_fraction(self) -> float:
        return min(1.0, self.b_blocks / self.b_multiprocessors)


class TensorChange(_Change, frozen=True, kw_only=True, tag="tensor"):
    """The tensor core instructions of the main loop: of another kind, or one side has none."""

    a: TensorKind | None
    b: TensorKind | None


class TensorShapeChange(_Change, frozen=True, kw_only=True, tag="tensor_shape"):
    """M, N and K of the tensor core instruction that is most frequent in the main loop; the kind is the same."""

    tensor: TensorKind
    a: tuple[int, int, int]
    b: tuple[int, int, int]


class PassesChange(_Change, frozen=True, kw_only=True, tag="passes"):
    """How often the kernel goes through global memory: loops with loads, where those count once between which no threads exchange
    data; 1 without such loops."""

    a: int
    b: int


class SharedStagingChange(_Change, frozen=True, kw_only=True, tag="shared_staging"):
    """One side passes its data from thread to thread through shared memory, the other does not. `bytes`: of a block."""

    staged: CodeSide
    bytes: int
    loads: int
    stores: int
    barriers: int


class SharedLayoutChange(_Change, frozen=True, kw_only=True, tag="shared_layout"):
    """The same accesses to shared and global memory, but up to a quarter more shared memory of a block, as rows have that are
    padded so that the elements of a column lie in different banks. The facts do not show the banks."""

    a_bytes: int
    b_bytes: int


class Role(Struct, frozen=True, kw_only=True):
    """A warp role: what its main loop does, and the registers that setmaxnreg gives its threads."""

    does: Literal["multiplies", "copies", "other"]
    registers: int | None = None


class WarpRolesChange(_Change, frozen=True, kw_only=True, tag="warp_roles"):
    """The groups of warps that run code of their own; one group if all warps run the same code."""

    a: tuple[Role, ...]
    b: tuple[Role, ...]


class CopiesChange(_Change, frozen=True, kw_only=True, tag="copies"):
    """How asynchronous copies bring data to shared memory; empty without them."""

    a: tuple[CopyTechnique, ...]
    b: tuple[CopyTechnique, ...]


class TechniqueChange(_Change, frozen=True, kw_only=True, tag="technique"):
    """A technique that only one side has: clusters, or copies to several blocks of a cluster."""

    technique: Technique
    only: CodeSide


class AccessWidthChange(_Change, frozen=True, kw_only=True, tag="access_width"):
    """The width of the accesses that move most of the bytes, of these kinds: bytes that a thread moves with one instruction.
    Asynchronous copies by cp.async count as loads of global memory. `outside_main`: the accesses of a side are not in its main
    loop, but before or behind it, so that they are few."""

    space: MemorySpace
    accesses: tuple[AccessKind, ...]
    a_bytes: int
    b_bytes: int
    outside_main: bool = False


class StoresChange(_Change, frozen=True, kw_only=True, tag="stores"):
    """How results are stored to global memory: tiles by asynchronous copies, or by the threads, with this width in bytes. None:
    not so, or unknown."""

    a: StoreTechnique | None
    b: StoreTechnique | None
    a_bytes: int | None = None
    b_bytes: int | None = None


class InstructionsChange(_Change, frozen=True, kw_only=True, tag="instructions"):
    """Instructions of the main loop, or of a kernel without one, for each 1,024 multiply-adds of a warp or for each byte."""

    basis: WorkBasis
    a: float
    b: float


class BarriersChange(_Change, frozen=True, kw_only=True, tag="barriers"):
    """Barriers that all warps of a block wait for, in an iteration of the main loop."""

    a: int
    b: int


class OccupancyChange(_Change, frozen=True, kw_only=True, tag="occupancy"):
    """Warps that a multiprocessor holds at once, of the most it can hold, and what limits them."""

    a_fraction: float
    b_fraction: float
    a_limited_by: tuple[OccupancyLimit, ...] = ()
    b_limited_by: tuple[OccupancyLimit, ...] = ()


class WavesChange(_Change, frozen=True, kw_only=True, tag="waves"):
    """How the grid fills the device: `utilisation` is the share of the slots for blocks that are used, over all waves."""

    a: Waves
    b: Waves


class RegistersChange(_Change, frozen=True, kw_only=True, tag="registers"):
    """Registers of a thread at launch."""

    a: int
    b: int


class SharedMemoryChange(_Change, frozen=True, kw_only=True, tag="shared_memory"):
    """Bytes of shared memory of a block, static and dynamic together; `*_static`: the static part."""

    a_bytes: int
    b_bytes: int
    a_static: int
    b_static: int


class LaunchChange(_Change, frozen=True, kw_only=True, tag="launch"):
    """Blocks of the grid and threads of a block; None if unknown."""

    a_blocks: int | None
    b_blocks: int | None
    a_threads: int | None
    b_threads: int | None


CodeChange = (
    ArchitectureChange
    | CompilerChange
    | SectorsChange
    | TrafficChange
    | SpillsChange
    | AtomicsChange
    | KernelCountChange
    | BusyMultiprocessorsChange
    | TensorChange
    | TensorShapeChange
    | PassesChange
    | SharedStagingChange
    | SharedLayoutChange
    | WarpRolesChange
    | CopiesChange
    | TechniqueChange
    | AccessWidthChange
    | StoresChange
    | InstructionsChange
    | BarriersChange
    | OccupancyChange
    | WavesChange
    | RegistersChange
    | SharedMemoryChange
    | LaunchChange
)


class RankedChange(Struct, frozen=True, kw_only=True):
    """A change, and how it relates to the measured difference."""

    change: CodeChange
    explains: Explains = "neutral"


class CodeChanges(Struct, frozen=True, kw_only=True):
    """What differs between two cases, the likeliest cause of their difference first.

    `faster`: the faster side; None if none is. `same_code`: both sides ran the same kernels of the same cubins. `a_missing`,
    `b_missing`: why the facts of a side are missing, or those of some of its kernels. `a_kernel`, `b_kernel`: the kernels that
    are compared, those that take the longest; None if a side has no facts of it. `a_library_kernel`, `b_library_kernel`: that
    kernel, if it has no machine code because it is a library's, although other kernels of the call have.
    """

    changes: tuple[RankedChange, ...] = ()
    faster: CodeSide | None = None
    same_code: bool = False
    a_missing: NoFactsReason | None = None
    b_missing: NoFactsReason | None = None
    a_kernel: str | None = None
    b_kernel: str | None = None
    a_library_kernel: str | None = None
    b_library_kernel: str | None = None

    @property
    def cause(self) -> CodeChange | None:
        """The likeliest cause of the measured difference; None if no change that is known can be one."""
        first = self.changes[0] if self.changes else None
        return first.change if first is not None and first.explains == "can" else None

    @property
    def known(self) -> bool:
        """Whether the machine code of both sides could be compared."""
        return self.same_code or (self.a_kernel is not None and self.b_kernel is not None)
