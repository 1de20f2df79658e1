"""What limits a case. The answer is derived from its time, from facts about its launch, and from hardware counters if there are
any (`kernelviz counters`).

The shortest times that its parts can take are compared with the measured time t (cold or warm, as the caller chooses):

- launching: the time of an empty kernel for each kernel of the call, and the gaps between kernels (span - busy);
- moving: the minimal bytes of the problem at the measured stream of the same read:write mix and size, in memory or in the L2;
- computing: the flop of the problem at the measured rate of its precision.

The rules are applied in this order. The first one that holds gives the answer:

1. **launch**: launching is 40 % of t or more, and the largest part. A kernel that only loads and stores a few KB takes as long
   as 2.0 empty kernels (H200: 1.3-1.4 us against 0.68 us; the rest is one trip to memory). So up to 2.5 empty kernels, a margin
   of a quarter, count as launching.
2. **L2**: a warm problem of at most the size of the L2 that reaches 60 % of the L2's stream, or moves faster than memory can.
3. **compute** or **bandwidth**: that part is 60 % of t or more. Nsight Compute's "speed of light" rule has the same threshold:
   below 60 % of the peak it names latency ("... below 60.0% of peak typically indicate latency issues").
   With counters, the measured traffic of memory and of the L2 counts, too: **bandwidth** or **L2** if it takes 60 % of t or
   more at the measured stream, **compute** if a pipe of arithmetic (fma, alu, xu, tensor) is busy in 60 % of the cycles or more,
   **issue** if the pipe of loads and stores is, or if the schedulers issue in 60 % of their cycles or more.
4. **bandwidth** of a chain: two or more kernels of at least 5 % of t each, on a problem larger than the L2, that on average take
   at most as long as moving three whole tensors of 4 bytes an element, and the longest at most a quarter longer. A step of an
   unfused chain reads and writes up to three tensors (two operands and a result), in fp32 where it computes in fp32. That is 3
   times the bytes of a problem that reads and writes 2 bytes an element, and 4 times if it reads 2 and writes 1. For an op
   whose result is no whole tensor it is taken as 3 times. This is inferred, and the evidence says so.
   It does not apply to a problem right of the ridge (attention, a matrix product), whose kernels compute.
5. **latency**: there is a reason why little work is in flight.
   - The grid leaves a quarter of the multiprocessors or more without work: it has at most 75 % as many blocks. Right of the
     ridge also if all blocks run at once and the multiprocessors with one block more than the others take so much longer: 196
     blocks on 132 multiprocessors are twice the work for 64 of them as for the other 68, which is 74 % as well. With more
     multiprocessors at work, a kernel could reach three quarters of the roof, so that its grid does not explain why it is below
     60 %: it is compute or bandwidth limited from half of the roof on (rule 7), else unclear. Persistent kernels of cuDNN start
     120 blocks on 132 multiprocessors, whatever the size.
   - At most 25 % of the warps that the GPU can hold are on it at once, by the theoretical occupancy or because the grid is small.
   - By Little's law, bandwidth is bytes in flight over the time of a trip to memory. If every resident thread had one 16-byte
     vector in flight, the bandwidth would stay below 60 % of the roof, and the case does not exceed it. An empty kernel takes
     about as long as a trip (H200: 0.68 us), so the limit is there at 41 % of the threads.
   - t is short: two empty kernels and the largest part together are 70 % of it or more.
   - Each wave of blocks takes at most as long as two empty kernels, so that a thread moves its few bytes and waits.
   The second, third and last reason are about bytes in flight, so they say nothing about a problem right of the ridge: one warp
   of each scheduler keeps a tensor core busy. The matrix product by which the rate of an H200 is measured, and all fast kernels
   of attention, run at an occupancy of 12 to 25 %, because their tiles fill registers and shared memory.
   If the time of an empty kernel is unknown, this rule does not apply, since launching could be the reason too.
6. **bandwidth** of wasteful access: an op that only moves data (at most a quarter of a flop for each byte), in one kernel. Each
   of its waves takes three times as long as the trips to memory of its threads would with 4 bytes each way a trip: the threads
   queue for bytes that the problem does not need. H200, a copy of 2^26 floats: a wave takes 0.9 us with contiguous 4 bytes a
   thread (1.3 trips) and 5.9 us with 4 bytes a thread at a stride of 32 bytes (8.5 trips); 3.1 to 3.9 trips where only the
   reads have that stride. This is inferred, and the evidence says so.
7. **compute**, **bandwidth** or **L2** again, if that part is half of t or more: it outweighs everything that does not overlap
   with it. The fewest bytes of the problem are counted, and the kernel moves these or more, so its real traffic is closer to
   the roof than that. The evidence says that the rest is not explained.
8. **latency** by counters: no unit is busy enough for rule 3, so the warps wait. The evidence says for what.
9. **unclear**: far from every roof and no such reason. Access that fetches more than it uses, repeated reads, waiting and
   instructions that are not counted as flop cannot be distinguished without counters (ncu).

Counters are of a cold call, so they say nothing about the warm time. Rules 4 and 6 infer traffic that was not measured; they do
not apply where it was.

On a CPU nothing is known of kernels. There, a case is **launch** limited if it takes at most 2.5 times as long as one torch call
of one element, and **compute** or **bandwidth** limited by rule 3.

The roofs are always the measured ones, since no kernel reaches those of a data sheet. What is unknown is listed as missing, and
a rule that needs it does not apply. `kernelviz.text.limiter` turns the facts into text.
"""

