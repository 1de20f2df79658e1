"""The limiter of a case in text: the answer, what follows from it, its evidence, and what is unknown."""

from collections.abc import Callable, Mapping

from kernelviz.core import Roof, units
from kernelviz.metrics.limiter import ROOF_SHARE
from kernelviz.metrics.limiter_evidence import Evidence, EvidenceKind, Limiter, LimiterKind, Missing, MissingKind
from kernelviz.metrics.occupancy import ResidencyLimit, ResidencyLimitKind
from kernelviz.text.counters import PIPE_NAMES, STALL_NAMES
from kernelviz.text.roofs import format_bytes, format_roof_name
from kernelviz.text.text import Text, join

MEANINGS: dict[LimiterKind, str] = {
    "launch": "most of the time is launch overhead, as in an empty kernel. Give each call more work, or fuse calls.",
    "latency": "too little work is in flight to hide latency. Use more loads in flight, more blocks, or a higher occupancy.",
    "bandwidth": "moving data takes at least half of the time. Move fewer bytes, or fuse it with other kernels.",
    "L2": "the L2 delivers the data, faster than device memory could. Keep more data in registers and shared memory.",
    "compute": "arithmetic takes at least half of the time. Keep its units busier, or use a lower precision or less arithmetic.",
    "issue": "issuing instructions takes at least 60 % of the time of the schedulers or of loads and stores. Use wider loads, or "
    "fewer instructions for each byte.",
    "unclear": "Unknown; profile with ncu",
}
"""What follows from each answer, in one line."""
WITHOUT_ROOFS = "roofs that the answer needs are not measured on the device. Calibrate it, or profile with ncu."
"""What follows for an unclear case if no roof is known that it could be compared with."""
EVIDENCE: dict[EvidenceKind, str] = {
    "one_launch": "{time_s} is {ratio:.1f} × an empty kernel's {empty_s}",
    "launches": "{kernels} kernels of at least an empty one's {empty_s} are {launching_fraction} of {time_s}",
    "launches_and_gaps": "{kernels} kernels of at least an empty one's {empty_s} and the gaps between them ({gap_s}) are "
    "{launching_fraction} of {time_s}",
    "faster_than_memory": "{achieved_bytes_per_s} is {ratio:.2f} × what memory delivers ({memory_bytes_per_s})",
    "share_of_l2": "{moving_fraction} of the L2's stream",
    "moved": "moves {moved_bytes} in {time_s}: {moving_fraction} of the measured {roof}",
    "moved_least": "its least traffic, {moved_bytes} in {time_s}, is {moving_fraction} of the measured {roof}",
    "counted_dram": "ncu counted {counted_bytes} of traffic with device memory, {ratio:.2f} × the least: at the measured {roof}, "
    "it takes {counted_fraction} of the time",
    "counted_l2": "ncu counted {counted_bytes} of traffic with the L2: at the measured {roof}, it takes {counted_fraction} of "
    "the time",
    "busy_pipe": "the {pipe} is busy in {busy_fraction} of the cycles (ncu)",
    "busy_issue": "the schedulers issue an instruction in {busy_fraction} of their cycles (ncu)",
    "waiting_warps": "the schedulers issue an instruction in {busy_fraction} of their cycles; of the waiting warps, "
    "{stall_fraction} wait {state} (ncu)",
    "computed": "{achieved_flop_per_s}: {computing_fraction} of the measured {roof}",
    "chain": "{kernels} kernels pass results through memory: each takes {ratio:.1f} × the {moving_s} in which the problem's "
    "bytes move once, as a step does that reads and writes whole tensors (inferred)",
    "fused": "fused into one kernel it would move {moved_bytes} once: {moving_fraction} of {time_s}",
    "few_blocks": "{blocks} on {multiprocessors} multiprocessors",
    "uneven_blocks": "{blocks} on {multiprocessors} multiprocessors: some have a block more than the others, which then have no "
    "work, so that {working_fraction} of the multiprocessors' time can be used",
    "low_occupancy": "theoretical occupancy {occupancy_fraction}: {limited_by}",
    "small_grid": "the grid fills {resident_fraction} of the GPU: at most {threads} threads are on it at once",
    "few_in_flight": "at most {threads} threads ({resident_fraction} of the GPU) are resident; with one 16-byte vector in flight "
    "each, and {trip_s} for a trip to memory, they reach {reached_fraction} of the bandwidth (inferred)",
    "other_empty_kernel": "the time of an empty kernel, {empty_s}, is that of another GPU of this model",
    "one_call": "{time_s} is {ratio:.1f} × one torch call of one element, {call_s}",
    "rest_unexplained": "what takes the other {rest_fraction} of its time is not known: it may wait, move more bytes, or compute",
    "too_short": "too short to fill the GPU: starting and one access to memory ({starting_s}) and {part} ({part_s}) make up its "
    "{time_s}",
    "short_wave": "a wave of blocks passes in {wave_s}, about what one access to memory takes: too few bytes are in flight "
    "({bytes_per_thread:.0f} per thread)",
    "queued_wave": "a wave of blocks takes {wave_s} for {bytes_per_thread:.0f} bytes per thread, {ratio:.0f} empty kernels: more "
    "is fetched than used, so threads queue for memory (inferred)",
    "warm_is_faster": "warm is {ratio:.2f} of cold",
    "occupancy": "theoretical occupancy {occupancy_fraction} ({limited_by})",
    "occupancy_and_waves": "theoretical occupancy {occupancy_fraction} ({limited_by}) in {waves:,.1f} waves of blocks",
    "enough_in_flight": "enough work is in flight, so the reason is what each thread does: reads that repeat or that fetch more "
    "than is used, waiting for other threads, or instructions that are not counted as flop",
    "usual_occupancy": "kernels that compute need no higher occupancy, so the reason is what each thread does: waiting for other "
    "threads, reads that repeat, or instructions that are not counted as flop, such as exponentials",
    "host_bound": "CPU-bound: back-to-back calls take {ratio:.1f}× the kernel time",
    "capped_clock": "SM clock {clock_hz} under the power cap",
    "low_clock": "SM clock {clock_hz}, {roof_hz} when its roof was measured",
}
MISSING: dict[MissingKind, str] = {
    "device_time": "a correct {} time from the device's own timestamps",
    "gpu": "kernels, registers and shared memory, which a CPU does not have",
    "empty_kernel": "an empty kernel's time (calibrate)",
    "cost": "the bytes and flop of the problem",
    "bandwidth": "the bandwidth of this device (calibrate)",
    "compute_rate": "the {} rate of this device (calibrate)",
    "resources": "registers and shared memory of its kernels",
}
_RESIDENCY: dict[ResidencyLimitKind, str] = {
    "threads": "{:,} threads per block",
    "blocks": "{} blocks per SM",
    "registers": "{} registers per thread",
    "shared_memory": "{:.0f} KiB of shared memory per block",
}


