"""The columns of hardware counters: one row for each kernel of a call, and one for the call where it has several."""

from dataclasses import dataclass

from kernelviz.core import Counters, KernelCounters, units
from kernelviz.core.counters import Pipe
from kernelviz.metrics.counters import CallCounters, call_counters
from kernelviz.tables.column import Column, View
from kernelviz.text.counters import describe_stalls

MOST_ROWS = 100
"""At most so many kernels of a call are listed; the row of the call has the sums of all."""


@dataclass(frozen=True)
class CountedKernel:
    """A row of the table: a kernel, or the call as a whole (`kernel` is None)."""

    call: CallCounters
    kernel: KernelCounters | None = None


def counted_kernels(counters: Counters) -> list[CountedKernel]:
    """The rows of the table: each kernel in the order of its launch, and the whole call if it has several."""
    listed = [CountedKernel(CallCounters((kernel,)), kernel) for kernel in counters.kernels[:MOST_ROWS]]
    whole = call_counters(counters)
    return [*listed, CountedKernel(whole)] if whole is not None and len(counters.kernels) > 1 else listed


def _dimensions(of: tuple[int, int, int] | None) -> str | None:
    return None if of is None else " × ".join(map(str, of))


def _pipe(name: Pipe, title: str, meaning: str) -> Column[CountedKernel]:
    return Column(
        f"{name}_fraction", title, f"{meaning} Busy, of the cycles of the kernel.", units.SHARE,
        lambda row: row.call.pipes.get(name), View.EVERYWHERE, optional=True,
    )  # fmt: skip


_WARPS = "Of a scheduler, mean over its active cycles."
COUNTERS: tuple[Column[CountedKernel], ...] = (
    Column("kernel", "Kernel", "Its name in the compiled module; the last row has the sums and means of all kernels.", units.TEXT,
           lambda row: f"{len(row.call.kernels)} kernels together" if row.kernel is None else row.kernel.kernel),
    Column("grid", "Grid", "Blocks in each direction.", units.OWN_NUMBER,
           lambda row: None if row.kernel is None else _dimensions(row.kernel.grid), View.WIDE, optional=True),
    Column("block", "Block", "Threads in each direction.", units.OWN_NUMBER,
           lambda row: None if row.kernel is None else _dimensions(row.kernel.block), View.WIDE, optional=True),
    Column("duration_s", "Duration (ncu)", "Under the profiler, which adds about 1 µs to each kernel and leaves the clock free. "
           "Times of cases are measured without it.", units.SECONDS, lambda row: row.call.duration_s, optional=True),
    Column("dram_read_bytes", "DRAM read", "From device memory into the L2.", units.TRAFFIC,
           lambda row: row.call.dram_read_bytes, optional=True),
    Column("dram_written_bytes", "DRAM written", "From the L2 into device memory. Without what stays in the L2.",
           units.TRAFFIC, lambda row: row.call.dram_written_bytes, optional=True),
    Column("l2_bytes", "L2", "All traffic of the L2.", units.TRAFFIC, lambda row: row.call.l2_bytes, optional=True),
    Column("l2_hit_fraction", "L2 hits", "Sectors of 32 bytes that were in the L2. It may exceed 100 % a little, because two "
           "passes read it.", units.SHARE, lambda row: row.call.l2_hit_fraction, optional=True),
    Column("l1_bytes", "L1", "All traffic of the L1.", units.TRAFFIC, lambda row: row.call.l1_bytes, optional=True),
    Column("l1_hit_fraction", "L1 hits", "Sectors of 32 bytes that were in the L1.", units.SHARE,
           lambda row: row.call.l1_hit_fraction, optional=True),
    Column("load_sectors_per_request", "Sectors per load", "32-byte sectors that a warp's load from global memory touches: 4 for "
           "neighbouring 4-byte values, 16 for 16-byte values, 32 if each thread reads elsewhere.", units.MEAN_COUNT,
           lambda row: row.call.load_sectors_per_request, optional=True),
    Column("store_sectors_per_request", "Sectors per store", "The same for stores.", units.MEAN_COUNT,
           lambda row: row.call.store_sectors_per_request, optional=True),
    _pipe("tensor", "Tensor pipe", "Tensor cores."),
    _pipe("fma", "FMA pipe", "Multiply and add."),
    _pipe("alu", "ALU pipe", "Integers and comparisons."),
    _pipe("xu", "XU pipe", "Special functions and conversions."),
    _pipe("lsu", "LSU pipe", "Loads and stores."),
    Column("issue_fraction", "Issued", "Instructions that a scheduler issues per active cycle, at most 100 %.", units.SHARE,
           lambda row: row.call.issue_fraction, optional=True),
    Column("eligible_warps", "Eligible warps", f"{_WARPS} They could issue; below 1 there is often none.", units.MEAN_COUNT,
           lambda row: row.call.eligible_warps, optional=True),
    Column("active_warps", "Active warps", _WARPS, units.MEAN_COUNT, lambda row: row.call.active_warps, optional=True),
    Column("stalls", "Waiting", "What most of the waiting warps wait for.", units.OWN_TEXT,
           lambda row: str(describe_stalls(row.call)) or None, optional=True),
)  # fmt: skip


def records(counters: Counters) -> list[dict[str, object]]:
    """The rows of the table in SI base units, for JSON and data frames. Unknown is None."""
    return [{column.name: column.read(row) for column in COUNTERS} for row in counted_kernels(counters)]
