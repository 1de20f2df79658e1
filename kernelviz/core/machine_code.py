"""What the machine code of a kernel says without running it: resources, instructions, loops.

Counts are static: each instruction of a region counts once, whatever path a warp takes. Unknown is None. An opcode that is in
no table counts in `unknown`.
"""

from typing import Literal

import msgspec

from kernelviz.core.problem import Struct

InstructionClass = Literal[
    "tensor",
    "fp32",
    "fp16",
    "fp64",
    "integer",
    "special_function",
    "conversion",
    "predicate",
    "move",
    "uniform",
    "warp",
    "global_memory",
    "shared_memory",
    "local_memory",
    "constant_memory",
    "tensor_memory",
    "texture",
    "asynchronous_copy",
    "barrier",
    "control_flow",
    "miscellaneous",
    "no_operation",
    "unknown",
]
OperandSource = Literal["registers", "shared_memory", "tensor_memory"]
MemorySpace = Literal["global", "shared", "local", "generic"]
AccessKind = Literal["load", "store", "atomic"]
CopyKind = Literal[
    "cp_async",
    "bulk_load",
    "bulk_store",
    "bulk_reduce",
    "bulk_prefetch",
    "bulk_between_blocks",
    "tma_load",
    "tma_store",
    "tma_reduce",
    "tma_prefetch",
]
BarrierKind = Literal[
    "block",
    "cluster",
    "warp",
    "warpgroup",
    "mbarrier_init",
    "mbarrier_arrive",
    "mbarrier_wait",
    "mbarrier_invalidate",
    "copy_wait",
    "copy_commit",
    "fence",
]
Technique = Literal[
    "vec16", "cp_async", "bulk_copy", "tma", "multicast", "cluster", "mma_sync", "wgmma", "tcgen05", "warp_specialised"
]
"""How a kernel is written, as far as its machine code shows it: loads or stores of global memory of 16 bytes or more by a thread,
asynchronous copies by cp.async, by bulk copies or by TMA, copies to several blocks of a cluster, barriers of a cluster, the kinds
of tensor core instructions, and warps that run code of their own."""
RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system takes of each block from compute capability 8.0 on; a cubin counts it in from 9.0 on."""
OccupancyLimit = Literal["threads", "blocks", "registers", "shared_memory"]


class ControlCodes(Struct, frozen=True, kw_only=True):
    """Scheduling information in an instruction: cycles to stall after its issue, whether the scheduler should prefer another warp
    afterwards, the scoreboard barriers (0 to 5) that it sets when its result is written and its operands are read, the barriers
    that it waits for, and the operand slots (0 to 3) whose registers the next instruction reuses."""

    stall_cycles: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_barriers: tuple[int, ...]
    reused_operands: tuple[int, ...]


class Instruction(Struct, frozen=True, kw_only=True):
    """One instruction. `address` in bytes from the start of its kernel's section, `predicate` as in ``@!P0``, `opcode` with its
    modifiers (``LDG.E.128``), `encoding` the 128 bits as 32 hexadecimal digits. `control` is None where the layout of the
    control codes is not verified."""

    address: int
    predicate: str | None = None
    opcode: str
    operands: tuple[str, ...] = ()
    encoding: str
    control: ControlCodes | None = None

    @property
    def mnemonic(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    def with_operands(self, operands: tuple[str, ...]) -> "Instruction":
        return msgspec.structs.replace(self, operands=operands)

    @property
    def is_never_executed(self) -> bool:
        """Whether its predicate is constantly false. ptxas inserts ``@!PT LDS RZ, [RZ]`` around asynchronous copies."""
        return self.predicate in ("@!PT", "@!UPT")


class AddressRange(Struct, frozen=True, kw_only=True):
    """Consecutive instructions, from the address of the first to that of the last, both included."""

    first: int
    last: int


class TensorInstruction(Struct, frozen=True, kw_only=True):
    """One kind of tensor core instruction. `shape`: M, N, K, or None where the instruction reads it from a descriptor."""

    opcode: str
    shape: tuple[int, int, int] | None
    a_source: OperandSource | None
    b_source: OperandSource | None
    count: int


class Access(Struct, frozen=True, kw_only=True):
    """Accesses of one width: bytes that one thread transfers with one instruction."""

    space: MemorySpace
    kind: AccessKind
    width_bytes: int
    count: int


class AsynchronousCopy(Struct, frozen=True, kw_only=True):
    """Instructions that start a copy. `width_bytes`: what a thread copies, for cp.async only."""

    kind: CopyKind
    multicast: bool = False
    width_bytes: int | None = None
    count: int


class RegisterChange(Struct, frozen=True, kw_only=True):
    """A setmaxnreg: the registers a thread has from there on."""

    address: int
    kind: Literal["increase", "decrease"]
    registers: int


class CodeFacts(Struct, frozen=True, kw_only=True):
    """What a region of code consists of: a whole kernel, or one iteration of a loop.

    `instructions` is their number, including padding and never executed ones. `classes` holds the number of instructions of each
    class that occurs. `unknown` holds the opcodes that are in no class. `stall_cycles` is the sum of the stall counts: the
    least number of cycles in which one warp can issue all of them; None where control codes are not decoded.
    """

    instructions: int
    classes: dict[InstructionClass, int]
    tensor: tuple[TensorInstruction, ...] = ()
    accesses: tuple[Access, ...] = ()
    copies: tuple[AsynchronousCopy, ...] = ()
    barriers: dict[BarrierKind, int] = {}
    special_functions: dict[str, int] = {}
    register_changes: tuple[RegisterChange, ...] = ()
    unknown: dict[str, int] = {}
    stall_cycles: int | None = None

    @property
    def executable(self) -> int:
        """Instructions that do something: without padding and without those whose predicate is constantly false."""
        return self.instructions - self.classes.get("no_operation", 0)

    @property
    def other_per_tensor(self) -> float | None:
        """Instructions that are not tensor instructions for each one that is; None without tensor instructions."""
        tensor = self.classes.get("tensor", 0)
        return (self.executable - tensor) / tensor if tensor else None


class MainLoop(Struct, frozen=True, kw_only=True):
    """The loop that does most of a kernel's work. `depth` is 1 for a loop that is in no other loop.

    `iteration` counts the instructions of the loop once. Loops in it that only wait are left out, other inner loops count as one
    iteration.
    """

    header: int
    ranges: tuple[AddressRange, ...]
    depth: int
    iteration: CodeFacts


class WarpRole(Struct, frozen=True, kw_only=True):
    """A group of warps that runs code of its own. `entry` is the address where this code begins, `registers` the registers that
    setmaxnreg gives its threads, None without setmaxnreg. `main_loop` is None if there is no loop through data; then
    `body` is what counts. `body` is all code of the role."""

    entry: int
    registers: int | None = None
    main_loop: MainLoop | None
    body: CodeFacts

    @property
    def work(self) -> CodeFacts:
        """An iteration of the main loop, or all code of the role if there is no loop."""
        return self.main_loop.iteration if self.main_loop else self.body


class KernelFacts(Struct, frozen=True, kw_only=True):
    """A kernel of a cubin.

    `architecture` as in ``sm_90a``. `registers` per thread at launch. `stack_bytes` per thread: the frame, of which spilled
    registers are a part. `spill_stores` and `spill_loads` count STL and LDL instructions: spilled registers and local arrays look
    alike. `static_shared_bytes` as cuobjdump reports it: from sm_90 on it includes the 1024 bytes that the system reserves in
    each block that uses shared memory. `constant_bytes` by bank. `max_threads` is what __launch_bounds__ allows,
    `required_threads` what .reqntid demands, `cluster` the blocks of a compiled-in cluster. `indirect_branches_unknown` counts
    indirect branches whose targets the file does not name: behind them, loops may be missing. `external_functions` are those that
    the driver adds when it loads the kernel, as ``__assertfail``; if they need more than `registers`, a thread has more.
    `load_passes`: loops that load from global memory, where those count once between which no threads exchange data; 1 if loads
    are in no loop, 0 without loads; None if the loops are not all known.
    """

    name: str
    architecture: str
    registers: int | None = None
    stack_bytes: int | None = None
    local_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_shared_bytes: int = 0
    constant_bytes: dict[int, int] = {}
    parameter_bytes: int | None = None
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    max_registers: int | None = None
    cluster: tuple[int, int, int] | None = None
    code_bytes: int
    indirect_branches_unknown: int = 0
    external_functions: tuple[str, ...] = ()
    load_passes: int | None = None
    whole: CodeFacts
    roles: tuple[WarpRole, ...]

    @property
    def own_shared_bytes(self) -> int:
        """Static shared memory that the kernel itself declares, without what the system reserves in each block."""
        reserved = RESERVED_SHARED_BYTES if (architecture_number(self.architecture) or 0) >= 90 else 0
        return max(0, self.static_shared_bytes - reserved)


def architecture_number(architecture: str) -> int | None:
    """The compute capability times ten; None if the name is of another form.

    >>> architecture_number("sm_90a"), architecture_number("sm_120"), architecture_number("gfx942")
    (90, 120, None)
    """
    digits = architecture.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if architecture.startswith("sm_") and digits.isdecimal() else None


class Occupancy(Struct, frozen=True, kw_only=True):
    """How many blocks of a kernel a multiprocessor holds at once. `fraction`: resident warps of the most there can be. `limits`:
    the blocks that each resource allows; `limited_by`: those that allow no more than `blocks`."""

    blocks: int
    warps: int
    fraction: float
    limits: dict[OccupancyLimit, int]
    limited_by: tuple[OccupancyLimit, ...]


class Waves(Struct, frozen=True, kw_only=True):
    """A grid on a device. `full` waves occupy every slot; `tail_blocks` are left for the last one, of which they are
    `tail_fraction`. `utilisation` is the share of slots that have a block, over all waves."""

    blocks_per_wave: int
    full: int
    tail_blocks: int
    tail_fraction: float
    utilisation: float


Region = Literal["kernel", "main_loop", "body"]
"""What a difference is about: the whole kernel, an iteration of the main loop, or all code of a warp role that has no loop."""
FactKind = Literal[
    "architecture",
    "registers",
    "stack_bytes",
    "local_stores",
    "local_loads",
    "static_shared_bytes",
    "warp_roles",
    "technique",
    "has_loop",
    "instructions",
    "stall_cycles",
    "tensor_instruction",
    "access",
    "copy",
    "barrier",
    "special_function",
    "instruction_class",
]
FactValue = int | str | bool | None


class AccessType(Struct, frozen=True, kw_only=True, tag="access"):
    """What kind of memory access is counted: see `Access`."""

    space: MemorySpace
    kind: AccessKind
    width_bytes: int


class CopyType(Struct, frozen=True, kw_only=True, tag="copy"):
    """What kind of asynchronous copy is counted: see `AsynchronousCopy`."""

    kind: CopyKind
    multicast: bool
    width_bytes: int | None


class FactDifference(Struct, frozen=True, kw_only=True):
    """A fact that is not the same in kernels A and B. `role`: the number of the warp role, from 1; None for a whole kernel.
    `detail`: what is counted, where the fact is a count of one kind: a class of instructions, a barrier, an opcode, a technique,
    an access or a copy. Unknown values are None."""

    region: Region
    role: int | None = None
    fact: FactKind
    detail: str | AccessType | CopyType = ""
    a: FactValue
    b: FactValue


UnknownCode = Literal["not_captured", "not_here", "other_kernels", "no_tool"]
"""Why the machine code of two cases cannot be compared: a side has none (it comes compiled with a library, or it was measured
before code was captured); a cubin is not on this machine; the sides launch kernels that do not correspond; nvdisasm is missing or
cannot read a file."""
