"""Whose turn it is to begin a run, or to say that nobody measures it: one thread of the process at a time."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager


class _Turn:
    """Held again by who holds it. Forgotten when nobody waits for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_shared = threading.Lock()
_turns: weakref.WeakValueDictionary[tuple[str, str], _Turn] = weakref.WeakValueDictionary()


@contextmanager
def turn(store_url: str, run_id: str) -> Iterator[None]:
    """Nobody else of this process begins that run of that store meanwhile, whichever runner is asked."""
    with _shared:
        mine = _turns.setdefault((store_url, run_id), _Turn())
    with mine.lock:
        yield
