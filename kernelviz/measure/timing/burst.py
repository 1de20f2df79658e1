"""Bursts: how much load a device gets at once, so that its clock is that of a short load.

A device under long load reaches its power limit and lowers its clock. So load is limited to LOAD_S in any window of WINDOW_S,
until the measured clock shows that these calls do not need it: the first blocks follow a rest, the following batches
follow each other at once, and if the clock of such a batch is lower, it is measured again behind a rest, and so are all later
ones of these calls. Figures of 15 calls with and without rests: docs/measuring.md, "Rests between bursts".
"""

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeVar

T = TypeVar("T")

LOAD_S, WINDOW_S = 0.040, 0.200
"""At most LOAD_S of load in any window of WINDOW_S. A product of 8192^3 in bf16 without rests has lost 1 % of its clock after 0.1
s and 7 % after 1 s (H200, 2026-11-30)."""
LOST_CLOCK = 0.003
"""A batch whose clock is lower by more than this, beyond what blocks scatter, is measured again."""
LEAST_RESTED = 3
"""Blocks of a call behind a rest, from which its clock there is known."""


@dataclass(slots=True)
class Pace:
    """What is known of the clock under one call: `rested_hz`: of each block behind a rest; `needs_rests`: whether it fell
    without one."""

    rested_hz: list[float] = field(default_factory=list)
    needs_rests: bool = False

    @property
    def must_rest(self) -> bool:
        """Whether a batch of the call must follow a rest."""
        return self.needs_rests or len(self.rested_hz) < LEAST_RESTED


Clocks = Sequence[tuple[Pace, float | None]]
"""The SM clock of each block of a batch in Hz, with the call that it belongs to; None where it is not known."""


class Burst:
    """The load of one device in the last WINDOW_S, and the rests before more of it."""

    def __init__(self) -> None:
        self._load: deque[tuple[float, float]] = deque()
        self._recorded: list[Pace] = []
        self._rests = True
        self._discarded = False

    def count(self, coming_s: float) -> None:
        """Count load that begins now and lasts `coming_s` seconds, without a rest before it."""
        self._load.append((time.monotonic() + coming_s, coming_s))

    def rest(self, coming_s: float) -> None:
        """Wait until so many seconds of load fit into the window, and count them."""
        while (left_s := self._left_s(coming_s)) > 0:
            time.sleep(left_s)
        self.count(coming_s)

    def begin(self, paces: Sequence[Pace], coming_s: float) -> bool:
        """Before a batch of these calls: rest if one of them needs it, if its clock is not known well enough yet, or if the last
        batch was discarded. Returns whether the batch is one behind a rest; it is, too, if the device has rested by itself. (An
        H200 that was idle for a second begins at a clock that is 1 to 2 % lower.)"""
        must = self._discarded or any(pace.must_rest for pace in paces)
        rested = must or self._left_s(coming_s) <= 0
        self._discarded = False
        if must:
            self.rest(coming_s)
        else:
            self.count(coming_s)
        return rested

    def lost_clock(self, clocks: Clocks, *, rested: bool) -> bool:
        """After a batch: whether its clock was lower than behind a rest, so that it must be measured again behind one."""
        known = [(pace, hz) for pace, hz in clocks if hz is not None]
        self._recorded = [pace for pace, _ in known] if rested else []
        if rested:
            for pace, hz in known:
                pace.rested_hz.append(hz)
            lost = False
        else:
            lost = is_lower(known)
            for pace, _ in clocks:
                pace.needs_rests = pace.needs_rests or lost
        self._rests = any(pace.must_rest for pace, _ in clocks)
        return lost

    def paced(self, pace: Pace, coming_s: float, work: Callable[[], tuple[T, float | None]]) -> tuple[T, bool]:
        """Do this work, which returns its result and the clock meanwhile: behind a rest where `begin` says so, and again behind
        one if the clock fell. Returns the result, and whether the device had rested."""
        while True:
            rested = self.begin([pace], coming_s)
            result, clock_hz = work()
            if not self.lost_clock([(pace, clock_hz)], rested=rested):
                return result, rested

    def discard(self) -> None:
        """The last batch does not count, because something disturbed it: neither do its clocks, and the next one rests."""
        for pace in self._recorded:
            pace.rested_hz.pop()
        self._recorded, self._discarded = [], True

    def waits_s(self, coming_s: float) -> float:
        """About how long the next batch of the same calls would rest, in seconds."""
        return self._left_s(coming_s) if self._rests else 0.0

    def _left_s(self, coming_s: float) -> float:
        now = time.monotonic()
        while self._load and self._load[0][0] < now - WINDOW_S:
            self._load.popleft()
        recent_s = sum(load_s for _, load_s in self._load)
        until_s = now
        for ended_s, load_s in self._load:
            if recent_s + coming_s <= LOAD_S:
                break
            recent_s -= load_s
            until_s = max(ended_s + WINDOW_S, now + 1e-3)
        return until_s - now


def is_lower(clocks: Sequence[tuple[Pace, float]]) -> bool:
    """Whether the clock of a batch is lower than that of the same calls behind a rest: the mean of all by more than LOST_CLOCK
    and two standard errors of the difference, or that of one call by more than it and three. The errors follow from the
    scatter within calls, so calls that lose more than those beside them are noticed, too.

    >>> light = Pace(rested_hz=[1980e6, 1984e6, 1982e6])
    >>> heavy = Pace(rested_hz=[1618e6, 1617e6, 1619e6])
    >>> is_lower([(light, 1981e6), (light, 1983e6), (heavy, 1617e6), (heavy, 1618e6)])
    False
    >>> is_lower([(light, 1981e6), (light, 1983e6), (heavy, 1596e6), (heavy, 1594e6)])
    True
    """
    by_call: dict[int, tuple[Pace, list[float]]] = {}
    for pace, hz in clocks:
        by_call.setdefault(id(pace), (pace, []))[1].append(hz)
    if not by_call:
        return False
    means = [(fmean(now), fmean(pace.rested_hz)) for pace, now in by_call.values()]
    squares = sum(
        sum((hz / now_hz - 1) ** 2 for hz in now) + sum((hz / rested_hz - 1) ** 2 for hz in pace.rested_hz)
        for (pace, now), (now_hz, rested_hz) in zip(by_call.values(), means, strict=True)
    )
    free = sum(len(now) + len(pace.rested_hz) - 2 for pace, now in by_call.values())
    scatter = math.sqrt(squares / max(free, 1))
    shares = [now_hz / rested_hz for now_hz, rested_hz in means]
    errors = [scatter * math.sqrt(1 / len(now) + 1 / len(pace.rested_hz)) for pace, now in by_call.values()]
    if any(share < 1 - LOST_CLOCK - 3 * error for share, error in zip(shares, errors, strict=True)):
        return True
    return fmean(shares) < 1 - LOST_CLOCK - 2 * math.hypot(*errors) / len(errors)
