"""The metrics that kernelviz asks ncu for, and the field of `KernelCounters` that each of them fills.

Names: Nsight Compute Documentation, "Metrics Reference" and "Metrics Structure" (unit__counter, then the roll-up and sub-metric),
and the section files that come with ncu: MemoryWorkloadAnalysis, ComputeWorkloadAnalysis, SchedulerStatistics and
WarpStateStatistics. They were compared with lists of metrics that other projects published for an A100, an H100 and a B200. This
list was not tried on a GPU yet, except for the metrics that the selftest uses. A name that an ncu does not know for a GPU is
left out, and its field stays unknown: ncu names it in an error and is started again without it.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from kernelviz.core.counters import Scope, StallReason

Quantity = Literal["time", "bytes", "frequency", "count", "sectors", "share", "ratio"]
"""What a metric counts. ``sectors``: of 32 bytes each, which the field states in bytes. ``share``: ncu writes percent."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of ncu and the field that it fills. If several metrics of a kernel fill one field, the largest value counts.

    `labels`: what the details page of ncu calls it, for files that were not written with `--page raw`. `requested`: whether
    kernelviz asks for it; others are only read in files.
    """

    name: str
    field: str
    quantity: Quantity
    labels: tuple[str, ...] = ()
    requested: bool = True
    from_capability: tuple[int, int] = (0, 0)
    """The first compute capability for which kernelviz asks for it."""
    before_capability: tuple[int, int] = (99, 0)
    """The first compute capability that does not have it any more."""

    @property
    def is_traffic(self) -> bool:
        """Whether it belongs to the scope ``traffic``."""
        return self.field in _TRAFFIC


_OF_PEAK = "avg.pct_of_peak_sustained_elapsed"
_STALLS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_TRAFFIC = frozenset(
    {"duration_s", "clock_hz", "registers_per_thread", "dram_read_bytes", "dram_written_bytes", "l2_bytes", "load_requests",
     "load_sectors", "store_requests", "store_sectors"}
)  # fmt: skip

METRICS: tuple[Metric, ...] = (
    Metric("gpu__time_duration.sum", "duration_s", "time", ("Duration",)),
    Metric("gpc__cycles_elapsed.avg.per_second", "clock_hz", "frequency"),
    Metric("smsp__cycles_elapsed.avg.per_second", "clock_hz", "frequency", ("SM Frequency",), requested=False),
    Metric("launch__registers_per_thread", "registers_per_thread", "count", ("Registers Per Thread",)),
    Metric("dram__bytes_read.sum", "dram_read_bytes", "bytes"),
    Metric("dram__bytes_write.sum", "dram_written_bytes", "bytes"),
    Metric("dram__bytes_op_read.sum", "dram_read_bytes", "bytes", requested=False),
    Metric("dram__bytes_op_write.sum", "dram_written_bytes", "bytes", requested=False),
    Metric("lts__t_bytes.sum", "l2_bytes", "bytes"),
    Metric("lts__t_sectors_op_read.sum", "l2_read_bytes", "sectors"),
    Metric("lts__t_sectors_op_write.sum", "l2_written_bytes", "sectors"),
    Metric("lts__t_sector_hit_rate.pct", "l2_hit_fraction", "share", ("L2 Hit Rate",)),
    Metric("l1tex__t_bytes.sum", "l1_bytes", "bytes"),
    Metric("l1tex__t_sector_hit_rate.pct", "l1_hit_fraction", "share", ("L1/TEX Hit Rate",)),
    Metric("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "load_requests", "count"),
    Metric("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "load_sectors", "count"),
    Metric("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "store_requests", "count"),
    Metric("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "store_sectors", "count"),
    Metric(f"sm__inst_executed_pipe_fma.{_OF_PEAK}", "fma_fraction", "share"),
    Metric(f"sm__inst_executed_pipe_alu.{_OF_PEAK}", "alu_fraction", "share"),
    Metric(f"sm__inst_executed_pipe_xu.{_OF_PEAK}", "xu_fraction", "share"),
    Metric(f"sm__inst_executed_pipe_lsu.{_OF_PEAK}", "lsu_fraction", "share"),
    Metric(f"sm__pipe_tensor_cycles_active.{_OF_PEAK}", "tensor_fraction", "share"),
    Metric(f"sm__pipe_tc_cycles_active.{_OF_PEAK}", "tensor_fraction", "share", from_capability=(10, 0)),
    Metric("smsp__issue_active.avg.per_cycle_active", "issue_fraction", "ratio", ("Issued Warp Per Scheduler",)),
    Metric("smsp__warps_active.avg.per_cycle_active", "active_warps", "ratio", ("Active Warps Per Scheduler",)),
    Metric("smsp__warps_eligible.avg.per_cycle_active", "eligible_warps", "ratio", ("Eligible Warps Per Scheduler",)),
    *(
        Metric(_STALLS.format(reason), f"stalls.{reason}", "ratio")
        for reason in get_args(StallReason) if reason != "gmma"
    ),
    # Waiting for wgmma, which only compute capability 9.0 has.
    Metric(_STALLS.format("gmma"), "stalls.gmma", "ratio", from_capability=(9, 0), before_capability=(10, 0)),
)  # fmt: skip
STALLS_OF_FIELDS: dict[str, StallReason] = {f"stalls.{reason}": reason for reason in get_args(StallReason)}

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
"""The metrics by name and, for the details page, by label."""
BY_NAME |= {label: metric for metric in METRICS for label in metric.labels}


def requested_metrics(capability: tuple[int, int] | None, scope: Scope = "all") -> tuple[str, ...]:
    """The names that kernelviz asks for on a GPU of this compute capability.

    >>> [len(requested_metrics(capability)) for capability in ((8, 0), (9, 0), (10, 0))]
    [41, 42, 42]
    >>> "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed" in requested_metrics((9, 0))
    False
    """
    known = capability or (0, 0)
    return tuple(
        metric.name
        for metric in METRICS
        if metric.requested
        and metric.from_capability <= known < metric.before_capability
        and (scope == "all" or metric.is_traffic)
    )
