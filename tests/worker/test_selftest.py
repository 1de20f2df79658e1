"""A selftest through the supervisor and a real worker process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.core.events import CheckDone, TimelineDone
from kernelviz.worker.protocol import TO_WORKER, Incoming, Selftest, encode
from kernelviz.worker.request import Request
from kernelviz.worker.supervisor import Supervisor
from tests.worker.sessions import DEVICE
from tests.worker.test_supervisor import QUICK, SESSIONS, Listener


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(DEVICE, session=f"{SESSIONS}:open_session", limits=QUICK, lock_directory=tmp_path)
    yield made
    made.close()


def asked(supervisor: Supervisor, *only: str, quick: bool = False) -> Listener:
    sink = Listener()
    supervisor.submit([Request(run_id="test", owner="", sink=sink, work=Selftest(only=only, quick=quick))])
    return sink


def checks(sink: Listener) -> dict[str, bool | None]:
    return {e.check.name: e.check.passed for e in sink.events if isinstance(e, CheckDone)}


def test_every_check_is_told_in_order(supervisor: Supervisor) -> None:
    sink = asked(supervisor)
    sink.until_ended()
    assert (sink.end, sink.message) == ("finished", "")
    assert list(checks(sink).items()) == [("passes", True), ("fails", False), ("absent", None)]
    assert sink.saw(TimelineDone)


def test_what_was_asked_reaches_the_session(supervisor: Supervisor) -> None:
    sink = asked(supervisor, "one", "two", quick=True)
    sink.until_ended()
    found = [e.check for e in sink.events if isinstance(e, CheckDone)]
    assert [(c.name, c.figures["comparisons"]) for c in found] == [("one", 20.0), ("two", 20.0)]
    request = Selftest(work_id=3, only=("one",), quick=True)
    assert [*Incoming(TO_WORKER).feed(encode(request))] == [request]


def test_a_crash_ends_it_with_its_reason_and_keeps_what_was_told(supervisor: Supervisor) -> None:
    sink = asked(supervisor, "passes", "abort", "never")
    sink.until_ended()
    assert sink.end == "finished"
    assert "SIGABRT" in sink.message
    assert checks(sink) == {"passes": True}
    after = asked(supervisor, "passes")
    after.until_ended()
    assert after.message == ""


def test_a_cancel_ends_it_after_its_check(supervisor: Supervisor) -> None:
    sink = asked(supervisor, "passes", "until_cancelled", "never")
    sink.until(lambda: checks(sink))
    sink.cancel()
    supervisor.cancel("test")
    sink.until_ended()
    assert sink.end == "cancelled"
    assert checks(sink) == {"passes": True}
