"""The columns of the machine code of cases: a row for each kernel of a case, whose code was captured."""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelviz.core import Result, units
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View
from kernelviz.text import Text
from kernelviz.text.code_facts import format_limits, format_proofs, format_tail, format_waves
from kernelviz.text.machine_code import format_memory, format_tensor


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of the table: one kernel of a case."""

    case: CaseFacts
    kernel: KernelOfCase

    @property
    def result(self) -> Result:
        return self.case.result


def kernel_rows(cases: Iterable[CaseFacts]) -> list[KernelRow]:
    """The rows of the table: the kernels of each case whose machine code could be read."""
    return [KernelRow(case, kernel) for case in cases for kernel in case.kernels]


_SHORT_NAME = 28
"""Characters of a kernel's name in a narrow table. The mangled name of a CUTLASS kernel has a thousand."""


def short_kernel_name(name: str) -> str:
    """
    >>> short_kernel_name("linear_kernel"), short_kernel_name("_ZN7cutlass13device_kernelINS_4gemm6kernel")
    ('linear_kernel', '_ZN7cutlass13device_kernelI…')
    """
    return name if len(name) <= _SHORT_NAME else f"{name[: _SHORT_NAME - 1]}…"


_OF_ITERATION = "In an iteration of the main loop, or in the whole body where there is no loop."
CODE_FACTS: tuple[Column[KernelRow], ...] = (
    VARIANT,
    VARIANT_TEXT,
    Column("techniques", "Techniques", "✓ the variant declares it, and the machine code has it; ✕ declared, but not in the "
           "machine code of this case; · found in the machine code (“not listed”: the variant does not declare it). "
           "Warp-level MMA: the tensor core instructions of one warp, which both wmma and mma.sync compile to.", units.OWN_TEXT,
           lambda row: format_proofs(row.case.proofs)),
    Column("registers", "Registers", "Of each thread. With more of them, fewer threads run at once.", units.COUNT,
           lambda row: row.kernel.facts.registers),
    Column("spills", "Spills", "Loads from and stores to local memory in the code: spilled registers, and arrays that are "
           "indexed with a variable.", units.COUNT, lambda row: row.kernel.facts.spill_loads + row.kernel.facts.spill_stores),
    Column("shared_bytes", "Shared memory", "Of each block, static and dynamic together.", units.BYTES,
           lambda row: row.kernel.shared_bytes),
    Column("occupancy", "Occupancy", "Warps that a multiprocessor holds at once, of the most it can hold.", units.SHARE,
           lambda row: row.kernel.occupancy.fraction if row.kernel.occupancy else None),
    Column("limited_by", "Limited by", "What allows no more blocks on a multiprocessor.", units.OWN_TEXT,
           lambda row: format_limits(row.kernel)),
    Column("waves", "Waves", "How often the grid fills the device. Unknown for clusters.", units.FACTOR,
           lambda row: format_waves(row.kernel)),
    Column("tail", "Last wave", "How much of the device the last, partial wave fills. A small share leaves most of it idle.",
           units.OWN_NUMBER, lambda row: format_tail(row.kernel)),
    Column("instructions", "Main loop", f"Instructions of a thread. {_OF_ITERATION}", units.COUNT,
           lambda row: row.kernel.role.work.executable),
    Column("accesses", "Memory", f"Asynchronous copies, and memory instructions with their width. {_OF_ITERATION}",
           units.OWN_TEXT, lambda row: format_memory(row.kernel.facts, row.kernel.role)),
    Column("tensor", "Tensor core", _OF_ITERATION, units.OWN_TEXT,
           lambda row: format_tensor(row.kernel.role.work.tensor) if row.kernel.role.work.tensor else None, optional=True),
    Column("kernel", "Kernel", "Its name in the compiled module.", units.TEXT, lambda row: row.kernel.facts.name,
           short=lambda row: Text(short_kernel_name(row.kernel.facts.name))),
    Column("threads", "Threads", "Of each block.", units.COUNT, lambda row: row.kernel.threads, View.WIDE),
)  # fmt: skip
