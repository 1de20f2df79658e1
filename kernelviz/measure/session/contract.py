"""What the worker asks of a measuring session, so that tests can put another one in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from kernelviz.core.events import Event
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Failure
from kernelviz.core.run import Environment
from kernelviz.core.tuning import Tuned
from kernelviz.text.failures import describe_failure

Emit = Callable[[Event], None]
Stop = Callable[[], bool]
"""Asked between blocks, never inside one; True ends the measurement."""
UNTUNED: Mapping[str, Tuned] = MappingProxyType({})
"""No variant has a configuration but its default."""


class CaseFailed(Exception):
    """A case could not be looked at, for a reason of its own: the process is as good as before."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(str(describe_failure(failure)))


class Session(Protocol):
    """A device with everything bound to it, for the life of one worker process."""

    def environment(self) -> Environment:
        """The device and the software around it, as this process sees them (imports torch). No roofs: the store has them."""
        ...

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
    ) -> None:
        """Measure the variants of one problem. Emits CaseStep when a case enters a step and CaseDone for every case.

        Variants that are quick to prepare come first; late ones join in rounds with the baseline, whose result may be
        emitted again. A stop gives the cases without result Failure(cancelled). `tuned`: configurations by variant, each used
        where the variant's source is the one that it was found for.
        """
        ...

    def calibrate(self, emit: Emit, stop: Stop) -> None:
        """Measure the roofs of the device; emits RoofDone for each."""
        ...

    def selftest(self, emit: Emit, stop: Stop, *, only: tuple[str, ...] = (), quick: bool = False) -> None:
        """Put the instrument to the test; emits CheckDone for each check and TimelineTaken for the picture of one block.

        `only`: names of checks, or beginnings of names; empty: all. `quick`: fewer repetitions of each. Errors: UnknownName.
        """
        ...

    def inspect(
        self, problem: Problem, variant: str, emit: Emit, stop: Stop, *, tuned: Mapping[str, Tuned] = UNTUNED
    ) -> None:
        """Make one call over fresh fills of the inputs and describe all that it got and gave; nothing is timed.

        Emits CaseStep when the case enters a step, and InspectionDone unless it was stopped. Raises CaseFailed.
        """
        ...

    @property
    def spoilt(self) -> str | None:
        """Why this process must be replaced before the next problem (a sticky CUDA error, memory that stays high, tracer
        worn out), or None."""
        ...


OpenSession = Callable[[str, tuple[str, ...]], Session]
"""open_session(device_id, plugin_paths) -> Session. The real one is kernelviz.measure.session.device_session:open_session."""