from collections.abc import Sequence

from kernelviz.core import POWER_CAP, Device, Result, Roof
from kernelviz.core.dtypes import DTYPES
from kernelviz.core.run import SameModelRoof
from kernelviz.metrics.figures import Headline, back_to_back_over_warm, figure_of, host_bound
from kernelviz.metrics.limiter_counters import counted_evidence, units_in_use, waiting
from kernelviz.metrics.limiter_evidence import Evidence, EvidenceKind, Limiter, LimiterKind, Missing, Values
from kernelviz.metrics.limiter_facts import CaseFacts, case_facts
from kernelviz.metrics.occupancy import Occupancy, occupancy
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.metrics.roofline import intense

ROOF_SHARE, HALF = 0.6, 0.5
MOSTLY_LAUNCH = 0.4
EXPLAINED = 0.7
LOW_OCCUPANCY = 0.25
MOSTLY_WORKING = 0.75
"""A grid that gives work to a larger share of the multiprocessors is no reason for latency. It is above ROOF_SHARE, because the
multiprocessors that work could reach this share of the roof."""
MAIN_KERNEL = 0.05
STEP_BYTES = 12
"""What a step of a chain moves for each element at most: two operands and a result in fp32."""
LONGEST_STEP = 1.25
WHOLE_RESULT = 0.25
"""An op that writes less than this share of what it reads returns no tensor of the size of its input."""
VECTOR_BYTES = 16
"""The widest load of a thread, of which one is assumed to be in flight."""
ONE_TRIP, QUEUED = 2.0, 3.0
"""Duration of a wave of blocks in empty kernels: of one that waits for memory once, and of one whose threads queue for memory."""
ONLY_MOVES_FLOP_PER_BYTE = 0.25
TRIP_BYTES, WIDE_TRIP_BYTES = 8, 32
"""What a thread loads and stores in one trip to memory: at least 4 bytes each way, at most a 16-byte vector each way."""
SLOW_CLOCK = 0.95
"""Below this share of the clock at which its roof was measured, the clock of a compute-limited case is part of the evidence."""
WARM_HELPS = 0.9
"""Below this ratio of warm to cold, the ratio is part of the evidence."""

_Answer = tuple[LimiterKind, tuple[Evidence, ...]] | None


def limiter(result: Result, device: Device, roofs: Sequence[Roof], headline: Headline = "cold") -> Limiter:
    """What limits the case on that device, by the roofs measured there. `headline`: whether its cold or its warm time counts."""
    figure = figure_of(result.timing, headline)
    if figure is None:
        return Limiter("unclear", missing=(Missing("device_time", headline),))
    facts = case_facts(result, figure, device, roofs, headline)
    if device.kind != "cuda":
        return _of_cpu(facts, roofs)
    for rule in (_launch, _in_l2, _at_roof, _in_use, _chain, _latency, _queued, _half, _waiting):
        answer = rule(facts)
        if answer is not None:
            kind, evidence = answer
            return Limiter(kind, (*evidence, *counted_evidence(facts, evidence), *_context(facts, kind)))
    return Limiter("unclear", (*_distances(facts), *_context(facts, "unclear")), _missing(facts))


