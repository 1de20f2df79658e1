"""Grouping of tracer records into iterations, and the records that must be refused."""

import re
from collections.abc import Callable
from importlib.resources import files

import msgspec
import pytest

from kernelviz.core import Device, Environment
from kernelviz.core.reasons import CachedOutput, OtherStream
from kernelviz.core.version_1 import tracer_failures
from kernelviz.hardware.notices import tracing
from kernelviz.measure.session.environment import environment_of
from kernelviz.measure.timing import cupti, tracers
from kernelviz.measure.timing.trace import (
    BEFORE_FLUSH,
    BEGIN,
    FLUSH,
    MARKER,
    POISON,
    Record,
    TracedStamps,
    TraceError,
    WrongWork,
    iterations,
)
from kernelviz.text.notices import describe_notice

CPU = Device(id="cpu", kind="cpu", name="a processor", uuid="CPU-1")


def pattern(at: int, *calls: tuple[str, int, int]) -> list[Record]:
    """poison, the kernels of the flush, the calls (name, start, length) relative to the flush's end, marker."""
    end = at + 100 + max((start + length for _, start, length in calls), default=0)
    return [
        Record(POISON, at, at + 10),
        *(Record(name, at + 11 + i, at + 12 + i) for i, name in enumerate(BEFORE_FLUSH)),
        Record(FLUSH, at + 20, at + 100),
        *(Record(name, at + 100 + start, at + 100 + start + length) for name, start, length in calls),
        Record(MARKER, end + 5, end + 6),
    ]


def test_the_kernels_of_the_flush_have_the_names_of_the_source() -> None:
    source = files("kernelviz.measure.timing").joinpath("kernels.cu").read_text()
    names = re.findall(r"(kernelviz_[a-z0-9_]+)\(", source)
    assert {*BEFORE_FLUSH, FLUSH, BEGIN, MARKER, POISON} <= set(names)
    assert not any(name.startswith(FLUSH) for name in BEFORE_FLUSH)


def test_span_and_busy_of_a_call_with_two_kernels() -> None:
    found = iterations(pattern(1000, ("a", 2, 10), ("b", 20, 5)), 1)
    assert found[0].names == ("a", "b")
    assert found[0].span_s == pytest.approx(23e-9)
    assert found[0].busy_s == pytest.approx(15e-9)


def test_a_graph_node_stamped_before_its_flush_has_ended_begins_where_the_flush_ends() -> None:
    records = [
        Record(FLUSH, 1000, 31000),
        Record("a", 30168, 32248),
        Record("b", 32200, 32300),
        Record(MARKER, 32290, 32400),
    ]
    found = iterations(records, 1)[0]
    assert found.span_s == pytest.approx(1300e-9)
    assert found.busy_s == pytest.approx(1300e-9)


def test_work_beside_the_first_kernels_of_the_flush_is_early() -> None:
    """As work on another stream, which does not wait for the flush."""
    records = pattern(10_000, ("a", 2, 10))
    flush = [
        Record(BEFORE_FLUSH[0], 2_000, 4_000),
        Record(BEFORE_FLUSH[1], 4_100, 5_000),
        Record(FLUSH, 5_100, 9_000),
        Record("a", 9_100, 9_900),
        Record(MARKER, 9_950, 9_990),
    ]
    restored = [Record("restore", 900, 1_990), *flush]
    assert iterations(restored, 1)[0].names == ("a",)
    with pytest.raises(WrongWork) as caught:
        iterations([Record("beside", 3_100, 3_900), *flush], 1)
    assert caught.value.reason == OtherStream(evidence="early", early_ns=5_900)
    assert len(iterations([*flush, *records], 2)) == 2


def test_the_length_of_a_flush_is_that_of_its_kernels() -> None:
    """However long the host takes between them: blocks would else get too few samples on a busy host."""

    class Traced:
        name, records_seen = "cupti", 0

        def trace(self, work: Callable[[], object]) -> list[Record]:
            work()
            return [
                Record(name, at + i * 50_000, at + i * 50_000 + 10_000)
                for at in (1_000, 1_001_000, 2_001_000)
                for i, name in enumerate((*BEFORE_FLUSH, FLUSH, "another"))
            ]

    assert TracedStamps(Traced()).flush_length_s(lambda: None) == pytest.approx(30e-6)


def test_overlapping_kernels_end_with_the_last() -> None:
    found = iterations(pattern(1000, ("a", 0, 50), ("b", 10, 5)), 1)
    assert found[0].span_s == pytest.approx(50e-9)


def test_nanoseconds_survive_stamps_of_today() -> None:
    now = 1_795_000_000_000_000_000
    assert iterations(pattern(now, ("a", 3, 33)), 1)[0].span_s == pytest.approx(33e-9, rel=1e-12)


def test_what_lies_between_marker_and_flush_is_no_part_of_a_call() -> None:
    records = [*pattern(1000, ("a", 1, 10)), Record("memcpy", 1400, 1405), *pattern(2000, ("a", 1, 12))]
    assert [i.names for i in iterations(records, 2)] == [("a",), ("a",)]


