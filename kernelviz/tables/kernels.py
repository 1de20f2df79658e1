"""The columns of the kernels that a call of each case launches."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Kernel, Result, units
from kernelviz.metrics.figures import times_s
from kernelviz.metrics.rows import Row
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View


@dataclass(frozen=True, slots=True)
class KernelOfCase:
    """A row of the table: one kernel of a case."""

    result: Result
    kernel: Kernel


def kernels(rows: Sequence[Row]) -> list[KernelOfCase]:
    """The rows of the table."""
    return [KernelOfCase(row.result, kernel) for row in rows for kernel in row.result.kernels]


def _dimensions(of: tuple[int, int, int] | None) -> str:
    return "unknown" if of is None else " × ".join(map(str, of))


LOCAL_HELP = (
    "Local memory of each thread, which is in device memory: registers that were spilled, and arrays that no register can "
    "hold. 0: nothing was spilled."
)
KERNELS: tuple[Column[KernelOfCase], ...] = (
    VARIANT,
    VARIANT_TEXT,
    Column("", "Kernel", "Its name in the compiled module.", units.TEXT, lambda row: row.kernel.name),
    Column("", "Span of the call", "From the first start to the last end of the call's kernels: device cold.", units.SECONDS,
           lambda row: times_s(row.result)["cold_s"], View.WIDE),
    Column("", "Busy", "The part of the span in which a kernel ran.", units.SECONDS,
           lambda row: times_s(row.result)["busy_s"], View.WIDE),
    Column("", "Traced duration", "Median over the samples, with what tracing adds; that is subtracted from the span only.",
           units.SECONDS, lambda row: row.kernel.duration_s),
    Column("", "Grid", "Blocks in each direction.", units.OWN_NUMBER, lambda row: _dimensions(row.kernel.grid)),
    Column("", "Block", "Threads in each direction.", units.OWN_NUMBER, lambda row: _dimensions(row.kernel.block)),
    Column("", "Registers per thread", "Of 65,536 on a multiprocessor: with more per thread, fewer threads run at once.",
           units.COUNT, lambda row: row.kernel.registers_per_thread),
    Column("", "Shared memory", "Of each block, static and dynamic together.", units.BYTES,
           lambda row: row.kernel.shared_memory_bytes),
    Column("", "Local memory per thread", LOCAL_HELP, units.BYTES, lambda row: row.kernel.local_memory_bytes),
)  # fmt: skip