def _of_cpu(facts: CaseFacts, roofs: Sequence[Roof]) -> Limiter:
    call_s = next((r.time_s for r in roofs if r.what == "torch_call" and r.time_s and not is_wide(r)), None)
    if call_s is not None and MOSTLY_LAUNCH * facts.time_s <= call_s and facts.roofed_s <= call_s:
        values = {"time_s": facts.time_s, "call_s": call_s, "ratio": facts.time_s / call_s}
        return Limiter("launch", (Evidence("one_call", values),))
    answer = _at_roof(facts) or _half(facts)
    return Limiter(*answer) if answer is not None else Limiter("unclear", _distances(facts), (Missing("gpu"),))


def _missing(facts: CaseFacts) -> tuple[Missing, ...]:
    cost = facts.result.cost
    unknown = {
        Missing("empty_kernel"): facts.empty_s is None,
        Missing("cost"): cost is None,
        Missing("bandwidth"): cost is not None and facts.memory is None,
        Missing("compute_rate", facts.result.problem.precision): facts.compute is None and intense(cost),
        Missing("resources"): all(occupancy(k, facts.device) is None for k in facts.result.kernels),
    }
    return tuple(fact for fact, is_unknown in unknown.items() if is_unknown)


def _launch(facts: CaseFacts) -> _Answer:
    if facts.empty_s is None or facts.launching_s < max(MOSTLY_LAUNCH * facts.time_s, facts.roofed_s):
        return None
    kind: EvidenceKind = "one_launch" if facts.kernels == 1 else "launches_and_gaps" if facts.gap_s else "launches"
    values = {
        "kernels": facts.kernels,
        "time_s": facts.time_s,
        "empty_s": facts.empty_s,
        "gap_s": facts.gap_s,
        "ratio": facts.time_s / facts.empty_s,
        "launching_fraction": facts.of_time(facts.launching_s),
    }
    return "launch", (Evidence(kind, values),)


def _in_l2(facts: CaseFacts) -> _Answer:
    memory, moving_s, dram = facts.memory, facts.moving_s, facts.dram_bytes_per_s
    if facts.headline != "warm" or not facts.fits_in_l2 or memory is None or moving_s is None or not dram:
        return None
    rate = facts.moved_bytes / facts.time_s
    if rate > dram:
        values = {"achieved_bytes_per_s": rate, "memory_bytes_per_s": dram, "ratio": rate / dram}
        of_l2 = Evidence("share_of_l2", {"moving_fraction": facts.of_time(moving_s)})
        return "L2", (Evidence("faster_than_memory", values), *((of_l2,) if memory.level == "l2" else ()))
    return ("L2", _moved(facts)) if memory.level == "l2" and moving_s >= ROOF_SHARE * facts.time_s else None


def _at_roof(facts: CaseFacts) -> _Answer:
    if facts.roofed_s < ROOF_SHARE * facts.time_s:
        return None
    if facts.computes:
        return "compute", (*_computed(facts), *_clock(facts))
    return "bandwidth", _moved(facts)


def _in_use(facts: CaseFacts) -> _Answer:
    """The unit that is most in use, by counters."""
    busiest = max(units_in_use(facts), key=lambda unit: unit.share, default=None)
    if busiest is None or busiest.share < ROOF_SHARE:
        return None
    return busiest.kind, (busiest.evidence, *_moved(facts), *(_computed(facts) if intense(facts.result.cost) else ()))


def _waiting(facts: CaseFacts) -> _Answer:
    """No unit is busy enough, by counters."""
    evidence = waiting(facts)
    return ("latency", (*evidence, *_distances(facts))) if evidence and units_in_use(facts) else None


def _half(facts: CaseFacts) -> _Answer:
    if facts.roofed_s < HALF * facts.time_s:
        return None
    if facts.computes:
        return "compute", (*_computed(facts), *_clock(facts))
    rest = Evidence("rest_unexplained", {"rest_fraction": 1 - facts.of_time(facts.moving_s)})
    return _moving_kind(facts), (*_moved(facts), *(waiting(facts) or (rest,)))


