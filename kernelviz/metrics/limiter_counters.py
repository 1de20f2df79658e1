"""What hardware counters contribute to the limiter (metrics.limiter): the units in use, and what the warps wait for."""

from dataclasses import dataclass

from kernelviz.core.counters import Pipe
from kernelviz.metrics.limiter_evidence import Evidence, LimiterKind, Values
from kernelviz.metrics.limiter_facts import CaseFacts

ARITHMETIC: tuple[Pipe, ...] = ("fma", "alu", "xu", "tensor")


@dataclass(frozen=True, slots=True)
class UnitInUse:
    """A unit of the device, the share of the time in which it is in use, and the answer and the evidence if that is much."""

    kind: LimiterKind
    share: float
    evidence: Evidence


def units_in_use(facts: CaseFacts) -> tuple[UnitInUse, ...]:
    """Memory, L2, pipes and issue slots, as far as they were counted."""
    call = facts.counted
    if call is None:
        return ()
    units: list[UnitInUse] = []
    if (dram := _dram(facts)) is not None:
        units.append(UnitInUse("bandwidth", facts.of_time(facts.counted_s), dram))
    if facts.l2_s is not None and facts.l2 is not None:
        share = facts.of_time(facts.l2_s)
        values: Values = {"counted_bytes": call.l2_bytes or 0, "counted_fraction": share, "roof": facts.l2}
        units.append(UnitInUse("L2", share, Evidence("counted_l2", values)))
    for pipe, share in call.pipes.items():
        kind: LimiterKind = "compute" if pipe in ARITHMETIC else "issue"
        units.append(UnitInUse(kind, share, Evidence("busy_pipe", {"pipe": pipe, "busy_fraction": share})))
    if call.issue_fraction is not None:
        busy = Evidence("busy_issue", {"busy_fraction": call.issue_fraction})
        units.append(UnitInUse("issue", call.issue_fraction, busy))
    return tuple(units)


def waiting(facts: CaseFacts) -> tuple[Evidence, ...]:
    """What most waiting warps wait for; empty if that was not counted."""
    call = facts.counted
    top = None if call is None else call.top_stall
    if call is None or top is None or call.issue_fraction is None:
        return ()
    values = {"busy_fraction": call.issue_fraction, "stall_fraction": top[1], "state": top[0]}
    return (Evidence("waiting_warps", values),)


def counted_evidence(facts: CaseFacts, said: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The measured traffic of memory, if the answer does not state it already."""
    dram = _dram(facts)
    return () if dram is None or any(fact.kind == "counted_dram" for fact in said) else (dram,)


def _dram(facts: CaseFacts) -> Evidence | None:
    call, roof = facts.counted, facts.counted_memory
    if call is None or call.dram_bytes is None or roof is None or facts.counted_s is None or not facts.moved_bytes:
        return None
    values: Values = {
        "counted_bytes": call.dram_bytes,
        "ratio": call.dram_bytes / facts.moved_bytes,
        "counted_fraction": facts.of_time(facts.counted_s),
        "roof": roof,
    }
    return Evidence("counted_dram", values)
