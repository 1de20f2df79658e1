"""What a page and a terminal are told of compilation ahead."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench.event_log import EventLog
from kernelviz.cli.progress import Reporter, format_problem
from kernelviz.core import CaseDone, CaseStep, CompiledAhead, Timing
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


def test_a_case_that_is_measured_further_has_a_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = samples.run()
    first = run.results[0]
    assert isinstance(first.outcome, Timing)
    assert first.outcome.device_cold_s is not None
    later = msgspec.structs.replace(first.outcome.device_cold_s, estimate=2 * first.outcome.device_cold_s.estimate)
    again = msgspec.structs.replace(first, outcome=msgspec.structs.replace(first.outcome, device_cold_s=later))
    with Reporter(run.plan) as reporter:
        for result in (first, first, again, again):
            reporter.show(CaseDone(result=result))
    lines = [line for line in capsys.readouterr().err.splitlines() if "(measured further)" in line or "1/" in line]
    assert len(lines) == 2, "a line for each time, none for other figures of the same one"
    assert lines[1].rstrip().endswith("(measured further)")


def test_the_other_times_of_a_problem_have_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = samples.run()
    first, second = run.results[:2]
    with Reporter(run.plan) as reporter:
        for result in (first, second):
            reporter.show(CaseDone(result=result))
        for result in (first, second, first):
            reporter.show(CaseStep(case=result.case, step="measuring", fraction=0.5))
        reporter.show(CaseStep(case=run.results[-1].case, step="measuring", fraction=0.5))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1].split() == ["other", "times", "of", *format_problem(first.problem).split()]
