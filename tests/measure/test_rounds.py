"""Rounds against a timer whose times are known."""

import random
import time
from collections.abc import Sequence

import pytest

from kernelviz.core.notes import BaselineMoved, MeasuredAgain, SlowBlocks, StoppedEarly
from kernelviz.core.problem import PASSES, STEADY_S, Method
from kernelviz.measure.timing.burst import LOAD_S, WINDOW_S, Burst, Pace, is_lower
from kernelviz.measure.timing.rounds import RETRIES, TIMES_AGAIN, Rounds, Series
from kernelviz.measure.timing.timer import BlockSamples, BoundLaunch, DeviceTimer
from kernelviz.metrics.statistics import MIN_BLOCKS
from kernelviz.metrics.verdicts import verdict

QUICK, STEADY = Method(half_width=0.01), Method(clock="sustained")


class KnownTimed:
    launch_mode = "graph"
    kernels = ()
    notes = ()
    correction_s = 0.0

    def __init__(self, time_s: float, clocks: Sequence[float] = ()) -> None:
        self.time_s = time_s
        self.clocks = list(clocks)
        self.launches = [BoundLaunch(tuple)]

    def run_once(self) -> tuple[()]:
        return ()


class KnownTimer(DeviceTimer):
    """Every sample is the call's time with `noise` relative noise, times a drift that all calls share."""

    name = "cupti"

    def __init__(self, noise: float = 0.001, drift: float = 0.0, samples: int = 10) -> None:
        self.random = random.Random(7)
        self.noise, self.drift, self.samples = noise, drift, samples
        self.blocks = 0
        self.orders: list[list[float]] = []
        self.rest_s = 0.0

    def prepare(self, launch, restore):  # pragma: no cover - rounds never prepare
        raise AssertionError

    def describe(self, timed) -> str:
        return "known"

    def flush(self) -> None: ...

    def block_s(self, timed) -> float:
        return timed.time_s * self.samples

    def waits_s(self, coming_s: float) -> float:
        return self.rest_s

    def collect(self, rounds):
        return [[self.block(t) for t in r] for r in rounds]

    def sustain(self, timed, blocks, before_s, stop):
        assert before_s == STEADY_S
        return [] if stop() else [self.block(timed) for _ in range(blocks)]

    def block(self, timed: KnownTimed) -> BlockSamples:
        self.blocks += 1
        scale = 1 + self.drift * self.blocks
        samples = [timed.time_s * scale * self.random.gauss(1, self.noise) for _ in range(self.samples)]
        return BlockSamples(samples, samples, float(self.blocks), timed.clocks.pop(0) if timed.clocks else 1.98e9)


def measured(timer: KnownTimer, times: dict[str, float], method: Method) -> dict[str, Series]:
    series = {name: Series(name, KnownTimed(t)) for name, t in times.items()}
    again = Series("again", series["base"].timed)
    assert Rounds(timer, method, lambda: False).take([*series.values(), again], series["base"], again, lambda _: None)
    return {**series, "again": again}


def taken(timer: KnownTimer, series: list[Series], slowed: Sequence[bool] = (), method: Method = QUICK) -> Rounds:
    """Rounds of these series; `slowed`: what the driver says behind each batch or pass, and no more from then on."""
    said = iter(slowed)
    rounds = Rounds(timer, method, lambda: False, lambda: next(said, False))
    assert rounds.take(series, None, None, lambda _: None)
    return rounds


def test_a_true_difference_of_two_percent_is_found_under_drift() -> None:
    timer = KnownTimer(noise=0.005, drift=0.002)
    found = measured(timer, {"base": 1e-5, "slow": 1.02e-5, "fast": 0.98e-5}, Method(budget_s=0.2))
    base, again = found["base"].figure(timer), found["again"].figure(timer)
    assert verdict(found["slow"].figure(timer), base, again).kind == "slower"
    assert verdict(found["fast"].figure(timer), base, again).kind == "faster"


def test_the_same_call_twice_is_the_same() -> None:
    timer = KnownTimer(noise=0.002)
    found = measured(timer, {"base": 1e-5, "twin": 1e-5}, Method(budget_s=0.2))
    assert (
        verdict(found["twin"].figure(timer), found["base"].figure(timer), found["again"].figure(timer)).kind == "same"
    )


def test_every_round_holds_every_series_once() -> None:
    timer = KnownTimer()
    found = measured(timer, {"base": 1e-5, "other": 2e-5}, Method(budget_s=0.2))
    rounds = [[b.round for b in s.blocks] for s in found.values()]
    assert all(r == list(range(rounds[0][0], rounds[0][0] + len(rounds[0]))) for r in rounds)
    assert len(rounds[0]) >= 10


