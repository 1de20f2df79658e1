"""What a run tells its worker to compile ahead, and what its followers are told of it."""

from __future__ import annotations

import msgspec
import pytest

from kernelviz.bench.compile_ahead import MOST_CASES, with_upcoming
from kernelviz.bench.event_log import EventLog
from kernelviz.core import Case, CaseStep, CompiledAhead, Method, Problem, RunEnded, Tuned
from kernelviz.core.problem import QUICK
from kernelviz.worker.request import Request


class Sink:
    cancelled = False

    def begun(self, environment: object) -> None: ...
    def tell(self, event: object) -> None: ...
    def ended(self, end: str, message: str) -> None: ...


def request(n: int, *variants: str) -> Request:
    problem = Problem(op="add", sizes={"n": n}, dtype="fp32")
    tuned = {"b": Tuned(configuration={"block": 64}, run_id="t")}
    return Request(run_id="r", owner="", sink=Sink(), problem=problem, variants=variants, tuned=tuned)


def upcoming(request: Request) -> list[tuple[int, tuple[str, ...]]]:
    assert request.upcoming is not None
    return [(cases.problem.sizes["n"], cases.variants) for cases in request.upcoming()]


def test_a_request_names_its_own_cases_and_those_that_follow() -> None:
    first, final, last = with_upcoming([request(1, "a", "b"), request(1), request(2, "b")])
    assert upcoming(first) == [(1, ("a", "b")), (2, ("b",))]
    assert upcoming(final) == upcoming(last) == [(2, ("b",))]
    assert first.upcoming is not None
    assert first.upcoming()[0].tuned["b"].configuration == {"block": 64}


def test_a_worker_is_not_told_of_more_than_so_many_cases() -> None:
    many = with_upcoming([request(n, *(f"t[b={i}]" for i in range(100))) for n in range(1, 40)])
    assert sum(len(names) for _, names in upcoming(many[0])) == MOST_CASES // 100 * 100
    assert upcoming(many[-1])[0][0] == 39
    (whole,) = with_upcoming([request(1, *(f"v{i}" for i in range(2 * MOST_CASES)))])
    assert len(upcoming(whole)) == 1


def test_the_progress_of_a_run_says_how_far_the_compilation_is_until_it_ends() -> None:
    log = EventLog(2)
    case = Case(problem=Problem(op="add", sizes={"n": 1}, dtype="fp32"), variant="a")
    log.append(CaseStep(case=case, step="binding"))
    for compiled in (1, 2):
        log.append(CompiledAhead(compiled=compiled, total=2, processes=3))
    assert log.progress().compiled == CompiledAhead(compiled=2, total=2, processes=3)
    assert [type(e).__name__ for _, e in log.follow(0, 0.01)] == ["CaseStep", "CompiledAhead"]
    log.append(RunEnded(status="finished"))
    assert log.progress().compiled is None


@pytest.mark.parametrize("method", [Method(), QUICK])
def test_a_document_names_compilation_ahead_only_where_it_was_off(method: Method) -> None:
    assert b"compile_ahead" not in msgspec.json.encode(msgspec.structs.replace(method, ahead=True))
    assert msgspec.structs.replace(method, ahead=True) == method
    off = msgspec.structs.replace(method, ahead=False)
    assert msgspec.json.decode(msgspec.json.encode(off), type=Method) == off
    assert (method.compiles_ahead, off.compiles_ahead, Method(judge=True).compiles_ahead) == (True, False, False)
