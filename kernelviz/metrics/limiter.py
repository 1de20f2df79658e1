"""What limits a case, read from its time and what is known beside it: no hardware counter is asked.

The least times that its parts can take are held against the measured time t (cold or warm, as the caller chooses):

- launching: an empty kernel's own time, once for each kernel of the call, and the gaps between them (span - busy);
- moving: the problem's minimal bytes at the measured stream of the same read:write mix and size, in memory or in the L2;
- computing: the problem's flop at the measured rate of its precision.

The rule, in this order; the first that holds names the limiter:

1. **launch**: launching is 40 % of t or more, and the largest part. A kernel that only loads and stores a few KB takes 2.0 empty
   kernels (H200: 1.3-1.4 against 0.68 us; the rest is one trip to memory), so 2.5 of them, a margin of a quarter, are launching.
2. **L2**: a warm problem of at most the L2's size that reaches 60 % of the L2's stream, or moves faster than memory can.
3. **compute** or **bandwidth**: that part is 60 % of t or more. Below 60 % of its peak, Nsight Compute's own "speed of light"
   rule blames latency ("... below 60.0% of peak typically indicate latency issues"); the same line is drawn here.
4. **bandwidth** of a chain: two or more kernels of at least 5 % of t each, on a problem larger than the L2, that on average take
   at most 3 times as long as moving the problem's bytes once does. A step of an unfused chain reads and writes whole tensors, up
   to three (two operands and a result), or of a wider format than the result's; this is inferred, and the evidence says so.
5. **latency**: there is a positive reason why so little is under way at once. Fewer blocks than the GPU has multiprocessors; or a
   theoretical occupancy of at most 25 %; or t is short: two empty kernels and the largest part together are 70 % of it or more;
   or each wave of blocks passes in at most two empty kernels' time, about one trip to memory, so that a thread moves its few
   bytes and waits. Where an empty kernel's time is unknown this rule does not hold, since launching could be the reason too.
6. **bandwidth** of wasteful access: an op that only moves data (at most a quarter of a flop a byte), in one kernel, whose waves
   each take four times as long as its threads' trips to memory would, 4 bytes each way a trip: they stand in a queue, for bytes
   that nobody asked for. H200, a copy of 2^26 floats: 0.9 us a wave at 4 bytes a thread side by side, 5.9 us at 4 bytes a thread
   32 bytes apart. Inferred, and the evidence says so.
7. **unclear**: far from every roof and no such reason. Access that fetches more than it uses, repeated reads and waiting look
   alike from outside; counters (ncu) tell them apart.

Roofs are always the measured ones: a data sheet's are reached by nothing. What is not known is listed as missing; a rule that
needs it does not hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from kernelviz.core import POWER_CAP, Device, Kernel, Result, Roof, Timing, units
from kernelviz.metrics.figures import host_bound_words
from kernelviz.metrics.occupancy import Occupancy, occupancy
from kernelviz.metrics.roofline import Headline, compute_roof, intense, level_of, memory_roof
from kernelviz.metrics.roofs import roof_name, size_words

LimiterWord = Literal["launch", "latency", "bandwidth", "L2", "compute", "unclear"]
NEAR_ROOF = 0.6
MOSTLY_LAUNCH = 0.4
EXPLAINED = 0.7
LOW_OCCUPANCY = 0.25
MAIN_KERNEL = 0.05
CHAIN_STEP = 3.0
ONE_TRIP, QUEUED = 2.0, 4.0
"""Empty kernels' times in which a wave of blocks passes that only waits for memory once, and that stands in a queue."""
FEWEST_WAVES = 2.0
ONLY_MOVES_FLOP_PER_BYTE = 0.25
TRIP_BYTES, WIDE_TRIP_BYTES = 8, 32
"""What a thread loads and stores in one trip to memory: a word of 4 bytes each way at least, one of 16 at most."""
SLOW_CLOCK = 0.95
"""Below this share of the clock at which its roof was measured, a compute-limited case's clock is part of the evidence."""
WARM_HELPS = 0.9
"""Below this ratio of warm to cold, that the data lie in the L2 is part of the evidence."""