def test_a_hopeless_series_gets_one_block_and_says_by_how_much() -> None:
    timer = KnownTimer(noise=0.02)
    times = {"base": 3e-5, "best": 1e-5, "near": 1.4e-5, "hopeless": 2e-5}
    found = measured(timer, times, Method(budget_s=0.2, early_stop=1.5))
    assert {name: len(s.blocks) > 1 for name, s in found.items()} == {
        "base": True, "best": True, "near": True, "hopeless": False, "again": True,
    }  # fmt: skip
    stopped = found["hopeless"]
    (note,) = stopped.stop_note(Method(early_stop=1.5))
    assert isinstance(note, StoppedEarly)
    assert note.factor == 1.5
    assert note.ratio == pytest.approx(2.0, rel=0.1)
    assert note.ratio == pytest.approx(min(stopped.samples) / found["best"].means()[0])
    figure = stopped.figure(timer)
    assert (figure.low, figure.high, len(figure.blocks or ())) == (None, None, 1)
    assert verdict(figure, found["base"].figure(timer)).kind == "unclear", "one round decides nothing"
    assert found["base"].stop_note(Method(early_stop=1.5)) == [], "the baseline is never stopped, however slow it is"


def test_without_the_early_stop_every_series_has_every_round() -> None:
    found = measured(KnownTimer(), {"base": 1e-5, "hopeless": 9e-5}, Method(budget_s=0.2))
    assert len(found["hopeless"].blocks) == len(found["base"].blocks) >= MIN_BLOCKS


def test_a_block_with_one_fast_call_is_not_hopeless() -> None:
    """Somebody else used the machine for most of the first block: its fastest call says so."""

    class Disturbed(KnownTimer):
        def block(self, timed: KnownTimed) -> BlockSamples:
            made = super().block(timed)
            if timed.time_s == 1.1e-5 and self.blocks < 4:
                made.samples[1:] = [9 * s for s in made.samples[1:]]
            return made

    found = measured(Disturbed(), {"base": 1e-5, "unlucky": 1.1e-5}, Method(budget_s=0.2, early_stop=1.5))
    assert found["unlucky"].stopped is None
    assert len(found["unlucky"].blocks) == len(found["base"].blocks)


def test_rounds_that_are_measured_again_decide_again_who_is_hopeless() -> None:
    timer = KnownTimer(noise=0.001)
    series = [Series("base", KnownTimed(1e-5)), Series("slow", KnownTimed(4e-5))]
    usual = [2e-5] * MIN_BLOCKS  # another level than before, so all rounds are repeated
    rounds = Rounds(timer, Method(budget_s=0.05, early_stop=1.5), lambda: False)
    assert rounds.take_stable(series, series[0], None, lambda _: None, usual)
    assert series[1].again == TIMES_AGAIN
    assert (len(series[1].blocks), series[1].stopped is not None) == (1, True)


def test_a_stop_is_heard_between_batches() -> None:
    timer = KnownTimer()
    asked = iter([False, True, True, True])
    series = Series("base", KnownTimed(1e-2))
    assert not Rounds(timer, Method(), lambda: next(asked)).take([series], series, None, lambda _: None)
    assert len(series.blocks) < 10


def test_a_block_that_lost_clock_is_taken_again_and_counted() -> None:
    timer = KnownTimer(noise=0.0)
    timed = KnownTimed(1e-5)
    series = Series("base", timed)
    series.add(timer.block(timed), 0)
    timed.clocks = [1.60e9] + [1.98e9] * 9 + [1.97e9]
    taken(timer, [series])
    assert [b.clock_hz for b in series.blocks[:3]] == [1.98e9, 1.97e9, 1.98e9]
    assert (series.retried, series.slow_clock, series.notes()) == (1, 0, [])


def test_a_clock_that_stays_low_is_kept_and_noted() -> None:
    timer = KnownTimer(noise=0.0)
    timed = KnownTimed(1e-5)
    series = Series("base", timed)
    series.add(timer.block(timed), 0)
    timed.clocks = [1.98e9] * 9 + [1.60e9] * 4
    taken(timer, [series])
    assert [b.clock_hz for b in series.blocks if b.clock_hz != 1.98e9] == [1.60e9]
    assert (series.retried, series.slow_clock) == (3, 1)
    assert series.notes() == [SlowBlocks(figure="cold", slow=1, blocks=len(series.blocks))]