@pytest.mark.parametrize(
    ("records", "expected", "message"),
    [
        (pattern(1000, ("a", 1, 10)), 2, "1 calls were traced, 2 were made"),
        ([Record(FLUSH, 20, 100), Record(FLUSH, 200, 300)], 1, "two flushes"),
        ([Record(MARKER, 20, 100)], 1, "without a flush before it"),
        ([Record(FLUSH, 20, 100), Record("a", 110, 120)], 1, "without an end marker"),
        ([Record(FLUSH, 0, 100)], 1, "starts at 0"),
        ([Record(FLUSH, 100, 50)], 1, "ends at 50"),
        ([Record(FLUSH, 20, 900), Record("a", 500, 900), Record(MARKER, 905, 910)], 1, "ends 0 ns before the flush"),
    ],
)
def test_records_that_cannot_be_the_calls_are_refused(records: list[Record], expected: int, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        iterations(records, expected)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (pattern(1000), CachedOutput(between="flush")),
        (
            [Record(FLUSH, 20, 9000), Record("a", 90, 9120), Record(MARKER, 9130, 9131)],
            OtherStream(evidence="early", early_ns=8910),
        ),
        ([Record(FLUSH, 20, 100), Record("a", 110, 180), Record(MARKER, 130, 131)], OtherStream(evidence="late")),
    ],
)
def test_a_call_that_does_not_do_its_work_is_refused(records: list[Record], reason: object) -> None:
    assert refused(records) == reason


def test_a_fault_of_the_call_is_told_from_a_fault_of_the_tracer() -> None:
    with pytest.raises(WrongWork):
        iterations(pattern(1000), 1)
    with pytest.raises(TraceError) as lost:
        iterations(pattern(1000, ("a", 1, 10)), 2)
    assert not isinstance(lost.value, WrongWork)


class Works:
    name = "kineto"
    records_seen = 0

    def trace(self, work: object) -> list[Record]:
        return [Record("a", 1, 2)]


class TracesNothing(Works):
    def trace(self, work: object) -> list[Record]:
        return []


def refuses() -> Works:
    raise cupti.CuptiError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", 35, "x")


def test_the_line_of_a_second_best_tracer_says_why_the_best_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti.CuptiTracer, "shared", refuses)
    monkeypatch.setattr(tracers, "KinetoTracer", Works)
    _, failures = tracers.open_tracer()
    (failure,) = failures
    assert (failure.tracer, failure.fault) == ("cupti", "cupti_not_allowed")
    line = environment_of(CPU, failures).tracer
    assert line == "kineto; cupti: CuptiError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35) in x"
    assert tracer_failures(line) == failures
    assert "tracer_failures" not in msgspec.to_builtins(environment_of(CPU, ()))  # digests of other documents stay
    assert msgspec.convert(msgspec.to_builtins(environment_of(CPU, failures)), Environment).tracer_failures == failures
    notice = tracing(failures)
    assert notice is not None
    assert "not allowed to trace" in str(describe_notice(notice).sentence)


def test_without_any_tracer_times_come_from_events_and_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti.CuptiTracer, "shared", refuses)
    monkeypatch.setattr(tracers, "KinetoTracer", TracesNothing)
    tracer, failures = tracers.open_tracer()
    assert tracer is None
    assert [(f.tracer, f.fault) for f in failures] == [("cupti", "cupti_not_allowed"), ("kineto", "nothing_traced")]
    assert str(environment_of(CPU, failures).tracer).startswith("events; cupti: CuptiError: ")
    notice = tracing(failures)
    assert notice is not None
    sentence, remedy = map(str, describe_notice(notice))
    assert "CUDA events give the times instead" in sentence
    assert "NVreg_RestrictProfilingToAdminUsers=0" in remedy
    assert notice.severity == "warning"


def refused(records: list[Record]) -> OtherStream | CachedOutput:
    with pytest.raises(WrongWork) as caught:
        iterations(records, 1)
    return caught.value.reason


def test_a_call_that_launches_nothing_is_named_by_where_its_work_is() -> None:
    empty = pattern(1000)
    assert refused(empty) == CachedOutput(between="flush")
    assert refused([*empty, Record("stray", 5000, 5100)]) == OtherStream(evidence="outside", between="flush")
    assert refused(pattern(20_000, ("early", -9000, 9000))) == OtherStream(evidence="outside", between="flush")
    late = [Record(FLUSH, 0 + 1, 100), Record("late", 110, 500), Record(MARKER, 120, 130)]
    assert refused(late) == OtherStream(evidence="late")


def test_a_begin_marker_opens_a_warm_call_as_a_flush_opens_a_cold_one() -> None:
    records = [Record("call", 100, 200), Record(BEGIN, 210, 212), Record("call", 213, 300), Record(MARKER, 305, 306)]
    found = iterations(records, 1)
    assert found[0].span_s == pytest.approx(87e-9)