MEANINGS: dict[LimiterWord, str] = {
    "launch": "most of the time is what an empty kernel takes too: give one call more work, or fuse calls",
    "latency": "too little is under way at once: more bytes or blocks in flight, or a higher occupancy",
    "bandwidth": "memory moves its bytes about as fast as it can: move fewer, or fuse",
    "L2": "the L2 moves its bytes faster than memory could: keep more in registers and shared memory",
    "compute": "the arithmetic units work about as fast as they can: a lower precision, or less arithmetic",
    "unclear": "the facts at hand do not say: look at a profiler's counters (ncu)",
}
"""What follows from each word, in one line."""


@dataclass(frozen=True, slots=True)
class Limiter:
    """The word, the sentences it rests on (the deciding one first), and what would have been needed to say more."""

    word: LimiterWord
    evidence: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """As people say it.

        >>> Limiter("launch").words, Limiter("unclear").words
        ('launch-limited', 'unclear')
        """
        return self.word if self.word == "unclear" else f"{self.word}-limited"

    @property
    def because(self) -> str:
        """All of the evidence, and what is missing, on one line.

        >>> Limiter("unclear", ("29 % of a copy",), ("registers",)).because
        '29 % of a copy; unknown: registers'
        """
        unknown = (f"unknown: {', '.join(self.missing)}",) if self.missing else ()
        return "; ".join((*self.evidence, *unknown))

    @property
    def line(self) -> str:
        return f"{self.words}: {self.because}" if self.because else self.words


@dataclass(frozen=True, slots=True)
class _Wave:
    """The blocks that the GPU holds at once: how long they take before the next ones, and the problem's bytes for each thread."""

    time_s: float
    bytes_per_thread: float


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the rules look at; a part is None where it is unknown. `memory` and `compute` are the roofs that apply."""

    result: Result
    timing: Timing
    device: Device
    headline: Headline
    time_s: float
    empty_s: float | None
    gap_s: float
    memory: Roof | None
    moving_s: float | None
    dram_bytes_per_s: float | None
    compute: Roof | None
    computing_s: float | None
    missing: tuple[str, ...]

    @property
    def kernels(self) -> int:
        return max(len(self.result.kernels), 1)

    @property
    def launching_s(self) -> float:
        return 0.0 if self.empty_s is None else self.empty_s * self.kernels + self.gap_s

    @property
    def roofed_s(self) -> float:
        """The larger of moving and computing."""
        return max(self.moving_s or 0.0, self.computing_s or 0.0)

    @property
    def moved_bytes(self) -> int:
        return self.result.cost.moved_bytes if self.result.cost else 0

    @property
    def longest(self) -> Kernel | None:
        return max(self.result.kernels, key=lambda k: k.duration_s or 0.0, default=None)

    @property
    def held(self) -> Occupancy | None:
        """The occupancy of the call's longest kernel."""
        return None if self.longest is None else occupancy(self.longest, self.device)

    @property
    def wave(self) -> _Wave | None:
        """Of a call of one kernel; None where it is not known or all blocks fit in at once."""
        kernel, held = self.longest, self.held
        if kernel is None or held is None or len(self.result.kernels) != 1 or not kernel.grid or not kernel.block:
            return None
        if held.waves is None or held.waves < FEWEST_WAVES:
            return None
        threads = prod(kernel.grid) * prod(kernel.block)
        return _Wave(self.time_s / held.waves, self.moved_bytes / threads)


