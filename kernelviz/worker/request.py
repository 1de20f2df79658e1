"""The unit of work that is asked of a device, and the receiver of its events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from kernelviz.core import Environment, Event, Method, Problem, Result, Tuned
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.worker.counting import Count
from kernelviz.worker.protocol import Calibrate, Inspect, Selftest

RequestEnd = Literal["finished", "cancelled", "interrupted"]


class Sink(Protocol):
    """The receiver of a request's events. Called in the supervisor's thread."""

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled. True stays True."""

    def begun(self, environment: Environment) -> None:
        """The worker is ready, and this request is next."""

    def tell(self, event: Event) -> None: ...

    def ended(self, end: RequestEnd, message: str) -> None:
        """The request has ended; no further event follows."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One unit of work asked of a device: one problem of a run, or (without a problem) the message `work`; a `Count`
    is done by a profiler in processes of its own, without a worker.

    `known_baseline`: returns, when the request starts, the baseline's result so far, where the baseline is not among the
    variants (it was measured with variants that compile quickly, or before a run was resumed).
    `later`: the request is done when nothing else waits for the device (secondary timings). `timed_variants`: returns, when the
    request starts, the variants that it applies to, which have a correct time; None: all variants. `tuned`: the configurations
    of variants that were tuned for this problem. `upcoming`: returns the cases of this request and of those of its run that
    follow, to be compiled ahead; None: nothing is. `following`: the key of the problem that the run measures after this request.
    """

    run_id: str
    owner: str
    sink: Sink
    problem: Problem | None = None
    variants: tuple[str, ...] = ()
    baseline: str = ""
    method: Method = field(default_factory=Method)
    plugins: tuple[str, ...] = ()
    work: Calibrate | Selftest | Inspect | Count = field(default_factory=Calibrate)
    known_baseline: Callable[[], Result | None] | None = None
    later: bool = False
    timed_variants: Callable[[], tuple[str, ...]] | None = None
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    upcoming: Callable[[], tuple[UpcomingCases, ...]] | None = None
    following: str | None = None


def concerned(request: Request) -> tuple[str, ...]:
    """The variants that fail when the whole request fails: a request for timed variants concerns only these."""
    if request.timed_variants is None or not request.variants:
        return request.variants
    timed = request.timed_variants()
    return tuple(v for v in request.variants if v in timed)
