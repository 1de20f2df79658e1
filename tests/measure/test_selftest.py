"""The selftest's own machinery: what becomes of a check, verdicts against a timer whose times are known, cheats on a CPU."""

from __future__ import annotations

from typing import Any

import pytest

from kernelviz.core.cheats import CHEATS
from kernelviz.core.errors import UnknownName
from kernelviz.core.events import CheckDone, Event
from kernelviz.core.run import Device
from kernelviz.core.selftest import Check
from kernelviz.measure import selftest as package
from kernelviz.measure.selftest import refusals, verdicts
from kernelviz.measure.selftest.workbench import Finding, NotHere, Probe, Spoilt, Stopped, Workbench, probe
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.measure.session.device_state import DeviceState
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.verdict_reasons import Straddles
from kernelviz.metrics.verdicts import Verdict
from kernelviz.ops import catalogue
from kernelviz.text.cheats import NAMES
from tests.measure.test_rounds import KnownTimed, KnownTimer

TIMES = ("empty_call", "known_traffic_copy", "host_sleep", "flush_by_time")


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    return open_session("cpu")


def checks(session: DeviceSession, *only: str, stop: Any = lambda: False) -> list[Check]:
    events: list[Event] = []
    session.selftest(events.append, stop, only=only, quick=True)
    return [e.check for e in events if isinstance(e, CheckDone)]


def bench(timer: Any, cls: type[Workbench] = Workbench) -> Workbench:
    device = Device(id="cpu", kind="cpu", name="known", uuid="CPU-known")
    site = DeviceState(device, timer, lambda: None)
    return cls(site, catalogue(), lambda ops: DeviceSession(device, ops, timer), lambda: False)


@probe("Is it small?", limit=2.0, unit="s")
def small(at: Workbench) -> Finding:
    return Finding(1.0, {"value_s": 1.0})


@probe("Is it large?", limit=2.0, unit="s", at_most=False)
def large_on_processor(at: Workbench) -> Finding:
    return Finding(1.0, {})


@probe("Is it here?")
def elsewhere(at: Workbench) -> Finding:
    raise NotHere("there is no such tool")


@probe("Does it break?")
def broken(at: Workbench) -> Finding:
    raise ValueError("of no use")


@probe("Does it end?")
def stopped(at: Workbench) -> Finding:
    raise Stopped


@probe("Is the process still good?")
def spoils(at: Workbench) -> Finding:
    raise Spoilt("the context is lost")


def test_what_becomes_of_a_check(session: DeviceSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "CPU", (small, large_on_processor, elsewhere, broken, stopped, small))
    found = checks(session)
    assert [(c.name, c.passed) for c in found] == [
        ("small", True), ("large", False), ("elsewhere", None), ("broken", False),
    ]  # fmt: skip
    assert found[0].figures == {"value_s": 1.0}
    assert (found[0].limit, found[0].at_most, found[1].at_most) == (2.0, True, False)
    assert [c.message for c in found[2:]] == ["there is no such tool", "ValueError: of no use"]
    assert all(c.took_s is not None for c in found)
    assert session.spoilt is None


def test_a_broken_process_ends_it(session: DeviceSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "CPU", (spoils, small))
    with pytest.raises(Spoilt, match="context is lost"):
        checks(session)


def test_names_and_their_beginnings_choose(session: DeviceSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "CPU", (small, large_on_processor, elsewhere))
    assert [c.name for c in checks(session, "sm", "else")] == ["small", "elsewhere"]
    assert checks(session, "timeline") == []
    with pytest.raises(UnknownName, match="did you mean 'small'"):
        checks(session, "smal1")
    asked = iter([False, True])
    assert [c.name for c in checks(session, stop=lambda: next(asked))] == ["small"]


def test_every_name_is_there_once_and_every_cheat_is_planted() -> None:
    for probes in (package.CUDA, package.CPU):
        names = [p.name for p in probes]
        assert len(set(names)) == len(names)
        assert all(p.question.endswith("?") for p in probes)
    for cheat in CHEATS:
        assert any(str(NAMES[cheat]) in p.question for p in (*refusals.CUDA, *refusals.CPU)), cheat


@pytest.mark.parametrize("name", [p.name for p in refusals.CPU])
def test_a_cheat_on_a_processor_is_refused_by_its_name(session: DeviceSession, name: str) -> None:
    (found,) = checks(session, name)
    assert found.passed, found.message


@pytest.mark.parametrize("name", TIMES)
def test_checks_of_a_processor_come_to_a_value(session: DeviceSession, name: str) -> None:
    """Whether they pass is for the machine at hand to say; here others use it at the same time."""
    (found,) = checks(session, name)
    assert found.value is not None, found.message
    assert found.value >= 0
    assert all(value > 0 for value in found.figures.values())
    assert found.passed == (found.value <= (found.limit or 0) if found.at_most else found.value >= (found.limit or 0))


def test_the_same_call_twice_gives_no_alarm() -> None:
    found = verdicts._same(bench(KnownTimer(noise=0.002)), [KnownTimed(4e-6), KnownTimed(44e-6)], 10, 0.2)  # type: ignore[list-item]
    assert (found.value, found.figures["comparisons"], found.figures["same"]) == (0.0, 10.0, 10.0)


def test_alarms_are_counted() -> None:
    class Alarmed(Workbench):
        def compared(self, call: Any, baseline: Any, budget_s: float = 1.0) -> Verdict:
            assert call is baseline
            return next(said)

    words: list[Any] = ["same", "faster", "unclear", "slower", "slower"]
    said = iter(
        [Verdict(w, Interval(1.0 + i / 100, None, None), 0.005, 10, Straddles(0.005)) for i, w in enumerate(words)]
    )
    found = verdicts._same(bench(KnownTimer(), Alarmed), [KnownTimed(4e-6)], 5)  # type: ignore[list-item]
    assert found.value == 3.0
    assert found.figures["largest_difference_fraction"] == pytest.approx(0.04)
    assert (found.figures["faster"], found.figures["slower"], found.figures["unclear"]) == (1.0, 2.0, 1.0)


@pytest.mark.parametrize(("more", "noise", "share"), [(0.01, 0.002, 1.0), (0.0, 0.002, 0.0), (0.004, 0.0005, 0.0)])
def test_a_slow_down_is_found_where_there_is_one(more: float, noise: float, share: float) -> None:
    at = bench(KnownTimer(noise=noise))
    base, slow = KnownTimed(2e-4), KnownTimed(2e-4 * (1 + more))
    found = verdicts._slower_share([at.compared(slow, base, 0.2) for _ in range(4)], {"planted_fraction": more})  # type: ignore[arg-type]
    assert found.value == share
    assert found.figures["measured_fraction"] == pytest.approx(more, abs=0.002)


def test_a_check_of_a_planted_variant_says_when_it_is_not_refused(session: DeviceSession) -> None:
    from kernelviz.core.problem import Problem
    from kernelviz.core.reasons import Stale
    from kernelviz.ops import variant

    @variant(op="add", backend="torch")
    def honest(x_N, y_N):  # type: ignore[no-untyped-def]
        """Adds."""
        return lambda: x_N + y_N

    problem = Problem(op="add", sizes={"n": 999}, dtype="fp32")
    asked: Probe = refusals._refused("none", honest, Stale, problem=problem)
    found = asked.make(bench(session.timer))
    assert (found.passed, found.value, found.message) == (False, 0.0, "it was not refused")