def limiter(result: Result, device: Device, roofs: Sequence[Roof], headline: Headline = "cold") -> Limiter:
    """What limits the case on that device, by the roofs measured there; `headline`: of its cold or its warm time."""
    timing = result.timing
    figure = None if timing is None else timing.device_cold_s if headline == "cold" else timing.device_warm_s
    if timing is None or figure is None:
        return Limiter("unclear", missing=(f"a correct {headline} time by the device's own stamps",))
    if device.kind != "cuda":
        return Limiter("unclear", missing=("an empty kernel, registers, shared memory: a processor has none of them",))
    facts = _facts(result, timing, device, roofs, headline, figure.estimate)
    for rule in (_launch, _in_l2, _near_roof, _chain, _latency, _queued):
        found = rule(facts)
        if found is not None:
            word, evidence = found
            return Limiter(word, (*evidence, *_beside(facts, word)))
    return Limiter("unclear", (*_far(facts), *_beside(facts, "unclear")), facts.missing)


def _facts(
    result: Result, timing: Timing, device: Device, roofs: Sequence[Roof], headline: Headline, time_s: float
) -> _Facts:
    cost = result.cost
    empty = next((r for r in roofs if r.name == "launch" and r.what == "empty_kernel" and r.time_s), None)
    dram = memory_roof(cost, roofs) if cost else None
    memory = memory_roof(cost, roofs, level_of(cost, roofs, headline)) if cost else None
    compute = compute_roof(result.problem, roofs, cost) if cost else None
    missing = []
    if empty is None:
        missing.append("an empty kernel's time (calibrate)")
    if cost is None:
        missing.append("the bytes and flop of the problem")
    elif memory is None:
        missing.append("the bandwidth of this device (calibrate)")
    if cost is not None and compute is None and intense(cost):
        missing.append(f"the {result.problem.precision} rate of this device (calibrate)")
    if all(occupancy(k, device) is None for k in result.kernels):
        missing.append("registers and shared memory of its kernels")
    rate = memory.bandwidth_bytes_per_s if memory else None
    flop_per_s = compute.rate_flop_per_s if compute else None
    busy = timing.busy_s.estimate if timing.busy_s and headline == "cold" else None
    return _Facts(
        result=result,
        timing=timing,
        device=device,
        headline=headline,
        time_s=time_s,
        empty_s=empty.time_s if empty else None,
        gap_s=max(time_s - busy, 0.0) if busy is not None else 0.0,
        memory=memory,
        moving_s=cost.moved_bytes / rate if cost and rate else None,
        dram_bytes_per_s=dram.bandwidth_bytes_per_s if dram else None,
        compute=compute,
        computing_s=cost.work_flop / flop_per_s if cost and flop_per_s else None,
        missing=tuple(missing),
    )


_Found = tuple[LimiterWord, tuple[str, ...]] | None


def _launch(facts: _Facts) -> _Found:
    if facts.empty_s is None or facts.launching_s < max(MOSTLY_LAUNCH * facts.time_s, facts.roofed_s):
        return None
    took, empty = units.seconds(facts.time_s, 3), units.seconds(facts.empty_s, 3)
    if facts.kernels == 1:
        return "launch", (f"{took} is {facts.time_s / facts.empty_s:.1f} × an empty kernel's {empty}",)
    gaps = f" and the gaps between them ({units.seconds(facts.gap_s, 3)})" if facts.gap_s else ""
    share = _share(facts.launching_s / facts.time_s)
    return "launch", (f"{facts.kernels} kernels of at least an empty one's {empty}{gaps} are {share} of {took}",)


def _in_l2(facts: _Facts) -> _Found:
    memory, moving_s, dram = facts.memory, facts.moving_s, facts.dram_bytes_per_s
    fits = facts.moved_bytes <= (facts.device.last_level_cache_bytes or 0)
    if facts.headline != "warm" or not fits or memory is None or moving_s is None or not dram:
        return None
    rate = facts.moved_bytes / facts.time_s
    if rate > dram:
        faster = (
            f"{units.rate(rate, 'B/s', 3)} is {rate / dram:.2f} × what memory delivers ({units.rate(dram, 'B/s', 3)})"
        )
        beside = f"{_share(moving_s / facts.time_s)} of the L2's stream" if memory.level == "l2" else ""
        return "L2", tuple(w for w in (faster, beside) if w)
    if memory.level == "l2" and moving_s >= NEAR_ROOF * facts.time_s:
        return "L2", (_moved(facts, moving_s, memory),)
    return None