def test_a_batch_under_a_slowdown_by_the_hardware_is_taken_again_and_leaves_nothing() -> None:
    timer = KnownTimer(noise=0.0)
    timed = KnownTimed(1e-5)
    series = Series("base", timed)
    series.add(timer.block(timed), 0)
    timed.clocks = (
        [1.60e9] * (1 + RETRIES) * MIN_BLOCKS
    )  # every block of the batch, and each time that it is taken again
    taken(timer, [series], slowed=[True])
    assert (len(series.blocks), series.retried) == (1 + MIN_BLOCKS, (RETRIES + 1) * MIN_BLOCKS)
    assert {b.clock_hz for b in series.blocks} == {1.98e9}
    assert series.notes() == []


@pytest.mark.parametrize("method", [QUICK, STEADY], ids=["burst", "sustained"])
def test_a_slowdown_that_lasts_is_kept_after_so_many_repeats(method: Method) -> None:
    timer = KnownTimer(noise=0.0)
    series = [Series(name, KnownTimed(1e-5)) for name in "ab"]
    taken(timer, series, slowed=[True] * 100, method=method)
    wanted = MIN_BLOCKS if method is QUICK else PASSES * MIN_BLOCKS
    assert [len(s.blocks) for s in series] == [wanted] * 2
    # A batch holds blocks of every series, a pass is one series' alone.
    repeats = RETRIES * MIN_BLOCKS * (2 if method is QUICK else 1)
    assert sum(s.retried for s in series) == repeats
    assert timer.blocks == 2 * wanted + repeats


def test_a_pass_under_a_slowdown_is_taken_again_by_itself_and_in_its_round() -> None:
    timer = KnownTimer(noise=0.0)
    slow, other = Series("slow", KnownTimed(1e-5)), Series("other", KnownTimed(2e-5))
    slow.timed.clocks = [1.98e9] * MIN_BLOCKS + [0.99e9] * MIN_BLOCKS  # its second pass
    asked: list[bool] = []
    done: list[float] = []

    def slowed() -> bool:
        asked.append(not slow.timed.clocks and len(slow.blocks) == MIN_BLOCKS and not slow.retried)
        return asked[-1]

    rounds = Rounds(timer, STEADY, lambda: False, slowed, number=100)
    assert rounds.take([slow, other], None, None, done.append)
    assert (slow.retried, other.retried) == (MIN_BLOCKS, 0)
    assert {b.clock_hz for b in slow.blocks} == {1.98e9}
    for s in (slow, other):
        assert [b.round for b in s.blocks] == [100 + turn for turn in range(PASSES) for _ in range(MIN_BLOCKS)]
    assert (len(asked), sum(asked)) == (2 * PASSES + 1, 1)
    assert done == sorted(done)
    assert done[-1] == 1.0


def test_a_stop_is_heard_before_a_pass_is_taken_again() -> None:
    timer = KnownTimer()
    series = Series("base", KnownTimed(1e-5))
    rounds = Rounds(timer, STEADY, lambda: timer.blocks >= 2 * MIN_BLOCKS, lambda: True)
    assert not rounds.take([series], None, None, lambda _: None)
    assert (len(series.blocks), series.retried) == (0, MIN_BLOCKS)


def test_figures_hold_every_sample_in_order() -> None:
    timer = KnownTimer()
    series = measured(timer, {"base": 1e-5}, Method(budget_s=0.2))["base"]
    figure = series.figure(timer)
    assert figure.samples == tuple(series.samples)
    assert sum(b.size for b in figure.blocks or ()) == len(series.samples)
    assert figure.low is not None
    assert figure.low <= figure.estimate <= (figure.high or 0)
    assert figure.estimate == pytest.approx(1e-5, rel=1e-3)


def test_a_figure_says_at_how_many_places_its_call_was_bound() -> None:
    timer = KnownTimer()
    series = measured(timer, {"base": 1e-5}, Method(budget_s=0.2))["base"]
    assert series.figure(timer).buffers == 1
    series.timed.launches *= 60
    assert series.figure(timer).buffers == 60


def test_decided_comparisons_may_end_it_before_the_single_times_are_narrow() -> None:
    times = {"base": 1e-5, "slow": 2e-5}
    counts = {}
    for enough in (False, True):
        timer = KnownTimer(noise=0.05)
        found = measured(timer, times, Method(budget_s=5.0, half_width=0.004, decided_is_enough=enough))
        counts[enough] = len(found["base"].blocks)
    assert counts[True] == 10
    assert counts[False] > 20


