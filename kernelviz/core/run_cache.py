"""A cache of what is derived from runs, for all sessions and threads of a process.

A run is immutable. A stored run that changes (a result, its status, its title) is read as a new object, and while it does not
change, the store returns the same object (`Runs.load`). The object itself is therefore the revision of the run: an entry belongs
to an object, and is dropped when the object is.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kernelviz.core.result import Figure, Result
from kernelviz.core.run import Roof, Run

T = TypeVar("T")


class NoKey(Exception):
    """A value that no key can name. What depends on it is computed each time."""


class _RunKey(weakref.ref[Run]):
    """One object of a run, without keeping it in memory. Two keys are equal only if they are of the same object."""

    __slots__ = ("_id",)

    _id: int

    def __new__(cls, run: Run, forget: Callable[[weakref.ref[Run]], object]) -> "_RunKey":
        key = super().__new__(cls, run, forget)
        key._id = id(run)
        return key

    def __init__(self, run: Run, forget: object) -> None:
        """As `__new__` takes them."""

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        # The id of an object that is gone may be used again, but then one of the two references is dead.
        return self is other or (isinstance(other, _RunKey) and (mine := self()) is not None and mine is other())


class _Entry(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.value: T | None = None
        self.size = 0
        self.ready = False


class RunCache(Generic[T]):
    """A bounded, thread-safe cache. What several threads ask for at once is computed once, and the others wait for it."""

    def __init__(self, most: int, size: Callable[[T], int] = lambda value: 1) -> None:
        """`most`: what all entries may have together by `size`; beyond that, the entry that was unused for longest is dropped."""
        self._most, self._size = most, size
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        # Reentrant, because a run may be collected, and its entries dropped, while this thread holds the lock.
        self._lock = threading.RLock()
        self._gone: list[_RunKey] = []
        self._total = 0

    def __len__(self) -> int:
        with self._locked():
            return len(self._entries)

    def get(self, parts: Iterable[object], compute: Callable[[], T]) -> T:
        """The value for these parts: everything that `compute` depends on.

        Runs count as objects, everything else by value. If a part has no key (see `_key`), nothing is cached. The value must not
        refer to a run of the parts, because it would keep it in memory.
        """
        try:
            key = tuple(self._key(part) for part in parts)
        except NoKey:
            return compute()
        with self._locked():
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.ready:
                return entry.value  # type: ignore[return-value] # T, because it is ready
            try:
                value = compute()
            except BaseException:
                self._forget(key, entry)
                raise
            entry.value, entry.size, entry.ready = value, self._size(value), True
        with self._locked():
            if self._entries.get(key) is entry:
                self._total += entry.size
                while self._total > self._most and self._entries:
                    self._total -= self._entries.popitem(last=False)[1].size
        return value

    def _forget(self, key: Hashable, entry: _Entry[T]) -> None:
        with self._locked():
            if self._entries.get(key) is entry:
                del self._entries[key]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock, with the entries of runs that are gone removed."""
        with self._lock:
            gone: set[_RunKey] = set()
            while self._gone:
                gone.add(self._gone.pop())
            if gone:
                for key in [key for key in self._entries if any(run in gone for run in _runs(key))]:
                    self._total -= self._entries.pop(key).size
            yield

    def _key(self, part: object) -> Hashable:
        """A key of a value: a run by its object, a structure by its type and fields, all else by itself if it is immutable."""
        match part:
            case Run():
                return _RunKey(part, self._gone_run)
            case bool() | float():  # which equal whole numbers
                return (type(part).__name__, part)
            case None | str() | int():
                return part
            case Roof():
                return part  # fifty of them are parts of most keys, and their own hash takes a tenth of the time
            case Result() | Figure():
                raise NoKey(type(part).__name__)  # thousands of samples: comparing them takes as long as computing
            case tuple() | list():
                return (type(part).__name__, *map(self._key, part))
            case dict():
                return ("dict", *((self._key(name), self._key(value)) for name, value in part.items()))
            case msgspec.Struct():
                return (type(part), *(self._key(getattr(part, name)) for name in part.__struct_fields__))
            case _ if is_dataclass(part) and not isinstance(part, type):
                return (type(part), *(self._key(getattr(part, field.name)) for field in fields(part)))
            case _ if _is_function(part):
                return part
        raise NoKey(type(part).__name__)

    def _gone_run(self, key: weakref.ref[Run]) -> None:
        # Called at any moment, also inside of this cache, so it takes no lock: appending to a list is atomic.
        if isinstance(key, _RunKey):
            self._gone.append(key)


class TableCache(Generic[T]):
    """What is derived from the newest `most` tables. A table is named by its object, which is kept as long as its entry: all
    sessions have the same object (metrics.rows), and comparing two takes as long as computing. What several threads ask for at
    once is computed once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[tuple[int, Hashable], tuple[object, _Entry[T]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, table: object, detail: Hashable, compute: Callable[[], T]) -> T:
        """The value for this object and `detail`, which together are everything that `compute` depends on."""
        key = (id(table), detail)
        with self._lock:
            _, entry = self._entries.setdefault(key, (table, _Entry()))
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if not entry.ready:
                entry.value, entry.ready = compute(), True
            return entry.value  # type: ignore[return-value] # T, because it is ready


def _is_function(part: Any) -> bool:
    """Whether it is a function of a module, which depends on nothing but its arguments."""
    return callable(part) and getattr(part, "__closure__", 0) is None and "<" not in part.__qualname__


def _runs(key: Any) -> Iterator[_RunKey]:
    """The runs in a key."""
    if isinstance(key, _RunKey):
        yield key
    elif isinstance(key, tuple):
        for part in key:
            yield from _runs(part)
