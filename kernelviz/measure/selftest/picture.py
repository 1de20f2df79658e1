"""The timeline of one measurement: the device's activity in a few consecutive iterations of a real block."""

from kernelviz.core import Mark, MarkKind, Timeline
from kernelviz.measure.selftest.workbench import Workbench
from kernelviz.measure.timing.capture import CudaTimed
from kernelviz.measure.timing.trace import BEFORE_FLUSH, FLUSH, MARKER, POISON, Iteration, Record, iterations

ITERATIONS = 3
ELEMENTS = 2**20


def timeline(at: Workbench) -> Timeline:
    """Iterations of the cold block of an add of 2^20 fp32. Raises NotHere where nothing is traced."""
    timer, tracer = at.tracing()
    timed = at.add(ELEMENTS)
    assert isinstance(timed, CudaTimed)
    records = tracer.trace(timed.replay)
    return timeline_of(records, iterations(records, timed.samples), timer.name)


def timeline_of(records: list[Record], traced: list[Iteration], timer: str) -> Timeline:
    """The marks of ITERATIONS iterations from the second one on (the first begins with the block), seconds from the first."""
    first = min(1, len(traced) - 1)
    chosen = traced[first : first + ITERATIONS]
    begins_ns = traced[first - 1].marker_end_ns if first else 0
    ends_ns = chosen[-1].marker_end_ns
    inside = sorted((r for r in records if begins_ns <= r.start_ns and r.end_ns <= ends_ns), key=lambda r: r.start_ns)
    zero_ns = inside[0].start_ns
    calls = {id(call) for one in traced for call in one.calls}
    marks = tuple(
        Mark(
            kind=_kind(record, id(record) in calls),
            name=record.name,
            start_s=(record.start_ns - zero_ns) / 1e9,
            end_s=(record.end_ns - zero_ns) / 1e9,
        )
        for record in inside
    )
    ends_s = [(max(call.end_ns for call in one.calls) - zero_ns) / 1e9 for one in chosen]
    counted = tuple((end_s - one.span_s, end_s) for one, end_s in zip(chosen, ends_s, strict=True))
    return Timeline(
        case=f"add fp32 n=2^{ELEMENTS.bit_length() - 1}, torch_eager", timer=timer, marks=marks, counted=counted
    )


def _kind(record: Record, is_call: bool) -> MarkKind:
    return "call" if is_call else next((kind for name, kind in _OWN if record.name.startswith(name)), "restore")


_OWN: tuple[tuple[str, MarkKind], ...] = (
    (FLUSH, "flush"),
    *((name, "flush") for name in BEFORE_FLUSH),
    (MARKER, "marker"),
    (POISON, "poison"),
)
