"""What a page and a terminal are told of compilation ahead."""

from __future__ import annotations

import pytest
import sample_runs as samples

from kernelviz.bench.event_log import EventLog
from kernelviz.cli.progress import Reporter
from kernelviz.core import CompiledAhead
from kernelviz.ui.server.routes import event_message


def test_a_page_is_told_how_much_is_compiled() -> None:
    event = CompiledAhead(compiled=12, total=48, processes=14)
    message = event_message(event, EventLog(48).progress())
    assert (message["kind"], message["words"]) == ("compiled", "compiled 12 of 48 cases ahead, in 14 processes")


def test_a_log_of_the_terminal_has_one_line_when_all_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(samples.run().plan) as reporter:
        for compiled in range(1, 4):
            reporter.show(CompiledAhead(compiled=compiled, total=3, processes=2))
    assert capsys.readouterr().err.splitlines() == ["measuring, compiled 3 of 3 cases ahead, in 2 processes"]