def _moving_kind(facts: CaseFacts) -> LimiterKind:
    """What delivers the data of the case: the L2 or memory."""
    return "L2" if facts.memory is not None and facts.memory.level == "l2" else "bandwidth"


def _chain(facts: CaseFacts) -> _Answer:
    steps = [s for k in facts.result.kernels if (s := k.duration_s) is not None and s >= MAIN_KERNEL * facts.time_s]
    if len(steps) < 2 or facts.fits_in_l2 or facts.moving_s is None or facts.counted_s is not None or facts.computes:
        return None
    ratio = sum(steps) / len(steps) / facts.moving_s
    limit = _longest_step(facts.result)
    if ratio > limit or max(steps) / facts.moving_s > LONGEST_STEP * limit:
        return None
    once = {"moved_bytes": facts.moved_bytes, "moving_fraction": facts.of_time(facts.moving_s), "time_s": facts.time_s}
    chain = Evidence("chain", {"kernels": len(steps), "ratio": ratio, "moving_s": facts.moving_s})
    return "bandwidth", (chain, Evidence("fused", once))


def _longest_step(result: Result) -> float:
    """The bytes of a step of a chain at most, over those of the problem."""
    cost, dtype = result.cost, DTYPES.get(result.problem.dtype)
    if cost is None or dtype is None or cost.written_bytes < WHOLE_RESULT * cost.read_bytes:
        return 3.0
    # An op with several large inputs has fewer elements than that; it also has steps with more operands.
    elements = max(cost.read_bytes, cost.written_bytes) / dtype.itemsize_bytes
    return max(3.0, STEP_BYTES * elements / cost.moved_bytes)


def _latency(facts: CaseFacts) -> _Answer:
    if facts.empty_s is None:
        return None  # Launching could be the reason as well.
    reasons = []
    blocks, working = facts.blocks, facts.working_fraction
    few = blocks is not None and blocks < (facts.device.multiprocessors or 0)
    if blocks is not None and working is not None and working <= MOSTLY_WORKING and (few or facts.computes):
        kind: EvidenceKind = "few_blocks" if few else "uneven_blocks"
        values = {"blocks": blocks, "multiprocessors": facts.device.multiprocessors or 0, "working_fraction": working}
        reasons.append(Evidence(kind, values))
    if not facts.computes:
        reasons += _in_flight(facts)
    starting_s = 2 * facts.empty_s * facts.kernels
    if facts.roofed_s and starting_s + facts.roofed_s >= EXPLAINED * facts.time_s:
        part = "moving" if facts.roofed_s == facts.moving_s else "computing"
        parts_s = {"starting_s": starting_s, "part_s": facts.roofed_s, "time_s": facts.time_s}
        reasons.append(Evidence("too_short", {**parts_s, "part": part}))
    wave = None if facts.computes else facts.wave
    if wave and wave.time_s <= ONE_TRIP * facts.empty_s * max(wave.bytes_per_thread / WIDE_TRIP_BYTES, 1.0):
        reasons.append(Evidence("short_wave", {"wave_s": wave.time_s, "bytes_per_thread": wave.bytes_per_thread}))
    return ("latency", (*reasons, *_distances(facts))) if reasons else None


def _in_flight(facts: CaseFacts) -> tuple[Evidence, ...]:
    """How little of the GPU the main kernel fills, if that alone explains the distance from the roof."""
    threads, fraction, resident = facts.resident_threads, facts.resident_fraction, facts.occupancy
    if resident is not None and resident.fraction <= LOW_OCCUPANCY:
        return (Evidence("low_occupancy", _values(resident)),)
    if threads is None or fraction is None:
        return ()
    if fraction <= LOW_OCCUPANCY:
        return (Evidence("small_grid", {"threads": threads, "resident_fraction": fraction}),)
    rate = facts.memory.bandwidth_bytes_per_s if facts.memory else None
    if not rate or not facts.empty_s or not facts.moving_s or intense(facts.result.cost):
        return ()
    reached = threads * VECTOR_BYTES / facts.empty_s / rate
    if reached >= ROOF_SHARE or facts.of_time(facts.moving_s) > reached:
        return ()
    values = {"threads": threads, "resident_fraction": fraction, "reached_fraction": reached, "trip_s": facts.empty_s}
    return (Evidence("few_in_flight", values),)


