"""Whose turn it is: problems of different people one by one in turn, each person's own in order.

What can wait (figures that nobody looks at first) comes when nothing else is there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Queued(Protocol):
    """What waits: a problem of a run (or a calibration), and who asked for it."""

    @property
    def run_id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def later(self) -> bool: ...


T = TypeVar("T", bound=Queued)


class FairQueue(Generic[T]):
    """Round-robin between owners, first in first out inside one; who comes anew is before who had the last turn. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Now and later: lines by owner, in the order of turns; an owner without work has no line.
        self._both: tuple[dict[str, deque[T]], dict[str, deque[T]]] = ({}, {})
        self._last: str | None = None
        self._closed = False

    def put(self, items: Iterable[T]) -> bool:
        """Add items behind those of their owner. False when the queue is closed, and nothing was added."""
        with self._changed:
            if self._closed:
                return False
            for item in items:
                lines = self._both[item.later]
                if item.owner not in lines:
                    lines[item.owner] = deque()
                    if self._last in lines and self._last != item.owner:
                        lines[self._last] = lines.pop(self._last)
                lines[item.owner].append(item)
            self._changed.notify()
            return True

    def take(self, timeout_s: float | None = None) -> T | None:
        """The next item, waiting for one; None when closed or after `timeout_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: any(self._both) or self._closed, timeout_s) or self._closed:
                return None
            lines = next(lines for lines in self._both if lines)
            owner, line = next(iter(lines.items()))
            item, self._last = line.popleft(), owner
            del lines[owner]
            if line:
                lines[owner] = line  # to the end of the turns
            return item

    def remove(self, run_id: str) -> list[T]:
        """Take out what is queued of one run, in order."""
        with self._changed:
            removed = [item for item in self._all() if item.run_id == run_id]
            for lines in self._both:
                kept = {o: deque(i for i in line if i.run_id != run_id) for o, line in lines.items()}
                lines.clear()
                lines.update({o: line for o, line in kept.items() if line})
            return removed

    def close(self) -> list[T]:
        """Take out everything and end every `take`."""
        with self._changed:
            removed = self._all()
            self._both, self._closed = ({}, {}), True
            self._changed.notify_all()
            return removed

    def waiting(self) -> list[tuple[T, int]]:
        """The first item of each run that waits, with how many items of other runs are taken before it."""
        with self._changed:
            both = [[list(line) for line in lines.values()] for lines in self._both]
        first: dict[str, tuple[T, int]] = {}
        before = 0
        for turns in both:
            for depth in range(max((len(line) for line in turns), default=0)):
                for line in turns:
                    if depth < len(line):
                        first.setdefault(line[depth].run_id, (line[depth], before))
                        before += 1
        return list(first.values())

    def urgent(self) -> int:
        """How many items wait that cannot come later."""
        with self._changed:
            return sum(len(line) for line in self._both[False].values())

    def __len__(self) -> int:
        with self._changed:
            return len(self._all())

    def _all(self) -> list[T]:
        return [item for lines in self._both for line in lines.values() for item in line]
