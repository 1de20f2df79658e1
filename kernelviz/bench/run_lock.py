"""The lock of a run: one thread of the process at a time may begin it, or report that no process measures it."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class _RunLock:
    """A reentrant lock, which is removed when no thread uses it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_shared = threading.Lock()
_locks: weakref.WeakValueDictionary[tuple[str, str], _RunLock] = weakref.WeakValueDictionary()


@contextmanager
def run_lock(store_url: str, run_id: str) -> Iterator[None]:
    """Keep other threads of this process, also of other runners, from beginning that run of that store meanwhile."""
    with _shared:
        mine = _locks.setdefault((store_url, run_id), _RunLock())
    with mine.lock:
        yield