def format_limiter(kind: LimiterKind) -> str:
    """The answer as an adjective.

    >>> format_limiter("launch"), format_limiter("unclear")
    ('launch-limited', 'unclear')
    """
    return kind if kind == "unclear" else f"{kind}-limited"


def describe_meaning(kind: LimiterKind, *, on_gpu: bool = True) -> str:
    """What follows from the answer. ncu profiles kernels of GPUs only.

    >>> describe_meaning("unclear"), describe_meaning("unclear", on_gpu=False)
    ('Unknown; profile with ncu', 'Unknown')
    """
    return "Unknown" if kind == "unclear" and not on_gpu else MEANINGS[kind]


def lacks_roofs(limiter: Limiter) -> bool:
    """Whether the limiter of a case is unclear because roofs that it needs are not measured.

    >>> lacks_roofs(Limiter("unclear", missing=(Missing("bandwidth"),))), lacks_roofs(Limiter("unclear"))
    (True, False)
    """
    return limiter.kind == "unclear" and any(m.kind in ("bandwidth", "compute_rate") for m in limiter.missing)


def describe_limiter_reason(limiter: Limiter) -> Text:
    """The evidence and what is missing, on one line.

    >>> ratio = Evidence("warm_is_faster", {"ratio": 0.71})
    >>> str(describe_limiter_reason(Limiter("unclear", (ratio,), (Missing("resources"),))))
    'warm is 0.71 of cold; unknown: registers and shared memory of its kernels'
    """
    missing = [Text("unknown: ") + join(", ", map(describe_missing, limiter.missing))] if limiter.missing else []
    return join("; ", [*map(describe_evidence, limiter.evidence), *missing])