def _queued(facts: CaseFacts) -> _Answer:
    wave, cost = facts.wave, facts.result.cost
    if facts.empty_s is None or wave is None or cost is None or not cost.moved_bytes or facts.counted_s is not None:
        return None
    trips_s = facts.empty_s * max(wave.bytes_per_thread / TRIP_BYTES, 1.0)
    if cost.work_flop > ONLY_MOVES_FLOP_PER_BYTE * cost.moved_bytes or wave.time_s < QUEUED * trips_s:
        return None
    ratio = wave.time_s / facts.empty_s
    values = {"wave_s": wave.time_s, "bytes_per_thread": wave.bytes_per_thread, "ratio": ratio}
    return _moving_kind(facts), (Evidence("queued_wave", values), *_distances(facts))


def _distances(facts: CaseFacts) -> tuple[Evidence, ...]:
    """How far the case is from each roof that is known, the nearest first."""
    moved, computed = _moved(facts), _computed(facts) if intense(facts.result.cost) else ()
    nearer_to_compute = (facts.computing_s or 0.0) > (facts.moving_s or 0.0)
    return (*computed, *moved) if nearer_to_compute else (*moved, *computed)


def _context(facts: CaseFacts, kind: LimiterKind) -> tuple[Evidence, ...]:
    """Other facts that matter for this answer."""
    timing, resident = facts.result.timing, facts.occupancy
    cold, warm = figure_of(timing, "cold"), figure_of(timing, "warm")
    context = []
    if cold and warm and (ratio := warm.estimate / cold.estimate) < WARM_HELPS and kind != "launch":
        context.append(Evidence("warm_is_faster", {"ratio": ratio}))
    if kind == "unclear" and resident is not None:
        context.append(Evidence("occupancy" if resident.waves is None else "occupancy_and_waves", _values(resident)))
        usual = facts.computes and resident.fraction <= LOW_OCCUPANCY
        context += [Evidence("usual_occupancy" if usual else "enough_in_flight")] if facts.roofed_s else []
    if isinstance(facts.empty, SameModelRoof) and kind in ("launch", "latency"):
        context.append(Evidence("other_empty_kernel", {"empty_s": facts.empty_s or 0.0}))
    if kind in ("launch", "latency") and host_bound(timing):
        context.append(Evidence("host_bound", {"ratio": back_to_back_over_warm(timing) or 0.0}))
    return tuple(context)


def _values(resident: Occupancy) -> Values:
    fraction, waves = resident.fraction, resident.waves or 0.0
    return {"occupancy_fraction": fraction, "limited_by": resident.limited_by, "waves": waves}


def _moved(facts: CaseFacts) -> tuple[Evidence, ...]:
    if facts.memory is None or facts.moving_s is None:
        return ()
    fraction = facts.of_time(facts.moving_s)
    values = {"moved_bytes": facts.moved_bytes, "time_s": facts.time_s, "moving_fraction": fraction}
    kind: EvidenceKind = "moved" if facts.counted_s is None else "moved_least"
    return (Evidence(kind, {**values, "roof": facts.memory}),)


def _computed(facts: CaseFacts) -> tuple[Evidence, ...]:
    if facts.compute is None or facts.computing_s is None or facts.result.cost is None:
        return ()
    rate, fraction = facts.result.cost.work_flop / facts.time_s, facts.of_time(facts.computing_s)
    values = {"achieved_flop_per_s": rate, "computing_fraction": fraction}
    return (Evidence("computed", {**values, "roof": facts.compute}),)


def _clock(facts: CaseFacts) -> tuple[Evidence, ...]:
    """The SM clock, if the power cap or something else held it below the clock of the roof."""
    clock_hz = min((b.clock_hz for b in facts.figure.blocks or () if b.clock_hz), default=None)
    conditions, roof_hz = facts.result.conditions, facts.compute.clock_hz if facts.compute else None
    if clock_hz is None:
        return ()
    if conditions is not None and POWER_CAP in conditions.event_reasons:
        return (Evidence("capped_clock", {"clock_hz": clock_hz}),)
    if roof_hz and clock_hz < SLOW_CLOCK * roof_hz:
        return (Evidence("low_clock", {"clock_hz": clock_hz, "roof_hz": roof_hz}),)
    return ()
