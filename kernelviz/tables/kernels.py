"""The columns of the kernels that a call of each case launches."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from kernelviz.core import Kernel, Result, units
from kernelviz.metrics.figures import times_s
from kernelviz.metrics.rows import Row
from kernelviz.tables.column import VARIANT, VARIANT_TEXT, Column, View


@dataclass(frozen=True, slots=True)
class KernelOfCase:
    """A row of the table: one kernel of a case."""

    result: Result
    kernel: Kernel


MOST_OF_CASE, MOST_TOGETHER = 100, 2_000
"""At most so many kernels of a case are listed, and fewer if there are many cases: a browser takes seconds for 10,000 rows."""


def kernels(rows: Sequence[Row]) -> list[KernelOfCase]:
    """The rows of the table: the longest kernels of each case in the order of their launch, and one row for all its others."""
    launched = [row.result for row in rows if row.result.kernels][:MOST_TOGETHER]
    most = min(MOST_OF_CASE, max(1, MOST_TOGETHER // max(1, len(launched))))
    return [KernelOfCase(result, kernel) for result in launched for kernel in _longest(result.kernels, most)]


def shortening(rows: Sequence[Row]) -> str:
    """That some kernels are not listed one by one; empty if all are."""
    launched, listed = sum(len(row.result.kernels) for row in rows), len(kernels(rows))
    if launched <= listed:
        return ""
    return (
        f"The calls launch {launched:,} kernels. The longest of each case are listed, at most {MOST_OF_CASE} of a case and about "
        f"{MOST_TOGETHER:,} together; one line sums up the others. The JSON document has all of them."
    )


def longer_while_traced(rows: Sequence[Row]) -> str:
    """Why durations are longer than the busy time of the call, from which the cost of tracing is subtracted; empty if none is."""
    busy = (
        (times_s(row.result)["busy_s"], [kernel.duration_s or 0.0 for kernel in row.result.kernels]) for row in rows
    )
    if not any(busy_s is not None and durations and max(durations) > busy_s for busy_s, durations in busy):
        return ""
    return (
        "Some traced durations are longer than the call: a tracer makes these kernels longer. What it adds is subtracted from "
        "the span and the busy time, and cannot be divided among kernels."
    )


def _longest(of: Sequence[Kernel], most: int) -> Sequence[Kernel]:
    if len(of) <= most + 1:  # a line for one other kernel would save nothing
        return of
    longest = sorted(nlargest(most, range(len(of)), key=lambda i: of[i].duration_s or 0.0))
    chosen = set(longest)
    durations = [kernel.duration_s for i, kernel in enumerate(of) if i not in chosen]
    known = [duration_s for duration_s in durations if duration_s is not None]
    remainder = Kernel(
        name=f"{len(durations):,} shorter kernels together",
        duration_s=sum(known) if len(known) == len(durations) else None,
    )
    return [*(of[i] for i in longest), remainder]


def _dimensions(of: tuple[int, int, int] | None) -> str:
    return "unknown" if of is None else " × ".join(map(str, of))


REGISTERS_HELP = (
    "As the driver allocates them, at least 16, of 65,536 on a multiprocessor: with more, fewer threads run at once."
)
LOCAL_HELP = (
    "Local memory of each thread, which is in device memory: registers that were spilled, and arrays that no register can "
    "hold. Unknown where the tracer says 0, because it also says so of kernels that have some; the facts of the code say it."
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
    Column("", "Registers per thread", REGISTERS_HELP, units.COUNT, lambda row: row.kernel.registers_per_thread),
    Column("", "Shared memory", "Of each block, static and dynamic together.", units.BYTES,
           lambda row: row.kernel.shared_memory_bytes),
    Column("", "Local memory per thread", LOCAL_HELP, units.BYTES, lambda row: row.kernel.local_memory_bytes or None),
)  # fmt: skip
