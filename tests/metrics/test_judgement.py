"""What follows from the judge's clock and comparison for the result of an untrusted worker."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core import (
    Accuracy,
    ClockConfirmed,
    ClockUnverified,
    Cost,
    DeviceKind,
    Failure,
    Method,
    Result,
    Run,
    Timing,
)
from kernelviz.core.reasons import ClockContradicted, NotJudged, Unwritten
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.judgement import (
    EXCHANGE_S,
    EXCHANGES,
    MOST_EXCHANGE_S,
    VARIES,
    clock_finding,
    judged_result,
    measured_apart,
)
from kernelviz.metrics.quality import quality
from kernelviz.metrics.rows import rows
from kernelviz.metrics.statistics import LEAST_DIFFERENCE
from kernelviz.metrics.verdict_reasons import Apart
from kernelviz.metrics.winner import winners
from kernelviz.text import describe_noise

RIGHT = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.3, seeds=9)
WRONG = msgspec.structs.replace(RIGHT, passed=False, unwritten=7, reasons=(Unwritten(elements=7),))
COST = Cost(work_flop=1, read_bytes=8, written_bytes=4)


def claimed() -> Result:
    """A result with a time, as a worker sends it."""
    return next(r for r in samples.run().results if r.timing is not None and r.timing.device_cold_s is not None)


def time_s(result: Result) -> float:
    timing = result.timing
    assert timing is not None
    assert timing.device_cold_s is not None
    return timing.device_cold_s.estimate


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize("call_s", [5e-6, 1e-3, 0.2])
def test_the_limits_between_confirmed_unverified_and_contradicted(kind: DeviceKind, call_s: float) -> None:
    copy_s = 0.3 * call_s

    def found(hidden_s: float, exchange_s: float | None = None) -> object:
        times_s = [call_s + hidden_s + copy_s, 3 * call_s + hidden_s]
        return clock_finding(call_s, times_s, copy_s, kind, exchange_s)

    varies_s = VARIES[kind] * call_s
    most_s = varies_s + EXCHANGE_S[kind]
    assert isinstance(found(-0.5 * call_s), ClockConfirmed), "the judge's caches may hold more than the flush left"
    assert isinstance(found(0.09 * call_s), ClockConfirmed)
    assert isinstance(found(0.5 * (0.1 * call_s + most_s)), ClockUnverified)
    assert isinstance(found(1.01 * most_s), ClockContradicted)
    assert isinstance(found(1.01 * most_s, 0.1 * EXCHANGE_S[kind]), ClockContradicted)
    assert isinstance(found(varies_s + 1.99 * EXCHANGE_S[kind], 2 * EXCHANGE_S[kind] / EXCHANGES), ClockUnverified)
    assert isinstance(found(varies_s + 2.01 * EXCHANGE_S[kind], 2 * EXCHANGE_S[kind] / EXCHANGES), ClockContradicted)
    assert isinstance(found(varies_s + 1.01 * MOST_EXCHANGE_S, 1.0), ClockContradicted)


def test_what_the_judge_found_replaces_what_the_worker_said() -> None:
    result = msgspec.structs.replace(claimed(), accuracy=None, cost=None)
    honest = judged_result(result, [time_s(result) * 1.05], 0.0, RIGHT, "", "cuda", COST)
    assert (honest.accuracy, honest.cost) == (RIGHT, COST)
    assert honest.timing == result.timing
    assert measured_apart(honest, honest)
    assert not measured_apart(honest, result)

    wrong = judged_result(result, [time_s(result)], 0.0, WRONG, "", "cuda", COST)
    assert isinstance(wrong.outcome, Failure)
    assert (wrong.outcome.stage, wrong.outcome.reasons, wrong.outcome.timing) == ("wrong", WRONG.reasons, result.timing)

    fast = judged_result(result, [1.0], 0.25, RIGHT, "", "cuda", COST)
    assert isinstance(fast.outcome, Failure)
    assert fast.outcome.stage == "impossible"
    assert fast.outcome.reasons == (ClockContradicted(time_s=time_s(result), judged_s=0.75, copy_s=0.25, trials=1),)


def test_a_case_that_could_not_be_judged_is_wrong_and_says_why() -> None:
    for times_s, accuracy, error in (([], None, "the judge ended"), ([1e-3], None, ""), ([], RIGHT, "")):
        found = judged_result(claimed(), times_s, 0.0, accuracy, error, "cpu", None)
        assert isinstance(found.outcome, Failure)
        assert (found.outcome.stage, found.outcome.reasons, found.outcome.message) == ("wrong", (NotJudged(),), error)


def test_a_failure_stays_a_failure() -> None:
    failed = msgspec.structs.replace(claimed(), outcome=Failure(stage="crash", message="gone"))
    assert judged_result(failed, [1e-9], 0.0, RIGHT, "", "cpu", failed.cost) == failed


def test_a_backward_pass_is_never_contradicted_because_its_forward_pass_is_in_the_judges_time() -> None:
    result = claimed()
    backward = msgspec.structs.replace(result, problem=msgspec.structs.replace(result.problem, direction="backward"))
    found = judged_result(backward, [1.0], 0.25, RIGHT, "", "cuda", COST)
    assert found.conditions is not None
    assert ClockUnverified(at_most_s=0.75, trials=1) in found.conditions.notes


def test_a_clock_that_is_not_verified_is_a_caveat_and_a_confirmed_one_is_none() -> None:
    result = claimed()
    before = quality(result, clock="burst")
    assert before is not None
    for share, level in ((1.0, "good"), (1.2, "note")):
        found = judged_result(result, [time_s(result) * share], 0.0, RIGHT, "", "cuda", result.cost)
        rating = quality(found, clock="burst")
        assert rating is not None
        assert [p.level for p in rating.parts if isinstance(p.fact, ClockConfirmed | ClockUnverified)] == [level]


def judged_run(shares: dict[str, float]) -> Run:
    """A run of untrusted variants, each of which was measured in rounds of its own."""

    def apart(result: Result, number: int) -> Result:
        timing = result.timing
        assert timing is not None
        cold = timing.device_cold_s
        assert cold is not None
        blocks = tuple(msgspec.structs.replace(b, round=(b.round or 0) + 1000 * number) for b in cold.blocks or ())
        alone = Timing(device_cold_s=msgspec.structs.replace(cold, blocks=blocks))
        claim = msgspec.structs.replace(result, outcome=alone)
        return judged_result(claim, [cold.estimate], 0.0, RIGHT, "", "cuda", result.cost)

    run = samples.run(shares=shares)
    return msgspec.structs.replace(run, results=tuple(apart(r, i) for i, r in enumerate(run.results)))


def test_variants_that_were_measured_apart_are_compared_and_alike_everywhere() -> None:
    """In the table, in the view of winners and on the page Compare, at twice the floor that shared rounds have."""
    run = judged_run({"torch_eager": 0.5, "torch_compile": 0.52, "triton_one_pass": 0.502})
    table = rows(run, ())
    verdicts = {(r.result.problem.key, r.result.variant): r.verdict for r in table if r.verdict}
    assert all(isinstance(v.reason, Apart) and v.floor == 2 * LEAST_DIFFERENCE for v in verdicts.values())
    kinds = {name: {v.kind for (_, n), v in verdicts.items() if n == name} for _, name in verdicts}
    assert kinds == {"torch_compile": {"faster"}, "triton_one_pass": {"same"}}
    for winner in winners(table):
        assert winner.leader is not None
        assert winner.leader.result.variant == "torch_compile"
        assert winner.outcome == "won"
    compared = compare(run, run, variant_a="torch_eager", variant_b="torch_compile")
    assert {(p.kind, type(p.reason)) for p in compared.pairs} == {("faster", Apart)}
    assert str(describe_noise(compared)).startswith("Each variant was measured in a process of its own")


def test_no_judge_is_the_same_as_none_stated() -> None:
    """A run with `judge=False` was stored as a row that could not be read again."""
    assert Method(judge=False) == Method()
    assert not Method(judge=False).untrusted
    assert b"untrusted" not in msgspec.json.encode(Method(judge=False))
    assert msgspec.json.decode(b'{"untrusted": false}', type=Method) == Method()
    assert msgspec.structs.replace(Method(judge=True), judge=False) == Method()