def test_a_rest_that_lasts_until_the_end_of_the_budget_is_not_waited_for() -> None:
    timer = KnownTimer(noise=0.05)
    timer.rest_s = 10.0
    found = measured(timer, {"base": 1e-3, "other": 1.001e-3}, Method(budget_s=2.0))
    assert {len(s.blocks) for s in found.values()} == {MIN_BLOCKS}
    timer.rest_s = 0.0
    found = measured(timer, {"base": 1e-3, "other": 1.001e-3}, Method(budget_s=0.02))
    assert min(len(s.blocks) for s in found.values()) > MIN_BLOCKS


def test_what_a_burst_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    burst = Burst()
    assert burst.waits_s(1.0) == 0.0  # more than a window holds, but nothing was taken before
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    burst._load.extend([(now - 2 * WINDOW_S, LOAD_S), (now - 0.1, LOAD_S / 2), (now - 0.05, LOAD_S / 4)])
    assert burst.waits_s(LOAD_S / 5) == 0.0
    assert burst.waits_s(LOAD_S / 2) == pytest.approx(WINDOW_S - 0.1)
    assert burst.waits_s(LOAD_S) == pytest.approx(WINDOW_S - 0.05)


class Clock:
    """Time that passes only while somebody sleeps or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.slept_s = 1000.0, 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s += seconds


def test_calls_whose_clock_holds_rest_once_and_the_others_before_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks are those of an H200: a memory-bound call, and a product of 8192^3 that loses 1.3 % in its second batch."""
    clock, burst = Clock(monkeypatch), Burst()
    light, heavy = Pace(), Pace()

    def batch(pace: Pace, mhz: float) -> tuple[bool, bool, float]:
        before_s = clock.slept_s
        rested = burst.begin([pace], LOAD_S)
        clock.now_s += LOAD_S
        blocks = [(pace, (mhz + step) * 1e6) for step in (-1, 0, 0, 1)]
        return rested, burst.lost_clock(blocks, rested=rested), clock.slept_s - before_s

    assert batch(light, 1984) == (True, False, 0.0)
    assert [batch(light, 1983) for _ in range(5)] == [(False, False, 0.0)] * 5
    assert burst.waits_s(LOAD_S) == 0.0
    rested, lost, slept_s = batch(heavy, 1618)  # its clock is not known yet
    assert (rested, lost) == (True, False)
    assert slept_s == pytest.approx(WINDOW_S, rel=0.01)
    assert batch(heavy, 1596) == (False, True, 0.0)
    for _ in range(3):
        rested, lost, slept_s = batch(heavy, 1618)
        assert (rested, lost) == (True, False)
        assert slept_s == pytest.approx(WINDOW_S, rel=0.01)
    assert burst.waits_s(LOAD_S) == pytest.approx(WINDOW_S, rel=0.01)
    assert batch(light, 1984) == (False, False, 0.0)
    burst.discard()
    assert batch(light, 1984)[:2] == (True, False), "the one behind a disturbed batch rests"
    burst.discard()
    assert len(light.rested_hz) == 4, "the clocks of a discarded batch do not count"
    clock.sleep(2.0)
    assert batch(light, 1984)[:2] == (True, False)
    clock.sleep(2.0)
    before_s = clock.slept_s
    assert batch(light, 1950) == (True, False, 0.0), "after a pause of the user nothing is waited for, and nothing lost"
    assert clock.slept_s == before_s
    assert not light.needs_rests


def test_a_call_that_loses_clock_beside_calls_that_do_not_is_noticed() -> None:
    noise = random.Random(3)
    heavy, light = Pace(), [Pace() for _ in range(7)]

    def blocks(mhz: dict[int, float], rounds: int) -> list[tuple[Pace, float]]:
        every = [(heavy, mhz[0]), *((pace, mhz[1]) for pace in light)]
        return [(pace, level * 1e6 * noise.gauss(1, 0.004)) for _ in range(rounds) for pace, level in every]

    for pace, hz in blocks({0: 1618, 1: 1980}, 4):
        pace.rested_hz.append(hz)
    found = {
        name: sum(is_lower(blocks(mhz, 9)) for _ in range(100))
        for name, mhz in {
            "none": {0: 1618, 1: 1980},
            "one loses 2 %": {0: 1586, 1: 1980},
            "all lose 1 %": {0: 1602, 1: 1960},
            "the light ones lose more": {0: 1600, 1: 1600},
        }.items()
    }
    assert found["none"] <= 5
    assert min(count for name, count in found.items() if name != "none") >= 95, found


def test_a_batch_without_a_known_clock_always_rests() -> None:
    burst, pace = Burst(), Pace()
    for _ in range(3):
        assert burst.begin([pace], 1e-6)
        assert not burst.lost_clock([(pace, None)], rested=True)
    assert not burst.lost_clock([], rested=False)