def _near_roof(facts: _Facts) -> _Found:
    if facts.roofed_s < NEAR_ROOF * facts.time_s:
        return None
    if facts.computing_s is not None and facts.compute is not None and facts.computing_s >= (facts.moving_s or 0.0):
        return "compute", (_computed(facts, facts.computing_s, facts.compute), *_clock(facts, facts.compute))
    if facts.moving_s is None or facts.memory is None:
        return None
    return "bandwidth", (_moved(facts, facts.moving_s, facts.memory),)


def _chain(facts: _Facts) -> _Found:
    steps = [s for k in facts.result.kernels if (s := k.duration_s) is not None and s >= MAIN_KERNEL * facts.time_s]
    large = facts.moved_bytes > (facts.device.last_level_cache_bytes or 0)
    if len(steps) < 2 or not large or facts.moving_s is None:
        return None
    average_s = sum(steps) / len(steps)
    if average_s > CHAIN_STEP * facts.moving_s:
        return None
    once = units.seconds(facts.moving_s, 3)
    return "bandwidth", (
        f"{len(steps)} kernels pass results through memory: each takes {average_s / facts.moving_s:.1f} × the {once} "
        "in which the problem's bytes move once, as a step does that reads and writes whole tensors (inferred)",
        f"fused into one it would move {size_words(facts.moved_bytes)} once: {_share(facts.moving_s / facts.time_s)} of "
        f"{units.seconds(facts.time_s, 3)}",
    )


def _latency(facts: _Facts) -> _Found:
    if facts.empty_s is None:
        return None  # Launching cannot be told from it.
    reasons = []
    longest, sms = facts.longest, facts.device.multiprocessors
    if longest is not None and longest.grid and sms and (blocks := prod(longest.grid)) < sms:
        reasons.append(f"{blocks} block{'s' if blocks > 1 else ''} on {sms} multiprocessors")
    held = facts.held
    if held is not None and held.fraction <= LOW_OCCUPANCY:
        reasons.append(f"theoretical occupancy {_share(held.fraction)}: {held.limited_by}")
    if facts.roofed_s:
        floor_s = 2 * facts.empty_s * facts.kernels + facts.roofed_s
        if floor_s >= EXPLAINED * facts.time_s:
            trips = f"starting and one trip to memory ({units.seconds(2 * facts.empty_s * facts.kernels, 3)})"
            what = "moving" if (facts.moving_s or 0.0) >= (facts.computing_s or 0.0) else "computing"
            rest = f"{what} ({units.seconds(facts.roofed_s, 3)})"
            reasons.append(
                f"too short to fill the GPU: {trips} and {rest} make up its {units.seconds(facts.time_s, 3)}"
            )
    if held is not None and (wave := facts.wave) is not None:
        words = wave.bytes_per_thread / WIDE_TRIP_BYTES
        if wave.time_s <= ONE_TRIP * facts.empty_s * max(words, 1.0):
            reasons.append(
                f"a wave of blocks passes in {units.seconds(wave.time_s, 2)}, about what one trip to memory takes: too few bytes "
                f"are under way ({wave.bytes_per_thread:.0f} a thread)"
            )
    return ("latency", (*reasons, *_far(facts))) if reasons else None


def _queued(facts: _Facts) -> _Found:
    wave, moved = facts.wave, facts.moved_bytes
    if facts.empty_s is None or wave is None or not moved or facts.result.cost is None:
        return None
    trips = max(wave.bytes_per_thread / TRIP_BYTES, 1.0)
    if facts.result.cost.work_flop > ONLY_MOVES_FLOP_PER_BYTE * moved:
        return None
    if wave.time_s < QUEUED * trips * facts.empty_s:
        return None
    return "bandwidth", (
        f"a wave of blocks takes {units.seconds(wave.time_s, 2)} for {wave.bytes_per_thread:.0f} bytes a thread, "
        f"{wave.time_s / facts.empty_s:.0f} empty kernels: more is fetched than used, so threads queue for memory (inferred)",
        *_far(facts),
    )


