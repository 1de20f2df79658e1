"""A fair queue: requests of different owners alternate, and those of one owner keep their order.

Requests that can wait (secondary timings) are taken when there is no other.
"""

import itertools
import threading
from collections import deque
from collections.abc import Iterable

from kernelviz.worker.request import Request


class FairQueue:
    """Round-robin between owners, first in first out within one owner; a new owner comes before the owner that was served last.
    Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Urgent and later requests: lines by owner, in the order in which owners are served; an owner without work has no line.
        self._both: tuple[dict[str, deque[Request]], dict[str, deque[Request]]] = ({}, {})
        self._last: str | None = None
        self._closed = False

    def put(self, requests: Iterable[Request]) -> bool:
        """Add requests behind those of their owner. False when the queue is closed; then nothing is added."""
        with self._changed:
            if self._closed:
                return False
            for request in requests:
                lines = self._both[request.later]
                if request.owner not in lines:
                    lines[request.owner] = deque()
                    if self._last in lines and self._last != request.owner:
                        lines[self._last] = lines.pop(self._last)
                lines[request.owner].append(request)
            self._changed.notify()
            return True

    def take(self, timeout_s: float | None = None) -> Request | None:
        """Wait for the next request; None when closed or after `timeout_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: any(self._both) or self._closed, timeout_s) or self._closed:
                return None
            lines = next(lines for lines in self._both if lines)
            owner, line = next(iter(lines.items()))
            request, self._last = line.popleft(), owner
            del lines[owner]
            if line:
                lines[owner] = line  # this owner is served last now
            return request

    def remove(self, run_id: str) -> list[Request]:
        """Take out the queued requests of one run, in order."""
        with self._changed:
            removed = [request for request in self._all() if request.run_id == run_id]
            for lines in self._both:
                remaining = {o: deque(i for i in line if i.run_id != run_id) for o, line in lines.items()}
                lines.clear()
                lines.update({o: line for o, line in remaining.items() if line})
            return removed

    def close(self) -> list[Request]:
        """Take out all requests and end every `take`."""
        with self._changed:
            removed = self._all()
            self._both, self._closed = ({}, {}), True
            self._changed.notify_all()
            return removed

    def waiting(self) -> list[tuple[Request, int]]:
        """The first request of each waiting run, with the number of requests that are taken before it."""
        first: dict[str, tuple[Request, int]] = {}
        with self._changed:
            for before, request in enumerate(self._all()):
                first.setdefault(request.run_id, (request, before))
        return list(first.values())

    def ahead_of(self, owner: str) -> int:
        """The number of requests that are taken before a new one of that owner, if no other comes."""
        with self._changed:
            lines = {o: len(line) for o, line in self._both[False].items()}
            lines.setdefault(owner, 0)
            if lines[owner] == 0 and self._last in lines and self._last != owner:
                lines[self._last] = lines.pop(self._last)  # as in `put`
        own = lines[owner]
        order = list(lines)
        before = order.index(owner)
        return own + sum(min(lines[o], own + (i < before)) for i, o in enumerate(order) if o != owner)

    def urgent(self) -> int:
        """The number of waiting requests that are not marked as later."""
        with self._changed:
            return sum(len(line) for line in self._both[False].values())

    def _all(self) -> list[Request]:
        """All requests in the order in which they are taken when no other comes."""
        rounds = (one_each for lines in self._both for one_each in itertools.zip_longest(*lines.values()))
        return [request for one_each in rounds for request in one_each if request is not None]
