"""The events of a selftest that a page receives."""

from __future__ import annotations

import json

from kernelviz.bench.event_log import EventLog
from kernelviz.core.events import CheckDone, TimelineDone
from kernelviz.core.selftest import Check, Mark, Timeline
from kernelviz.ui.server.routes import event_message

CHECK = Check(name="a_a", question="?", passed=False, value=3.0, limit=1.0, unit="count", figures={"same": 97.0})


def test_checks_and_the_timeline_are_told_in_words() -> None:
    log = EventLog(0)
    mark = Mark(kind="call", name="k", start_s=0.0, end_s=1e-6)
    events = (
        CheckDone(check=CHECK),
        TimelineDone(timeline=Timeline(case="add", timer="cupti", marks=(mark,), counted=((0.0, 1e-6),))),
    )
    for event in events:
        log.append(event)
    said = [event_message(event, log.progress()) for event in events]
    assert [(s["kind"], s["done"], s["failed"]) for s in said] == [("check", 1, 1), ("timeline", 1, 1)]
    assert said[0]["words"] == "a_a: FAIL: 3 (at most 1)"
    assert "97" not in json.dumps(said)