def _far(facts: _Facts) -> tuple[str, ...]:
    """How far from each roof that is known, the nearest first."""
    said = []
    if facts.moving_s is not None and facts.memory is not None:
        said.append((facts.moving_s, _moved(facts, facts.moving_s, facts.memory)))
    if facts.computing_s is not None and facts.compute is not None and intense(facts.result.cost):
        said.append((facts.computing_s, _computed(facts, facts.computing_s, facts.compute)))
    return tuple(words for _, words in sorted(said, reverse=True))


def _beside(facts: _Facts, word: LimiterWord) -> tuple[str, ...]:
    """What else is known that bears on the word."""
    said = []
    cold, warm = facts.timing.device_cold_s, facts.timing.device_warm_s
    if cold and warm and (ratio := warm.estimate / cold.estimate) < WARM_HELPS and word != "launch":
        said.append(f"warm is {ratio:.2f} of cold")
    held = facts.held
    if word == "unclear" and held is not None:
        waves = f" in {held.waves:,.1f} waves of blocks" if held.waves is not None else ""
        said.append(f"theoretical occupancy {_share(held.fraction)} ({held.limited_by}){waves}")
        if facts.roofed_s:
            said.append(
                "enough is under way, so it is what each thread does: reads that repeat or that fetch more than is used, "
                "waiting for other threads, or instructions beside those counted"
            )
    if word in ("launch", "latency") and (bound := host_bound_words(facts.timing)):
        said.append(bound)
    return tuple(said)


def _moved(facts: _Facts, moving_s: float, memory: Roof) -> str:
    took = units.seconds(facts.time_s, 3)
    return f"moves {size_words(facts.moved_bytes)} in {took}: {_share(moving_s / facts.time_s)} of {_measured(memory)}"


def _computed(facts: _Facts, computing_s: float, compute: Roof) -> str:
    flop = facts.result.cost.work_flop if facts.result.cost else 0
    return (
        f"{units.rate(flop / facts.time_s, 'FLOP/s', 3)}: {_share(computing_s / facts.time_s)} of {_measured(compute)}"
    )


def _measured(roof: Roof) -> str:
    if roof.bandwidth_bytes_per_s is not None:
        return f"the measured {roof_name(roof)}, {units.rate(roof.bandwidth_bytes_per_s, 'B/s', 3)}"
    return f"the measured {roof_name(roof)}, {units.rate(roof.rate_flop_per_s, 'FLOP/s', 3)}"


def _clock(facts: _Facts, roof: Roof) -> tuple[str, ...]:
    """The SM clock, where the power cap or something else held it under the one of the roof."""
    figure = facts.timing.device_cold_s if facts.headline == "cold" else facts.timing.device_warm_s
    clocks = [b.clock_hz for b in (figure.blocks if figure else None) or () if b.clock_hz]
    if not clocks:
        return ()
    seen = facts.result.conditions
    capped = seen is not None and POWER_CAP in seen.event_reasons
    least = min(clocks)
    if capped:
        return (f"SM clock {units.clock(least)} under the power cap",)
    if roof.clock_hz and least < SLOW_CLOCK * roof.clock_hz:
        return (f"SM clock {units.clock(least)}, {units.clock(roof.clock_hz)} when its roof was measured",)
    return ()


def _share(fraction: float) -> str:
    """A share in whole percent; with a digit more below one percent, so that none reads as zero, and where a rule draws its line.

    >>> _share(0.71), _share(0.597), _share(0.004), _share(0.0001)
    ('71 %', '59.7 %', '0.4 %', '<0.1 %')
    """
    if fraction < 0.0005:
        return "<0.1 %"
    return units.percent(fraction, 1 if fraction < 0.0095 or abs(fraction - NEAR_ROOF) < 0.01 else 0)
