"""Checks of the flush: a read after it must come from memory. On a GPU, this must hold for lines of any eviction priority."""

from contextlib import nullcontext
from statistics import median
from typing import Any

import torch

from kernelviz.measure.selftest import children, kernels
from kernelviz.measure.selftest.workbench import Finding, Workbench, probe
from kernelviz.measure.timing.kernels import FLUSH_SHARE, persisting_bytes
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import Tracer
from kernelviz.ops import Launch

LEAST_OF_WARM = 1.2
"""A read from DRAM takes at least this many times as long as one from the L2 (5.5 against 3.4 us)."""
DRAM_SHARE = 0.98


@probe(
    "Is a read of 16 MiB longer behind a second, equal flush, also with lines that ask to be kept?",
    limit=0.03,
    unit="fraction",
)
def flush_by_time(at: Workbench) -> Finding:
    """If the flush left lines in the L2, the read after two flushes would take longer than after one."""
    timer, tracer = at.tracing()
    source = kernels.vectors(kernels.READ_BYTES // kernels.VECTOR_BYTES, at.where)
    second = kernels.read(kernels.vectors(FLUSH_SHARE * timer.instruments.l2_bytes // kernels.VECTOR_BYTES, at.where))
    figures: dict[str, float] = {}
    kinds = (*kernels.READS, "persisting")
    for kind in kinds:
        at.go_on()
        launch = _in_stream(kernels.read(source, "normal" if kind == "persisting" else kind))
        with kernels.persisting(source) if kind == "persisting" else nullcontext():
            once = at.timed(BoundLaunch(launch))
            twice = at.timed(BoundLaunch(launch, restore=second))
            behind_one, behind_two = at.together([once, twice])
            figures[f"{kind}_warm_s"] = _warm_s(tracer, launch)
        figures[f"{kind}_behind_one_s"] = behind_one.estimate
        figures[f"{kind}_behind_two_s"] = behind_two.estimate
    apart = max(abs(figures[f"{k}_behind_one_s"] / figures[f"{k}_behind_two_s"] - 1) for k in kinds)
    figures["persisting_limit_bytes"] = float(persisting_bytes())
    l2_is_shorter = all(figures[f"{k}_behind_one_s"] > LEAST_OF_WARM * figures[f"{k}_warm_s"] for k in kinds)
    message = "a read out of the L2 is not clearly shorter here, so that this check would show nothing"
    return Finding(
        apart,
        figures,
        apart <= 0.03 and l2_is_shorter and figures["persisting_limit_bytes"] == 0,
        "" if l2_is_shorter else message,
    )


def _in_stream(launch: Launch) -> Launch:
    """The same call, which raises while a graph is captured, because the access window belongs to a stream."""

    def called() -> Any:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("this check launches into its own stream")
        return launch()

    return called


def _warm_s(tracer: Tracer, launch: Launch, calls: int = 8) -> float:
    """The median duration of several such reads directly after one another."""

    def work() -> None:
        for _ in range(calls):
            launch()

    work()
    records = sorted(tracer.trace(work), key=lambda r: r.start_ns)
    return median((r.end_ns - r.start_ns) / 1e9 for r in records[1:])


@probe(
    "By the hardware's counters: which share of a read of 16 MiB, and of one of 64 KiB, behind the flush comes from DRAM?",
    limit=DRAM_SHARE,
    unit="fraction",
    at_most=False,
)
def flush_by_counters(at: Workbench) -> Finding:
    """ncu counts the bytes read from DRAM in its own process, which flushes as this one does."""
    metric = "dram__bytes_read.sum"
    options = ("--cache-control", "none", "--metrics", metric)
    rows = children.profiled(at, "kernelviz.measure.selftest.ncu_probe", (at.device.id, "reads"), options)
    groups = [(size, kind) for size in kernels.READ_SIZES_BYTES for kind in kernels.READ_KINDS]
    if len(rows) % len(groups):
        raise RuntimeError(f"ncu counted {len(rows)} reads of {len(groups)} kinds and sizes")
    each = len(rows) // len(groups)
    read_bytes = [children.quantity(row, metric) for row in rows]
    shares = {
        group: [read / group[0] for read in read_bytes[i * each : (i + 1) * each]] for i, group in enumerate(groups)
    }
    cold = {group: min(some) for group, some in shares.items() if group[1] != "warm"}
    warm = {size: max(shares[size, "warm"]) for size in kernels.READ_SIZES_BYTES}
    least = min(cold.values())
    figures = {f"{kind}_least_share{_suffix(size)}": share for (size, kind), share in cold.items()}
    figures |= {f"warm_share{_suffix(size)}": share for size, share in warm.items()}
    return Finding(least, figures, least >= DRAM_SHARE and max(warm.values()) < DRAM_SHARE)


def _suffix(size_bytes: int) -> str:
    """What tells the figures of the small read from those of the other."""
    return "_small" if size_bytes == kernels.SMALL_READ_BYTES else ""


@probe(
    "How many times as long is a read of an eighth of the cache behind the flush, compared with one whose data are in the cache?",
    limit=1.2,
    unit="fraction",
    at_most=False,
)
def flush_by_time_on_processor(at: Workbench) -> Finding:
    """The ratio of cold to warm; 1 would mean that the flush has no effect."""
    source = torch.randn(at.cache_bytes // 8 // 4)
    total = torch.empty((), dtype=source.dtype)
    read = BoundLaunch(lambda: torch.sum(source, dim=0, out=total))
    cold_s = at.figure(at.timed(read), 0.5).estimate
    warm_s = median(at.timer.calls(read).eager(20)[0])
    figures = {"cold_s": cold_s, "warm_s": warm_s, "read_bytes": 4.0 * source.numel()}
    return Finding(cold_s / warm_s, figures)
