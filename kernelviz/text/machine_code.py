"""Facts about machine code in text."""

from collections.abc import Iterable

from kernelviz.core.machine_code import (
    Access,
    AsynchronousCopy,
    BarrierKind,
    CodeFacts,
    CopyKind,
    InstructionClass,
    KernelFacts,
    Occupancy,
    OccupancyLimit,
    OperandSource,
    Technique,
    TensorInstruction,
    WarpRole,
    Waves,
)
from kernelviz.core.units import percent, significant
from kernelviz.text.text import Text, join

CLASS_NAMES: dict[InstructionClass, str] = {
    "tensor": "tensor core",
    "fp32": "fp32",
    "fp16": "fp16",
    "fp64": "fp64",
    "integer": "integer",
    "special_function": "special function",
    "conversion": "conversion",
    "predicate": "comparison",
    "move": "move",
    "uniform": "uniform",
    "warp": "warp",
    "global_memory": "global memory",
    "shared_memory": "shared memory",
    "local_memory": "local memory",
    "constant_memory": "constant memory",
    "tensor_memory": "tensor memory",
    "texture": "texture",
    "asynchronous_copy": "asynchronous copy",
    "barrier": "barrier",
    "control_flow": "control flow",
    "miscellaneous": "miscellaneous",
    "no_operation": "no operation",
    "unknown": "unknown",
}
COPY_NAMES: dict[CopyKind, str] = {
    "cp_async": "cp.async",
    "bulk_load": "bulk load",
    "bulk_store": "bulk store",
    "bulk_reduce": "bulk reduction",
    "bulk_prefetch": "bulk prefetch",
    "bulk_between_blocks": "bulk copy to another block",
    "tma_load": "TMA load",
    "tma_store": "TMA store",
    "tma_reduce": "TMA reduction",
    "tma_prefetch": "TMA prefetch",
}
BARRIER_NAMES: dict[BarrierKind, str] = {
    "block": "block barrier",
    "cluster": "cluster barrier",
    "warp": "warp synchronisation",
    "warpgroup": "warpgroup synchronisation",
    "mbarrier_init": "mbarrier initialisation",
    "mbarrier_arrive": "mbarrier arrival",
    "mbarrier_wait": "mbarrier wait",
    "mbarrier_invalidate": "mbarrier invalidation",
    "copy_wait": "wait for copies",
    "copy_commit": "commit of copies",
    "fence": "fence",
}
LIMIT_NAMES: dict[OccupancyLimit, str] = {
    "threads": "threads",
    "blocks": "blocks",
    "registers": "registers",
    "shared_memory": "shared memory",
}
SOURCE_NAMES: dict[OperandSource, str] = {
    "registers": "registers",
    "shared_memory": "shared memory",
    "tensor_memory": "tensor memory",
}

# wmma and mma.sync compile to the same machine instructions, so the technique has the name of neither.
TECHNIQUE_NAMES: dict[Technique, str] = {
    "vec16": "16-byte accesses",
    "cp_async": "cp.async",
    "bulk_copy": "bulk copies",
    "tma": "TMA",
    "multicast": "multicast",
    "cluster": "cluster barriers",
    "mma_sync": "warp-level MMA",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
    "warp_specialised": "warp specialisation",
}


_MOST_LETTERS = 48


def format_kernel_name(name: str) -> str:
    """The name of a kernel, cut if it is long: a template of torch has hundreds of letters.

    >>> format_kernel_name("row_kernel"), len(format_kernel_name("void at::native::" + "x" * 400))
    ('row_kernel', 48)
    """
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def describe_kernel(kernel: KernelFacts) -> tuple[Text, ...]:
    """Lines about a kernel: its resources, then for each warp role its main loop and what an iteration consists of."""
    return (
        Text(f"{kernel.name} ({kernel.architecture})"),
        format_resources(kernel),
        *(line for number, role in enumerate(kernel.roles, start=1) for line in _describe_role(kernel, role, number)),
    )


def format_resources(kernel: KernelFacts, shared_bytes: int | None = None) -> Text:
    """Registers, stack, spills, shared memory and the size of the code, in one line. `shared_bytes`: of a block, static and
    dynamic together; None if it is not known, as without a launch."""
    static = f"{kernel.static_shared_bytes:,} bytes of static shared memory"
    shared = static if shared_bytes is None else f"{shared_bytes:,} bytes of shared memory per block"
    threads = kernel.required_threads or kernel.max_threads
    return join(
        ", ",
        (
            f"{_number(kernel.registers)} registers per thread"
            + (f" (or more, for {' and '.join(kernel.external_functions)})" if kernel.external_functions else ""),
            f"{_number(kernel.stack_bytes)} bytes of stack",
            f"{kernel.spill_stores} stores to and {kernel.spill_loads} loads from local memory"
            if kernel.spill_stores or kernel.spill_loads
            else "no access to local memory",
            shared,
            f"{'exactly' if kernel.required_threads else 'at most'} {' × '.join(map(str, threads))} threads"
            if threads
            else "",
            f"clusters of {' × '.join(map(str, kernel.cluster))} blocks" if kernel.cluster else "",
            f"{kernel.whole.instructions:,} instructions",
        ),
    )


def format_region(role: WarpRole) -> Text:
    """Where the main loop of a role is, or that it has none.

    >>> print(format_region(WarpRole(entry=0, main_loop=None, body=CodeFacts(instructions=0, classes={}))))
    no loop: the whole body counts
    """
    if role.main_loop is None:
        return Text("no loop: the whole body counts")
    ranges = ", ".join(f"{r.first:#06x}–{r.last:#06x}" for r in role.main_loop.ranges)
    return Text(f"main loop {ranges}")


