"""Which cases of a run its worker may compile ahead, at each of its requests."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.worker.request import Request

MOST_CASES = 1024
"""The most cases that a worker is told of at a time. A message has about 200 bytes for each."""


def with_upcoming(requests: Sequence[Request]) -> list[Request]:
    """The requests of a run, each of which knows its own cases and those of the requests that follow."""
    cases = [
        UpcomingCases(problem=request.problem, variants=request.variants, tuned=dict(request.tuned))
        if request.problem is not None
        else None
        for request in requests
    ]
    return [replace(request, upcoming=_from(cases, first)) for first, request in enumerate(requests)]


def _from(cases: Sequence[UpcomingCases | None], first: int) -> Callable[[], tuple[UpcomingCases, ...]]:
    def upcoming() -> tuple[UpcomingCases, ...]:
        chosen: list[UpcomingCases] = []
        count = 0
        for some in cases[first:]:
            if some is None or not some.variants:
                continue
            if chosen and count + len(some.variants) > MOST_CASES:
                break
            chosen.append(some)
            count += len(some.variants)
        return tuple(chosen)

    return upcoming
