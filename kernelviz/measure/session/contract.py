"""The interface of a measuring session for the worker, so that tests can replace the real session."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from kernelviz.core import Environment, Event, Failure, Method, Problem, Tuned
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilesAhead

Emit = Callable[[Event], None]
Stop = Callable[[], bool]
"""A function that is called between blocks, never inside one. True ends the measurement."""
UNTUNED: Mapping[str, Tuned] = MappingProxyType({})
"""Every variant has its default configuration."""


class CaseFailed(Exception):
    """A case could not be inspected, and the process can still be used."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure)

    def __str__(self) -> str:
        # Importing the texts takes half as long as starting a worker does without them, and few workers need any.
        from kernelviz.text import describe_failure

        return str(describe_failure(self.failure))


class Session(Protocol):
    """A device with everything bound to it, for the life of one worker process."""

    def environment(self) -> Environment:
        """The device and the software as this process sees them (imports torch), without roofs, which the store adds."""

    def compile_with(self, compilers: CompilesAhead, plugins: tuple[str, ...]) -> None:
        """Use these processes to compile ahead; `plugins`: the files of the session's own variants."""

    def compile_ahead(self, run_id: str, upcoming: Sequence[UpcomingCases]) -> None:
        """Compile these cases of a run while the session does nothing that is timed; instead of those of earlier calls."""

    def measure(
        self,
        problem: Problem,
        variants: tuple[str, ...],
        baseline: str,
        method: Method,
        emit: Emit,
        stop: Stop,
        *,
        tuned: Mapping[str, Tuned] = UNTUNED,
        following: str | None = None,
    ) -> None:
        """Measure the variants of one problem. Emits CaseStep when a case enters a step and CaseDone for every case.

        Variants that compile quickly come first. The others are measured afterwards in rounds with the baseline, whose result
        may be emitted again. After a stop, cases without a result get Failure(cancelled). `tuned`: configurations by variant,
        each used where the variant's source is the one that was tuned. `following`: the key of the problem that is measured next,
        where that is known; it stays bound.
        """

    def measure_judged(
        self,
        problem: Problem,
        variant: str,
        method: Method,
        judge_fd: int,
        emit: Emit,
        stop: Stop,
        *,
        tuned: Mapping[str, Tuned] = UNTUNED,
    ) -> None:
        """Measure one variant alone on the inputs of a judge, then make the calls that the judge asks for (measure.judge).

        Emits what `measure` emits. What the judge finds is known to the judge alone.
        """

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        """Measure the roofs of the device; emits RoofDone for each."""

    def selftest(self, emit: Emit, stop: Stop, *, only: tuple[str, ...] = (), quick: bool = False) -> None:
        """Test the instrument; emits CheckDone for each check and TimelineDone for the timeline of one block.

        `only`: names of checks, or beginnings of names; empty: all. `quick`: fewer repetitions of each. Errors: UnknownName.
        """

    def inspect(
        self, problem: Problem, variant: str, emit: Emit, stop: Stop, *, tuned: Mapping[str, Tuned] = UNTUNED
    ) -> None:
        """Make one call over newly filled inputs and describe its inputs and outputs; nothing is timed.

        Emits CaseStep when the case enters a step, and InspectionDone unless it was stopped. Raises CaseFailed.
        """

    @property
    def spoilt(self) -> str | None:
        """Why this process must be replaced before the next problem (a sticky CUDA error, memory that stays high, too many
        traced records), or None."""


OpenSession = Callable[[str, tuple[str, ...]], Session]
"""open_session(device_id, plugin_paths) -> Session. The real one is kernelviz.measure.session.device_session:open_session."""