def test_work_of_the_host_is_done_again_behind_a_rest_if_its_clock_fell(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, burst = Clock(monkeypatch), Burst()
    clocks_mhz = iter([1980, 1980, 1980, 1979, 1900, 1980, 1985])

    def work() -> tuple[int, float]:
        clock.now_s += LOAD_S
        return (mhz := next(clocks_mhz)), mhz * 1e6

    pace = Pace()
    assert [burst.paced(pace, LOAD_S, work) for _ in range(3)] == [(1980, True)] * 3
    slept_s = clock.slept_s
    assert burst.paced(pace, LOAD_S, work) == (1979, False)
    assert clock.slept_s == slept_s
    assert burst.paced(pace, LOAD_S, work) == (1980, True), "the one with 1900 MHz does not count"
    assert clock.slept_s == pytest.approx(slept_s + WINDOW_S, rel=0.01)
    assert pace.needs_rests
    assert burst.paced(pace, LOAD_S, work) == (1985, True)
    assert clock.slept_s == pytest.approx(slept_s + 2 * WINDOW_S, rel=0.01)
    unknown = Pace()
    assert [burst.paced(unknown, 1e-6, lambda: ("x", None))[1] for _ in range(5)] == [True] * 5
    with pytest.raises(ZeroDivisionError):
        burst.paced(pace, LOAD_S, lambda: (1 // 0, 1.0))


class DisturbedTimer(KnownTimer):
    """Every block of rounds that begin while the machine is busy takes `factor` times as long."""

    def __init__(self, busy: Sequence[range], factor: float = 20.0) -> None:
        super().__init__()
        self.busy, self.factor = busy, factor

    def block(self, timed: KnownTimed) -> BlockSamples:
        made = super().block(timed)
        scale = self.factor if any(self.blocks in r for r in self.busy) else 1.0
        return BlockSamples([s * scale for s in made.samples], made.busy, made.started_s, made.clock_hz)


def stable(timer: KnownTimer, usual: Sequence[float] = ()) -> dict[str, Series]:
    series = {name: Series(name, KnownTimed(t)) for name, t in (("base", 1e-5), ("slow", 2e-5))}
    again = Series("again", series["base"].timed)
    method = Method(budget_s=0.001, half_width=0.01)
    rounds = Rounds(timer, method, lambda: False)
    assert rounds.take_stable([*series.values(), again], series["base"], again, lambda _: None, usual)
    return series


def test_rounds_beside_a_machine_that_changed_are_measured_again() -> None:
    """Ten rounds of three series are longer by 20 times than the baseline was; the following ten are not."""
    found = stable(DisturbedTimer([range(1, 31)]), usual=[1e-5, 1.001e-5] * 15)
    assert found["base"].figure(KnownTimer()).estimate == pytest.approx(1e-5, rel=0.01)
    assert [note for s in found.values() for note in s.notes()] == [MeasuredAgain(attempts=1)] * 2
    assert all(s.retried == len(s.blocks) for s in found.values())


def test_a_change_that_stays_is_stored_with_the_baselines_two_times() -> None:
    found = stable(DisturbedTimer([range(1, 1000)]), usual=[1e-5, 1.001e-5] * 15)
    again, moved = found["slow"].notes()
    assert again == MeasuredAgain(attempts=TIMES_AGAIN)
    assert isinstance(moved, BaselineMoved)
    assert (moved.baseline_s, moved.usual_s) == pytest.approx((2e-4, 1e-5), rel=0.01)
    assert not any(isinstance(note, BaselineMoved) for note in found["base"].notes())


def test_quiet_rounds_are_measured_once() -> None:
    assert not any(s.again or s.retried for s in stable(KnownTimer(), usual=[1e-5, 1.001e-5] * 15).values())


def test_a_load_of_another_length_comes_before_each_series() -> None:
    loads: list[float] = []

    class Loaded(KnownTimer):
        def sustain(self, timed, blocks, before_s, stop):
            loads.append(before_s)
            return super().sustain(timed, blocks, STEADY_S, stop)

    series = [Series(name, KnownTimed(1e-5)) for name in "ab"]
    method = Method(clock="sustained", load_s=10.0)
    assert Rounds(Loaded(noise=0.0), method, lambda: False).take(series, None, None, lambda _: None)
    assert loads == [10.0] * 2 * PASSES
    # The worker may be silent for so long, and each of its cases may take so long.
    assert method.longest_s(2) == 2 * method.budget_s + PASSES * 3 * 10.0
