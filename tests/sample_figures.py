"""Cases with every figure, and a selftest with its picture, as a GPU would have given them; a bench that plays a selftest."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from functools import partial

import msgspec
import sample_runs as samples
from rehearsed_bench import RehearsedBench

from kernelviz.bench import Progress
from kernelviz.core.errors import UnknownRun
from kernelviz.core.events import CheckDone, Event, RunEnded
from kernelviz.core.notes import NotCapturable
from kernelviz.core.problem import USUAL_FIGURES, Method
from kernelviz.core.result import Block, Conditions, Energy, Figure, NaiveTiming, Result, Timing
from kernelviz.core.run import Run, Status
from kernelviz.core.selftest import Check, Mark, Selftest, Timeline
from kernelviz.metrics.absences import FIELDS, never_measured

COLD_METHOD = "CUPTI kernel stamps, L2 flushed by reading before each of 12 calls at 60 places in memory in graphs"
WARM_METHOD = "CUPTI kernel stamps, behind an untimed call of the same place before each of 12 calls in graphs"


def called(time_s: float, launch: str = "call") -> Figure:
    """A figure by the host's clock: a thousand samples, the slowest tenth of them half as long again."""
    taken = tuple(time_s * (1.5 if i % 10 == 9 else 1 + 1e-4 * (i % 7)) for i in range(1000))
    return Figure(
        estimate=time_s,
        low=time_s * 0.99,
        high=time_s * 1.01,
        samples=taken,
        blocks=tuple(Block(size=50, started_s=0.1 * i, round=i) for i in range(20)),
        timer="host",
        launch=launch,  # type: ignore[arg-type]
    )


def complete(result: Result) -> Result:
    """A timed case with every figure: the warm time is 0.7 times the cold one, a call takes 9 µs more, a loop 6 µs at least."""
    timing = result.timing
    assert timing is not None
    assert timing.device_cold_s is not None
    cold = msgspec.structs.replace(timing.device_cold_s, method=COLD_METHOD, buffers=60)
    warm_s = 0.7 * cold.estimate
    seed = sum(result.variant.encode())
    return msgspec.structs.replace(
        result,
        outcome=Timing(
            device_cold_s=cold,
            again_s=timing.again_s,
            device_warm_s=msgspec.structs.replace(samples.figure(warm_s, seed=seed), method=WARM_METHOD, buffers=1),
            again_warm_s=samples.figure(warm_s, seed=seed + 1) if timing.again_s else None,
            call_eager_s=called(warm_s + 9e-6),
            enqueue_s=called(5e-6),
            call_graph_s=called(warm_s + 6e-6, "graph"),
            loop_s=called(max(6e-6, warm_s)),
        ),
    )


def as_asked(timing: Timing, method: Method) -> Timing:
    """The timing as a GPU gives it for that method: the figures that it asks for and its clock mode allows, 21 mJ a call, and
    12.5 ms for the first call of a process."""
    naive = NaiveTiming(first_s=12.5e-3, mean_s=0.4e-3, calls=100, bind_and_first_s=13e-3, timer="events")
    whole = msgspec.structs.replace(
        timing,
        energy=Energy(joules=0.021, calls=100_000, seconds=2.1),
        naive=naive if "naive" in method.figures else msgspec.UNSET,
    )
    absent = {
        field: None
        for name, field in FIELDS.items()
        if (name != "naive" and name not in method.figures) or never_measured(name, method.clock, "cuda") is not None
    }
    if "call_eager_s" in absent:
        absent["enqueue_s"] = None
    return msgspec.structs.replace(whole, **absent)


def run(id: str = "figures", *, status: Status = "finished") -> Run:
    """A run of short and long cases with every figure; the last case is launched into the stream and was repeated."""
    sizes = [{"n": 2**e} for e in (12, 16, 20, 24)]
    shares = {"torch_eager": 0.95, "torch_compile": 0.94, "triton_block": 0.8}
    found = samples.run(id=id, op="add", sizes=sizes, dtype="fp32", shares=shares, status=status)
    made = [complete(r) for r in found.results]
    made[-1] = in_stream(made[-1])
    return msgspec.structs.replace(found, results=tuple(made), method=Method(figures=USUAL_FIGURES))


def in_stream(result: Result) -> Result:
    """The case as it is when it cannot be captured: marked, corrected, with repeated blocks."""
    timing = result.timing
    assert timing is not None
    assert timing.device_cold_s is not None
    cold = msgspec.structs.replace(timing.device_cold_s, launch="stream", correction_s=3.2e-7)
    seen = result.conditions or Conditions()
    notes = tuple(NotCapturable(figure=f, error="it synchronises") for f in ("cold", "graph"))
    return msgspec.structs.replace(
        result,
        outcome=msgspec.structs.replace(timing, device_cold_s=cold),
        conditions=msgspec.structs.replace(seen, retried_blocks=2, notes=notes),
    )


