"""Interleaved rounds: each round measures every variant of a problem once, in random order, and the baseline twice.

Conditions that a round shares (clock, temperature, neighbours) cancel in its ratios. The baseline's second series is an A/A
comparison, which gives the noise floor of every verdict.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from kernelviz.core import (
    BaselineMoved,
    Block,
    Figure,
    MeasuredAgain,
    Method,
    Note,
    NoteFigure,
    SlowBlocks,
    StoppedEarly,
)
from kernelviz.core.problem import PASSES
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.timing.timer import BlockSamples, DeviceTimer, Timed
from kernelviz.metrics.quality import CLOCK_MOVED
from kernelviz.metrics.stability import levels_differ, stability_of_means
from kernelviz.metrics.statistics import MIN_BLOCKS, Floats, block_means, figure_interval
from kernelviz.metrics.verdicts import verdict

BATCH_S = 0.040
"""Rounds are measured in batches of about this much load, so that a cancel takes effect and burst limits hold."""
RETRIES = 3
"""The maximum number of repetitions of a round whose clock dropped. It also limits the repeated batches (or passes under steady
load) of one measurement that the hardware slowed down."""
TIMES_AGAIN = 2
"""Rounds in which a time was not stable are measured again at most so often."""
SHORT_S, SHORT_BLOCKS = 5e-6, 0.1
"""Stamps have a resolution of 32 ns, 1.6 % of 2 us, so the interval of a few blocks of a shorter call is too narrow. Such a call
gets at least SHORT_BLOCKS / half-width blocks: 40 for 0.25 %, 20 for 0.5 %."""


START = 0, 0, 0
"""The mark of a series without blocks."""


@dataclass(slots=True)
class Series:
    """The blocks of one variant (or of the baseline's second series)."""

    name: str
    timed: Timed
    samples: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    retried: int = 0
    slow_clock: int = 0
    again: int = 0
    """How often rounds were measured again because a time was not stable."""
    moved: tuple[float, float] | None = None
    """The baseline's level beside this series, and before it, if they differ."""
    stopped: float | None = None
    """If it got no further blocks after its first one: its fastest call over the fastest series of that round."""

    def mark(self) -> tuple[int, int, int]:
        """The state to which `rewind` returns."""
        return len(self.samples), len(self.blocks), self.slow_clock

    def rewind(self, mark: tuple[int, int, int]) -> None:
        """Remove the blocks since that mark."""
        samples, blocks, self.slow_clock = mark
        del self.samples[samples:], self.busy[samples:], self.blocks[blocks:]

    def means(self) -> Floats:
        """The trimmed mean of each block."""
        return block_means(self.samples, self.blocks)

    def add(self, block: BlockSamples, round_number: int) -> None:
        self.samples += block.samples
        self.busy += block.busy
        self.blocks.append(
            Block(size=len(block.samples), started_s=block.started_s, clock_hz=block.clock_hz, round=round_number)
        )

    def figure(self, timer: DeviceTimer, method: str | None = None, *, busy: bool = False) -> Figure:
        """The figure of all blocks so far."""
        samples = self.busy if busy else self.samples
        interval = figure_interval(samples, self.blocks)
        return Figure(
            estimate=interval.estimate,
            low=interval.low,
            high=interval.high,
            samples=tuple(samples),
            blocks=tuple(self.blocks),
            timer=timer.timer_of(self.timed),
            launch=self.timed.launch_mode,
            method=method,
            correction_s=self.timed.correction_s or None,
            buffers=len(self.timed.launches),
        )

    def notes(self, figure: NoteFigure = "cold") -> list[Note]:
        """The notes on its blocks, for the figure that they make."""
        slow = SlowBlocks(figure=figure, slow=self.slow_clock, blocks=len(self.blocks))
        notes = [msgspec.structs.replace(note, figure=figure) for note in self.timed.notes]
        notes += [slow] if self.slow_clock else []
        notes += [MeasuredAgain(figure=figure, attempts=self.again)] if self.again else []
        if self.moved is not None:
            notes.append(BaselineMoved(figure=figure, baseline_s=self.moved[0], usual_s=self.moved[1]))
        return notes

    def stop_note(self, method: Method) -> list[Note]:
        """The note that it was stopped early, if it was."""
        if self.stopped is None or method.stop_factor is None:
            return []
        return [StoppedEarly(ratio=self.stopped, factor=method.stop_factor)]

    def loses_clock(self, block: BlockSamples) -> bool:
        """Whether the block must be repeated, because its SM clock is too far below that of the series' first block."""
        first = next((b.clock_hz for b in self.blocks if b.clock_hz), None)
        return first is not None and block.clock_hz is not None and block.clock_hz < first * (1 - CLOCK_MOVED)


@dataclass(slots=True)
class Rounds:
    """Measures rounds of several series until each is decided or the budget is spent."""

    timer: DeviceTimer
    method: Method
    stop: Stop
    # Called after each batch and each pass; True when it must be repeated (the hardware slowed the device down).
    disturbed: Callable[[], bool] = lambda: False
    seed: int = 0
    least: int = MIN_BLOCKS
    """The least number of rounds. With fewer than MIN_BLOCKS, series can be put in order, but have no interval."""
    # Unlike the numbers of any other measurement, also in another process, so that their blocks are never paired.
    number: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def take_stable(
        self,
        series: Sequence[Series],
        baseline: Series | None,
        again: Series | None,
        progress: Callable[[float], None],
        usual: Sequence[float] | Floats = (),
    ) -> bool:
        """Like `take`, but measure these rounds again, at most TIMES_AGAIN times, while one of the times is not stable or the
        baseline has another level than before (`usual`: the means of its earlier blocks). What remains is stored, and notes say
        so."""
        marks = [s.mark() for s in series]
        earlier = len(baseline.blocks) if baseline is not None else 0
        for attempt in range(TIMES_AGAIN + 1):
            for s in series:
                s.again, s.moved, s.stopped = s.again + bool(attempt), None, None
            if not self.take(series, baseline, again, progress):
                return False
            if self.method.clock == "sustained":
                return True
            here = baseline.means()[earlier:] if baseline is not None else np.empty(0)
            moved = levels_differ(here, usual)
            if not moved and not any(stability_of_means(s.means()).unstable for s in series):
                return True
            if attempt < TIMES_AGAIN:
                for s, mark in zip(series, marks, strict=True):
                    s.retried += len(s.blocks) - mark[1]
                    s.rewind(mark)
            elif moved:
                for s in (s for s in series if s is not baseline and s is not again):
                    s.moved = float(np.median(here)), float(np.median(usual))
        return True

    def take(
        self, series: Sequence[Series], baseline: Series | None, again: Series | None, progress: Callable[[float], None]
    ) -> bool:
        """Add blocks to every series (baseline and again among them). False when it was stopped."""
        if self.method.clock == "sustained":
            return self._take_sustained(series, progress)
        shuffled = random.Random(self.seed)
        budget_s = self.method.budget_s * len(series)
        started = time.monotonic()
        done = repeated = 0
        stops = self.method.stop_factor is not None
        while not self.stop():
            per_round = max(sum(self.timer.block_s(s.timed) for s in series), 1e-6)
            count = max(1, min(self.least, int(BATCH_S / per_round)))
            if stops and not done:
                count = 1  # the first round alone decides which series are hopeless
            elif done < self.least:
                count = min(count, self.least - done)
            else:
                # A rest that would last until the budget's end counts as spent.
                spent_s = time.monotonic() - started + self.timer.waits_s(count * per_round)
                if spent_s >= budget_s or self.decided(series, baseline, again):
                    return True
            orders = [shuffled.sample(range(len(series)), len(series)) for _ in range(count)]
            batch = self._collected(series, orders)
            if self.disturbed() and repeated < RETRIES:
                repeated += 1
                self.timer.discard()
                for s in series:
                    s.retried += count
                continue
            for order, blocks in zip(orders, batch, strict=True):
                for index, block in zip(order, blocks, strict=True):
                    series[index].slow_clock += series[index].loses_clock(block)
                    series[index].add(block, self.number)
                self.number += 1
            if stops and not done:
                series = self._without_hopeless(series, baseline, again)
                budget_s = self.method.budget_s * len(series)
            done += count
            progress(min(1.0, max(done / (2 * self.least), (time.monotonic() - started) / budget_s)))
        return False

    def _without_hopeless(
        self, series: Sequence[Series], baseline: Series | None, again: Series | None
    ) -> list[Series]:
        """The series that are worth further rounds, after their first common one. The others are marked as stopped.

        A series is hopeless if even its fastest call took more than the factor of the method times as long as the fastest
        series of the round. The baseline is never stopped, because all others are compared with it."""
        factor = self.method.stop_factor or math.inf
        level_s = {id(s): float(s.means()[-1]) for s in series}
        best_s = min(level_s.values())
        for s in series:
            if s is baseline or s is again or len(s.blocks) != 1:
                continue
            ratio = min(s.samples) / best_s
            s.stopped = ratio if ratio > factor else None
        return [s for s in series if s.stopped is None]

    def _take_sustained(self, series: Sequence[Series], progress: Callable[[float], None]) -> bool:
        """Measure each series after some seconds of its own load, in several passes over all series in random order.

        All blocks of one pass have the same round number, because they are one observation: changes from pass to pass cancel in
        their ratios. A series' part of a pass that the hardware slowed down is repeated at once, again after its load.
        """
        shuffled = random.Random(self.seed)
        repeated = 0
        for number_of_pass in range(PASSES):
            coming = shuffled.sample(series, len(series))
            while coming:
                one = coming[0]
                blocks = self.timer.sustain(one.timed, MIN_BLOCKS, self.method.steady_s, self.stop)
                if self.stop():
                    return False
                if self.disturbed() and repeated < RETRIES:
                    repeated += 1
                    one.retried += len(blocks)
                else:
                    coming.pop(0)
                    for block in blocks:
                        one.add(block, self.number)
                progress((number_of_pass + 1 - len(coming) / len(series)) / PASSES)
            self.number += 1
        return True

    def _collected(self, series: Sequence[Series], orders: Sequence[Sequence[int]]) -> list[list[BlockSamples]]:
        """Measure the rounds; repeat a round while the clock of one of its blocks dropped (ratios need whole rounds)."""
        rounds = self.timer.collect([[series[i].timed for i in order] for order in orders])
        for position, order in enumerate(orders):
            for _ in range(RETRIES):
                slow = [i for i, block in zip(order, rounds[position], strict=True) if series[i].loses_clock(block)]
                if not slow or self.stop():
                    break
                for i in slow:
                    series[i].retried += 1
                self.timer.discard()
                rounds[position] = self.timer.collect([[series[i].timed for i in order]])[0]
        return rounds

    def decided(self, series: Sequence[Series], baseline: Series | None, again: Series | None) -> bool:
        """Whether the blocks so far are as many, and their intervals as narrow, as the method requires."""
        figures = {s.name: s.figure(self.timer) for s in series}
        least = SHORT_BLOCKS / self.method.half_width
        if any(f.estimate < SHORT_S and len(f.blocks or ()) < least for f in figures.values()):
            return False
        narrow = all(_within(f.half_width, self.method.half_width) for f in figures.values())
        if baseline is None or len(series) < 2:
            return narrow
        to = figures[baseline.name]
        floor = figures[again.name] if again is not None else None
        compared = [verdict(figures[s.name], to, floor) for s in series if s is not baseline and s is not again]
        unclear = [v for v in compared if v.kind == "unclear"]
        known = all(v.ratio and _within(v.ratio.half_width, self.method.ratio_half_width) for v in unclear)
        return (not unclear and self.method.decided_is_enough) or (known and narrow)


def _within(half_width: float | None, wanted: float) -> bool:
    return half_width is not None and half_width <= wanted
