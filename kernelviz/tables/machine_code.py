"""The columns of the kernels of a cubin: one row for each warp role, what an iteration of its main loop consists of."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelviz.core import units
from kernelviz.core.machine_code import KernelFacts, WarpRole
from kernelviz.tables.column import Column
from kernelviz.text.machine_code import (
    format_accesses,
    format_barriers,
    format_copies,
    format_mix,
    format_region,
    format_tensor,
)


@dataclass(frozen=True, slots=True)
class RoleOfKernel:
    """A row of the table: one warp role of a kernel."""

    kernel: KernelFacts
    role: WarpRole
    number: int


def roles(kernels: Iterable[KernelFacts]) -> list[RoleOfKernel]:
    """The rows of the table, in the order of the kernels and their code."""
    return [RoleOfKernel(kernel, role, n) for kernel in kernels for n, role in enumerate(kernel.roles, start=1)]


_SPILLS = "STL and LDL instructions: spilled registers, and arrays that are indexed with a variable."
_OF_ITERATION = "In an iteration of the main loop, or in the whole body where there is no loop."
MACHINE_CODE: tuple[Column[RoleOfKernel], ...] = (
    Column("kernel", "Kernel", "Its name in the compiled module.", units.TEXT, lambda row: row.kernel.name),
    Column("architecture", "Architecture", "What it was compiled for.", units.OWN_TEXT,
           lambda row: row.kernel.architecture),
    Column("registers", "Registers per thread",
           "Of 65,536 on a multiprocessor: with more per thread, fewer threads run at once. A kernel that calls functions of the "
           "driver, as __assertfail, may get more when it is loaded.",
           units.COUNT, lambda row: row.kernel.registers),
    Column("stack_bytes", "Stack", "Of each thread, in local memory.", units.BYTES, lambda row: row.kernel.stack_bytes),
    Column("spill_stores", "Local stores", _SPILLS, units.COUNT, lambda row: row.kernel.spill_stores),
    Column("spill_loads", "Local loads", _SPILLS, units.COUNT, lambda row: row.kernel.spill_loads),
    Column("static_shared_bytes", "Static shared memory", "From sm_90 on with 1,024 bytes that the system reserves.",
           units.BYTES, lambda row: row.kernel.static_shared_bytes),
    Column("role", "Warp role", "Groups of warps that run code of their own, in the order of their code.", units.COUNT,
           lambda row: row.number),
    Column("role_registers", "Registers of the role", "What setmaxnreg gives its threads.", units.COUNT,
           lambda row: row.role.registers, optional=True),
    Column("region", "Region", "The addresses of the main loop.", units.OWN_TEXT, lambda row: format_region(row.role)),
    Column("instructions", "Instructions", f"{_OF_ITERATION} Each counts once, whatever path a warp takes.", units.COUNT,
           lambda row: row.role.work.executable),
    Column("mix", "Mix", _OF_ITERATION, units.OWN_TEXT, lambda row: format_mix(row.role.work)),
    Column("tensor", "Tensor core", _OF_ITERATION, units.OWN_TEXT, lambda row: format_tensor(row.role.work.tensor)),
    Column("other_per_tensor", "Others per tensor core instruction", "Instructions of other kinds for each one.",
           units.RATIO, lambda row: row.role.work.other_per_tensor, optional=True),
    Column("accesses", "Memory", _OF_ITERATION, units.OWN_TEXT, lambda row: format_accesses(row.role.work.accesses)),
    Column("copies", "Asynchronous copies", _OF_ITERATION, units.OWN_TEXT, lambda row: format_copies(row.role.work.copies)),
    Column("barriers", "Barriers", _OF_ITERATION, units.OWN_TEXT, lambda row: format_barriers(row.role.work)),
    Column("stall_cycles", "Stall cycles", "Sum of the stall counts: the least cycles in which one warp can issue all. Known for "
           "sm_80 and sm_90.", units.COUNT, lambda row: row.role.work.stall_cycles, optional=True),
)  # fmt: skip
