"""Hardware counters in text: how they were read, what they say, and why they could not be read."""

from collections.abc import Mapping

from kernelviz.core import Cost, Counters, units
from kernelviz.core import uncounted as u
from kernelviz.core.counters import Pipe, StallReason
from kernelviz.metrics.counters import CallCounters, call_counters, traffic_ratio
from kernelviz.text.roofs import format_bytes
from kernelviz.text.text import Template, Text, fill, join

PERMISSION_LINES = (
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
    "docker run --cap-add SYS_ADMIN --user root …",
)
"""What allows every user to read counters: a line for /etc/modprobe.d (then load the driver again), or an option of a container.
NVIDIA, "Permission issue with Performance Counters" (ERR_NVGPUCTRPERM)."""
_REASONS: Mapping[type, Template] = {
    u.NoCountersHere: "hardware counters are read on NVIDIA GPUs only, and {0.device} is not one that can be used",
    u.NoBackwardLaunch: "counters of a backward pass are not read, because `kernelviz launch` calls forward passes only",
    u.NoProfiler: (
        "{0.tool} (Nsight Compute) is not on the PATH; install Nsight Compute, or add its folder to the PATH of the process that "
        "measures"
    ),
    u.NotPermitted: (
        "this user may not read the GPU's counters (ERR_NVGPUCTRPERM). An administrator allows it with the line "
        f"`{PERMISSION_LINES[0]}` in /etc/modprobe.d/nvidia.conf and a restart, in a container with "
        "`--cap-add SYS_ADMIN --user root`"
    ),
    u.CountersBusy: "another profiler or monitor (DCGM, nsys, ncu) uses the GPU's counters; end it, then try again",
    u.ProfilerNotLoaded: "ncu cannot load its library into the program (LibraryNotLoaded), as in some sandboxes",
    u.ProfilerFailed: "ncu ended with exit code {0.exit_code}",
    u.TookTooLong: "ncu had not ended after {0.seconds:.0f} s and was stopped",
    u.NothingCounted: "ncu saw no kernel of this call; a copy or a memset of the driver is not a kernel",
    u.OutputUnreadable: "the output of ncu cannot be read",
    u.OtherCode: "the source or the configuration of the variant has changed since it was measured; measure the case again",
    u.CountersCancelled: "cancelled",
}
STALL_NAMES: Mapping[StallReason, str] = {
    "barrier": "for other threads of the block (barrier)",
    "branch_resolving": "for a branch to be resolved",
    "dispatch_stall": "for the dispatcher",
    "drain": "for stores to be written before the end",
    "gmma": "for a warpgroup's matrix instruction",
    "imc_miss": "for a constant that is not in its cache",
    "lg_throttle": "for the queue of loads and stores",
    "long_scoreboard": "for data from L1, L2 or device memory",
    "math_pipe_throttle": "for a busy pipe",
    "membar": "for a memory barrier",
    "mio_throttle": "for the queue of shared memory and special functions",
    "misc": "for another reason",
    "no_instruction": "for the next instruction to be fetched",
    "not_selected": "could issue, but another warp was chosen",
    "selected": "issues",
    "short_scoreboard": "for shared memory or a special function",
    "sleeping": "in a sleep instruction",
    "tex_throttle": "for the queue of the texture unit",
    "wait": "for a fixed latency of the instruction before",
}
"""What a warp waits for in each state. Names of states: Nsight Compute Documentation, "Metrics Reference", warp stall reasons."""
PIPE_NAMES: Mapping[Pipe, str] = {
    "fma": "FMA pipe (multiply and add)",
    "alu": "ALU pipe (integers, comparisons)",
    "xu": "XU pipe (special functions)",
    "lsu": "LSU pipe (loads and stores)",
    "tensor": "tensor pipe",
}
_REPLAY = {
    "application": "the process is started again for each pass",
    "kernel": "the kernel is repeated for each pass, and only the first pass finds flushed caches",
}


def describe_uncounted(uncounted: u.Uncounted) -> Text:
    """Why counters could not be read, with the line that would allow it.

    >>> str(describe_uncounted(u.Uncounted(reason=u.ProfilerFailed(exit_code=9), message="no GPU")))
    'ncu ended with exit code 9\\nno GPU'
    """
    reason = fill(_REASONS, uncounted.reason)
    return reason + f"\n{uncounted.message}" if uncounted.message else reason


def describe_counting(counters: Counters) -> Text:
    """How the counters were read.

    >>> str(describe_counting(Counters(kernels=(), version="2025.3", cold=True, replay="application")))
    'ncu 2025.3, one call after a flush of the caches, in a process of its own, clock not locked; the process is started again \
for each pass'
    >>> str(describe_counting(Counters(kernels=(), launches=3)))
    'ncu, imported: the launch with the median duration of 3; state of caches and clock unknown'
    """
    tool = join(" ", (counters.tool, counters.version or ""))
    if counters.cold is None:
        which = f"the launch with the median duration of {counters.launches}" if counters.launches > 1 else "one launch"
        return tool + f", imported: {which}; state of caches and clock unknown"
    flushed = "one call after a flush of the caches" if counters.cold else "one call"
    method = tool + f", {flushed}, in a process of its own, clock not locked"
    return method + f"; {_REPLAY[counters.replay]}" if counters.replay else method


def describe_traffic(cost: Cost | None, counters: Counters | None) -> Text:
    """The measured traffic of device memory, compared with the least traffic. Empty if it is unknown.

    >>> from kernelviz.core import KernelCounters
    >>> kernel = KernelCounters(kernel="k", dram_read_bytes=150_000_000, dram_written_bytes=50_000_000)
    >>> str(describe_traffic(Cost(work_flop=0, read_bytes=50_000_000, written_bytes=50_000_000), Counters(kernels=(kernel,))))
    'ncu counted 200 MB between L2 and device memory, 2.00 × the least traffic (100 MB)'
    """
    call, ratio = call_counters(counters), traffic_ratio(cost, counters)
    if call is None or call.dram_bytes is None:
        return Text("")
    counted = f"ncu counted {format_bytes(call.dram_bytes)} between L2 and device memory"
    if ratio is None or cost is None:
        return Text(counted)
    return Text(f"{counted}, {ratio:.2f} × the least traffic ({format_bytes(cost.moved_bytes)})")


def describe_sectors(call: CallCounters) -> Text:
    """How many 32-byte sectors a warp's loads and stores touch. Empty if it is unknown."""
    loads, stores = call.load_sectors_per_request, call.store_sectors_per_request
    parts = [
        f"a load of a warp touches {loads:.1f} sectors of 32 bytes" if loads is not None else "",
        f"a store {stores:.1f}" if stores is not None else "",
    ]
    return join(", ", parts)


def describe_stalls(call: CallCounters, most: int = 3) -> Text:
    """The states in which warps wait, the most frequent first. Empty if nothing is known."""
    waiting = {reason: warps for reason, warps in call.stalls.items() if reason not in ("selected", "not_selected")}
    total = sum(waiting.values())
    if not total:
        return Text("")
    first = sorted(waiting, key=lambda reason: -waiting[reason])[:most]
    listed = join(", ", [f"{units.percent(waiting[r] / total, 0)} {STALL_NAMES[r]}" for r in first if waiting[r] > 0])
    return "waiting warps wait " + listed
