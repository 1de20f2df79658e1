"""The figures of a case: what each is called, what it answers, and which calls wait for the host."""

from __future__ import annotations

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.result import Figure, Timing
from kernelviz.metrics.figures import host_bound, quantiles, times_s
from kernelviz.tables.cases import COLUMNS
from kernelviz.text.times import FIGURES, format_host_bound

ONE = figures.complete(samples.timed(samples.problems("add", [{"n": 4096}], "fp32")[0], "torch_eager", 0.9))


def test_each_figure_is_a_field_and_asks_a_question_of_its_own() -> None:
    assert {f.field for f in FIGURES} <= set(Timing.__struct_fields__)
    assert len({f.question for f in FIGURES}) == len(FIGURES) == 7
    assert all(f.question.endswith(("?", "main metric.")) for f in FIGURES)


def test_every_time_of_a_complete_case_is_the_stored_one() -> None:
    timing, found = ONE.timing, times_s(ONE)
    assert timing is not None
    assert list(found) == [c.name for c in COLUMNS if c.name in found], "a column for each, in this order"
    assert None not in found.values()
    for key, field in (("cold_s", "device_cold_s"), ("warm_s", "device_warm_s"), ("loop_s", "loop_s")):
        assert found[key] == getattr(timing, field).estimate
    assert (found["call_eager_s"], found["call_eager_p90_s"], found["call_eager_p99_s"]) == quantiles(
        timing.call_eager_s
    )
    assert found["call_eager_s"] < found["call_eager_p99_s"]  # type: ignore[operator]


def test_one_kernel_is_busy_for_its_whole_span_and_several_are_not() -> None:
    assert times_s(ONE)["busy_s"] == times_s(ONE)["cold_s"]
    two = msgspec.structs.replace(ONE, kernels=ONE.kernels * 2)
    assert times_s(two)["busy_s"] is None
    assert times_s(msgspec.structs.replace(ONE, kernels=()))["busy_s"] is None
    timing = msgspec.structs.replace(ONE.outcome, busy_s=Figure(estimate=1e-6))
    assert times_s(msgspec.structs.replace(two, outcome=timing))["busy_s"] == 1e-6


def test_what_was_not_measured_and_what_is_wrong_has_no_times() -> None:
    assert set(times_s(samples.failed(ONE.problem, "v", "wrong")).values()) == {None}
    only = times_s(msgspec.structs.replace(ONE, outcome=Timing(call_eager_s=Figure(estimate=9e-6)), kernels=()))
    assert {name for name, time_s in only.items() if time_s is not None} == {"call_eager_s"}


def test_quantiles_need_samples() -> None:
    assert quantiles(None) is None
    assert quantiles(Figure(estimate=1.0)) is None
    assert quantiles(Figure(estimate=1.0, samples=tuple(float(i) for i in range(101)))) == (50.0, 90.0, 99.0)


@pytest.mark.parametrize(
    ("warm_s", "loop_s", "bound"),
    [(1e-6, 1.11e-6, True), (1e-6, 1.1e-6, False), (None, 1e-6, None), (1e-6, None, None)],
)
def test_a_loop_over_eleven_tenths_of_the_warm_time_waits_for_the_host(
    warm_s: float | None, loop_s: float | None, bound: bool | None
) -> None:
    warm, loop = (None if s is None else Figure(estimate=s) for s in (warm_s, loop_s))
    timing = Timing(device_warm_s=warm, loop_s=loop)
    assert host_bound(timing) is bound
    assert bool(format_host_bound(timing)) is bool(bound)


def test_a_long_call_that_the_host_enqueues_in_no_time_does_not_wait_for_it() -> None:
    """torch_compile of copy 2^28 on an H100: 0.71 ms for the kernel, 0.91 in a series, and the host needs 0.19 for a call."""
    warm, loop = Figure(estimate=7.1e-4), Figure(estimate=9.1e-4)
    waits = [
        host_bound(Timing(device_warm_s=warm, loop_s=loop, enqueue_s=Figure(estimate=s))) for s in (1.9e-4, 6e-4, 8e-4)
    ]
    assert waits == [False, False, True]