def timeline(iterations: int = 3) -> Timeline:
    """Iterations of an add of 2^20 on an H200: 2 µs of filling, 44 µs of flushing, 4 µs of the call, 1.3 µs of the marker."""
    marks: list[Mark] = []
    counted: list[tuple[float, float]] = []
    at_s = 0.0
    for _ in range(iterations):
        for kind, name, length_s, gap_s in (
            ("poison", "kernelviz_poison", 2.0e-6, 0.7e-6),
            ("flush", "kernelviz_replace_evict_last", 9.6e-6, 0.4e-6),
            ("flush", "kernelviz_reset_priority", 3.6e-6, 0.4e-6),
            ("flush", "kernelviz_flush_l2", 29.9e-6, 0.0),
            (
                "call",
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
                4.08e-6,
                0.6e-6,
            ),
            ("marker", "kernelviz_marker", 1.3e-6, 0.8e-6),
        ):
            marks.append(Mark(kind=kind, name=name, start_s=at_s, end_s=at_s + length_s))  # type: ignore[arg-type]
            if kind == "call":
                counted.append((at_s, at_s + length_s))
            at_s += length_s + gap_s
    return Timeline(case="add fp32 n=2^20, torch_eager", timer="cupti", marks=tuple(marks), counted=tuple(counted))


CHECKS = (
    Check(
        name="empty_kernel",
        question="What does the method read for a kernel that does nothing?",
        passed=True,
        value=1.05e-6,
        limit=1.5e-6,
        unit="s",
        figures={"estimate_s": 1.05e-6, "low_s": 1.02e-6},
    ),
    Check(
        name="cheat_stale",
        question="Is a call refused that returns outputs for earlier inputs?",
        passed=False,
        value=0.0,
        limit=1.0,
        unit="count",
        at_most=False,
        message="it was taken for right <b>",
    ),
    Check(name="ncu_duration", question="Does ncu read the same?", passed=None, message="ncu is not on the PATH"),
)


def selftest(checks: tuple[Check, ...] = CHECKS, *, id: str = "selftest-1", pictured: bool = True) -> Selftest:
    """A selftest of the sample H200."""
    environment = samples.run([]).environment
    return Selftest(
        id=id,
        created_at="2026-11-21T10:42:00+00:00",
        environment=environment,
        checks=checks,
        timeline=timeline() if pictured else None,
    )


class SelftestedBench(RehearsedBench):
    """Plays a selftest: it goes on until `end` is called, or makes CHECKS by itself, one each `pace_s`. A whole one is kept."""

    kept: Selftest | None = None
    pace_s: float | None = None
    _told: list[Event] | None = None

    def selftest(self, device_id: str, *, owner: str = "", only: tuple[str, ...] = (), quick: bool = False) -> str:
        self._bell = threading.Condition()
        self._told = []
        if self.pace_s is not None:
            threading.Thread(target=self._play_checks, args=(self.pace_s,), daemon=True).start()
        return "selftest-new"

    def _play_checks(self, pace_s: float) -> None:
        for check in CHECKS:
            time.sleep(pace_s)
            self.tell_check(check)
        self.end()

    def tell_check(self, check: Check) -> None:
        """One more of its checks is made."""
        self._tell(CheckDone(check=check))

    def end(self, status: Status = "finished", message: str = "") -> None:
        """It ends."""
        if status == "finished":
            self.kept = self.selftest_result("selftest-new")
        self._tell(RunEnded(status=status, message=message))

    def _tell(self, event: Event) -> None:
        assert self._told is not None
        with self._bell:
            self._told.append(event)
            self._bell.notify_all()

    def cancel(self, run_id: str) -> None:
        if run_id == "selftest-new":
            self.end("cancelled")
        else:
            super().cancel(run_id)

    def progress(self, run_id: str) -> Progress:
        if not run_id.startswith("selftest-"):
            return super().progress(run_id)
        told = self._told
        if told is None or run_id != "selftest-new":
            raise UnknownRun(run_id)
        ended = next((e for e in told if isinstance(e, RunEnded)), None)
        checks = [e.check for e in told if isinstance(e, CheckDone)]
        failed = sum(c.passed is False for c in checks)
        status, message = (ended.status, ended.message) if ended else ("running", "")
        return Progress(status, len(checks), failed, 0, 0, message, {}, len(told))

    def follow(self, run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        if not run_id.startswith("selftest-"):
            yield from super().follow(run_id, after, timeout_s)
            return
        told = self._told or []
        for number in itertools.count(after):
            with self._bell:
                if not self._bell.wait_for(partial(lambda n: len(told) > n, number), timeout_s):
                    return
            yield number + 1, told[number]
            if isinstance(told[number], RunEnded):
                return

    def selftest_result(self, selftest_id: str) -> Selftest | None:
        if self._told is None:
            return None
        return selftest(tuple(e.check for e in self._told if isinstance(e, CheckDone)), id="selftest-new")

    def last_selftest(self, device_id: str) -> Selftest | None:
        return self.kept
