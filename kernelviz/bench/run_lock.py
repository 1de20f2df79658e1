"""Run lock: one thread of the process at a time begins a run, or finds that no process measures it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class _Turn:
    """A lock that its holder can acquire again. It is dropped when nobody waits for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_shared = threading.Lock()
_turns: weakref.WeakValueDictionary[tuple[str, str], _Turn] = weakref.WeakValueDictionary()


@contextmanager
def turn(store_url: str, run_id: str) -> Iterator[None]:
    """Hold the lock of that run of that store, so that no other thread of this process begins it at the same time."""
    with _shared:
        mine = _turns.setdefault((store_url, run_id), _Turn())
    with mine.lock:
        yield