def describe_missing(missing: Missing) -> Text:
    """A fact that is unknown."""
    return Text(MISSING[missing.kind].format(missing.which))


def describe_evidence(evidence: Evidence) -> Text:
    """A fact with its numbers.

    >>> str(describe_evidence(Evidence("few_blocks", {"blocks": 1, "multiprocessors": 132})))
    '1 block on 132 multiprocessors'
    """
    return Text(EVIDENCE[evidence.kind].format(**{n: _format(n, value) for n, value in evidence.values.items()}))


def format_residency_limit(limit: ResidencyLimit) -> str:
    """What allows no more resident blocks.

    >>> format_residency_limit(ResidencyLimit("registers", 128)), format_residency_limit(ResidencyLimit("threads", 1024))
    ('128 registers per thread', '1,024 threads per block')
    """
    return _RESIDENCY[limit.kind].format(limit.amount)


def _format(name: str, value: float | str | Roof | ResidencyLimit) -> object:
    """A value with the unit in its name; the template formats a value without a unit."""
    match value:
        case Roof():
            bandwidth = value.bandwidth_bytes_per_s
            unit = "FLOP/s" if bandwidth is None else "B/s"
            return f"{format_roof_name(value)}, {units.rate(bandwidth or value.rate_flop_per_s, unit, 3)}"
        case ResidencyLimit():
            return format_residency_limit(value)
        case str():
            return _NAMES.get(name, {}).get(value, value)
    to_text = next((to_text for suffix, to_text in _UNITS.items() if name.endswith(suffix)), None)
    return value if to_text is None else to_text(value)


def _share(fraction: float) -> str:
    """A share in whole percent; with one more digit below one percent, so that it is not shown as zero, and at the threshold.

    >>> _share(0.71), _share(0.597), _share(0.004), _share(0.0001)
    ('71 %', '59.7 %', '0.4 %', '<0.1 %')
    """
    if fraction < 0.0005:
        return "<0.1 %"
    return units.percent(fraction, 1 if fraction < 0.0095 or abs(fraction - ROOF_SHARE) < 0.01 else 0)


_NAMES: Mapping[str, Mapping[str, str]] = {
    "state": {str(state): name for state, name in STALL_NAMES.items()},
    "pipe": {str(pipe): name for pipe, name in PIPE_NAMES.items()},
}
"""The names of states of warps and of pipes, by the name of the value that holds them."""
_UNITS: dict[str, Callable[[float], str]] = {
    "wave_s": lambda value: units.seconds(value, 2),
    "_bytes_per_s": lambda value: units.rate(value, "B/s", 3),
    "_flop_per_s": lambda value: units.rate(value, "FLOP/s", 3),
    "_s": lambda value: units.seconds(value, 3),
    "_bytes": format_bytes,
    "_fraction": _share,
    "_hz": units.clock,
    "threads": lambda value: f"{value:,.0f}",
    "blocks": lambda value: f"{value:.0f} block{'s' if value != 1 else ''}",
}
"""How a number is written, by the end of its name; the first that applies."""
