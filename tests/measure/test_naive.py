"""The naive protocol: what is timed in its process, what its answer looks like, and what is said where there is none."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz.cli import run as cli_run
from kernelviz.core.errors import BadField
from kernelviz.core.events import CaseDone, Event
from kernelviz.core.notes import NoNaiveTiming, Note
from kernelviz.core.problem import QUICK, USUAL_FIGURES, Method, Problem
from kernelviz.core.result import Figure, NaiveTiming, Result, Timing
from kernelviz.formats import compact, decode, encode, exports, parquet
from kernelviz.formats.validation import checked
from kernelviz.measure.naive.process import CALLS, naive_in_new_process
from kernelviz.measure.session.device_session import open_session
from kernelviz.metrics.absences import absences
from kernelviz.metrics.rows import rows
from kernelviz.ops import Variant, catalogue
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import View
from kernelviz.text.absences import describe_missing_figures
from kernelviz.text.naive import WRONG, describe_naive_of_run

PLUGIN = str(Path(__file__).parents[1] / "planted_first_calls.py")
BIND_S, FIRST_S = 0.05, 0.2
PROBLEM = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
TIMES = NaiveTiming(first_s=12.5e-3, mean_s=0.4e-3, calls=100, bind_and_first_s=13e-3, timer="events")


def test_the_first_calls_of_a_new_process_are_timed_and_a_variant_that_fails_there_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The session has called the variant before, so only a new process has a slow first call."""
    monkeypatch.setenv("PLANTED_PARENT", str(os.getpid()))
    session = open_session("cpu", (PLUGIN,))
    events: list[Event] = []
    method = msgspec.structs.replace(QUICK, figures=("cold", "naive"))
    session.measure(
        PROBLEM, ("slow_first_call", "raises_elsewhere"), "slow_first_call", method, events.append, lambda: False
    )
    results = {e.result.variant: e.result for e in events if isinstance(e, CaseDone) and e.result.timing}
    naive = next(
        e.result.timing.naive_timing
        for e in events
        if isinstance(e, CaseDone) and e.result.timing is not None and e.result.timing.naive_timing is not None
    )
    assert (naive.calls, naive.timer) == (CALLS, "host")
    assert FIRST_S <= naive.first_s < FIRST_S + 0.2
    assert naive.bind_and_first_s >= FIRST_S + BIND_S
    assert FIRST_S / CALLS <= naive.mean_s < naive.first_s / 2, "one pair around all calls, the first one included"
    raised = results["raises_elsewhere"]
    assert raised.timing is not None
    assert raised.timing.naive_timing is None
    assert raised.conditions is not None
    (note,) = (n for n in raised.conditions.notes if isinstance(n, NoNaiveTiming))
    assert (note.fault, note.figure, note.message) == ("raised", "naive", "ArithmeticError: not in this process")


def ask(code: str, *, stop_after_s: float = 60.0) -> NaiveTiming | Note | None:
    """What the worker makes of a process that runs this code."""
    until_s = time.monotonic() + stop_after_s
    measure = naive_in_new_process("cpu", PROBLEM, (), (sys.executable, "-c", code))
    variant: Variant = catalogue()["add"].variant_named("torch_eager")
    return measure(variant, 1e-6, lambda: time.monotonic() > until_s, lambda: None)


def test_a_process_that_ends_without_an_answer_is_a_note_with_its_code_and_its_last_output() -> None:
    assert ask("import sys; print('no memory'); sys.exit(3)") == NoNaiveTiming(
        figure="naive", fault="ended", exit_code=3, message="no memory"
    )
    found = ask('import sys; open(sys.argv[1], \'w\').write(\'{"timing": {"first_s": "soon"}}\')')
    assert isinstance(found, NoNaiveTiming)
    assert found.fault == "ended"


def test_a_cancelled_run_ends_the_process() -> None:
    begun_s = time.monotonic()
    assert ask("import time; time.sleep(60)", stop_after_s=0.3) is None
    assert time.monotonic() - begun_s < 20


def with_naive(naive: NaiveTiming = TIMES) -> kv.Report:
    run = samples.run(id="naive", shares={"torch_eager": 0.6, "torch_compile": 0.5})
    results = []
    for number, result in enumerate(run.results):
        assert isinstance(result.outcome, Timing)
        outcome = msgspec.structs.replace(result.outcome, naive=naive) if number == 0 else result.outcome
        results.append(msgspec.structs.replace(result, outcome=outcome))
    method = Method(figures=("cold", "naive"))
    return kv.Report.of(msgspec.structs.replace(run, results=tuple(results), method=method))


def cold_of(result: Result) -> Figure:
    assert result.timing is not None
    assert result.timing.device_cold_s is not None
    return result.timing.device_cold_s


def test_it_is_beside_our_time_with_the_ratio_and_missing_ones_have_a_reason() -> None:
    run = with_naive()
    row = cases(run, rows(run, ()))[0]
    by_title = {c.title: c.value(row) for c in case_columns(cases(run, rows(run, ())), View.TIMES_WIDE)}
    assert (by_title["Naive, first call"], by_title["Naive, mean"]) == (TIMES.first_s, TIMES.mean_s)
    assert by_title["Naive first / cold"] == pytest.approx(TIMES.first_s / cold_of(run.results[0]).estimate)
    frame = run.to_frame()
    assert frame.naive_first_s.iloc[0] == TIMES.first_s
    assert frame.naive_first_s.isna().sum() == len(run.results) - 1
    about = [str(line) for line in describe_naive_of_run(run.results, "cuda")]
    assert about[1] == WRONG
    assert "12.50 ms for the first call" in about[2]
    assert describe_naive_of_run(samples.run().results, "cuda") == []
    assert absences(run.results[0], run) == ()
    (missing,) = map(str, describe_missing_figures(run.results, run))
    assert missing.startswith("naive protocol: no reason was recorded")


def test_documents_keep_it_and_those_without_it_keep_their_digest() -> None:
    run = with_naive()
    whole = samples.run(id="naive", shares={"torch_eager": 0.6, "torch_compile": 0.5})
    assert b'"naive"' not in encode(whole).replace(b'"id":"naive"', b"")
    for back in (decode(encode(run)), parquet.decode(parquet.encode(run)), compact.decode(compact.encode(run))):
        assert isinstance(back.results[0].outcome, Timing)
        assert back.results[0].outcome.naive == TIMES
    assert "12.50 ms" in exports()["md"].encode(run).decode()
    bad = with_naive(msgspec.structs.replace(TIMES, mean_s=-1.0))
    with pytest.raises(Exception, match=r"naive\.mean_s"):
        checked(bad)
    with pytest.raises(Exception, match=r"naive\.calls"):
        checked(with_naive(msgspec.structs.replace(TIMES, calls=0)))


def test_it_is_measured_on_request_only() -> None:
    assert "naive" not in USUAL_FIGURES
    assert cli_run.chosen_method(1.0, "burst", None, energy=False, naive=True).figures == (*USUAL_FIGURES, "naive")
    assert cli_run.chosen_method(1.0, "burst", "cold,naive", energy=False).figures == ("cold", "naive")
    with pytest.raises(BadField, match="--naive"):
        cli_run.quick_method("burst", None, energy=True)