def format_mix(work: CodeFacts) -> Text:
    """The number of instructions of each class, the most frequent first, without those that do nothing.

    >>> print(format_mix(CodeFacts(instructions=7, classes={"fp32": 4, "no_operation": 2, "integer": 1})))
    4 fp32, 1 integer
    """
    return join(", ", (f"{n} {CLASS_NAMES[kind]}" for kind, n in work.classes.items() if kind != "no_operation"))


def format_tensor(instructions: Iterable[TensorInstruction]) -> Text:
    """Tensor core instructions with shape and operand sources.

    >>> sources = {"a_source": "registers", "b_source": "shared_memory"}
    >>> print(format_tensor([TensorInstruction(opcode="HGMMA.64x128x16.F32", shape=(64, 128, 16), count=4, **sources)]))
    4 HGMMA 64×128×16 (A from registers, B from shared memory)
    """
    return join(", ", (_tensor(i) for i in instructions))


def format_accesses(accesses: Iterable[Access]) -> Text:
    """Accesses by space and width.

    >>> print(format_accesses([Access(space="global", kind="load", width_bytes=16, count=2)]))
    2 global loads of 16 bytes
    """
    return join(
        ", ", (f"{a.count} {a.space} {a.kind}{'s' if a.count > 1 else ''} of {a.width_bytes} bytes" for a in accesses)
    )


def format_memory(kernel: KernelFacts, role: WarpRole) -> Text:
    """Accesses and asynchronous copies of the main loop of a role; without such copies, those that other roles start."""
    copies_elsewhere = [copy for one in kernel.roles if one != role for copy in one.work.copies]
    elsewhere = (
        f"{format_copies(copies_elsewhere)} (by another warp role)" if copies_elsewhere and not role.work.copies else ""
    )
    return join(", ", (format_copies(role.work.copies), elsewhere, format_accesses(role.work.accesses)))


def format_copies(copies: Iterable[AsynchronousCopy]) -> Text:
    """Asynchronous copies by kind.

    >>> print(format_copies([AsynchronousCopy(kind="tma_load", multicast=True, count=2)]))
    2 TMA load (multicast)
    """
    return join(
        ", ",
        (
            f"{c.count} {COPY_NAMES[c.kind]}"
            + (f" of {c.width_bytes} bytes" if c.width_bytes else "")
            + (" (multicast)" if c.multicast else "")
            for c in copies
        ),
    )


def format_barriers(work: CodeFacts) -> Text:
    """Synchronising instructions by kind."""
    return join(", ", (f"{n} {BARRIER_NAMES[kind]}" for kind, n in work.barriers.items()))


def describe_occupancy(occupancy: Occupancy) -> Text:
    """How many blocks a multiprocessor holds, and what limits them.

    >>> limits = {"threads": 5, "blocks": 32, "registers": 1, "shared_memory": 1}
    >>> both = ("registers", "shared_memory")
    >>> print(describe_occupancy(Occupancy(blocks=1, warps=12, fraction=0.1875, limits=limits, limited_by=both)))
    1 block (12 warps, 18.8 % of the most) on a multiprocessor at once, limited by registers and shared memory
    """
    blocks = f"{occupancy.blocks} block{'' if occupancy.blocks == 1 else 's'}"
    limited = " and ".join(LIMIT_NAMES[name] for name in occupancy.limited_by)
    return Text(
        f"{blocks} ({occupancy.warps} warps, {percent(occupancy.fraction)} of the most) on a multiprocessor at once, "
        f"limited by {limited}"
    )


def describe_waves(waves: Waves) -> Text:
    """How a grid fills the device.

    >>> print(describe_waves(Waves(blocks_per_wave=132, full=3, tail_blocks=116, tail_fraction=116 / 132, utilisation=0.9697)))
    3 full waves of 132 blocks, and a last one of 116: 97.0 % of the slots are used
    """
    last = f", and a last one of {waves.tail_blocks}" if waves.tail_blocks else ""
    return Text(
        f"{waves.full} full wave{'' if waves.full == 1 else 's'} of {waves.blocks_per_wave} blocks{last}: "
        f"{percent(waves.utilisation)} of the slots are used"
    )


def _describe_role(kernel: KernelFacts, role: WarpRole, number: int) -> Iterable[Text]:
    several = len(kernel.roles) > 1
    registers = f" with {role.registers} registers" if role.registers else ""
    yield (f"Warp role {number}{registers}: " if several else "") + format_region(role)
    work = role.work
    yield format_mix(work)
    yield from (
        line
        for line in (
            format_tensor(work.tensor),
            format_accesses(work.accesses),
            format_copies(work.copies),
            format_barriers(work),
        )
        if str(line)
    )
    if work.other_per_tensor is not None:
        yield Text(f"{significant(work.other_per_tensor, 3)} other instructions for each tensor core instruction")


def _tensor(instruction: TensorInstruction) -> str:
    mnemonic = instruction.opcode.partition(".")[0]
    shape = " " + "×".join(map(str, instruction.shape)) if instruction.shape else " of a shape in its descriptor"
    a, b = (SOURCE_NAMES[s] if s else "unknown" for s in (instruction.a_source, instruction.b_source))
    operands = f"both operands from {a}" if a == b else f"A from {a}, B from {b}"
    return f"{instruction.count} {mnemonic}{shape} ({operands})"


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)
