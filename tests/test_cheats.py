"""Variants that cheat, measured by a real worker with a real judge. tests/gpu/test_untrusted.py measures all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.bench import Bench
from kernelviz.core import ClockConfirmed, ClockUnverified, Failure, Method, RunRequest
from kernelviz.core.errors import BadField
from kernelviz.core.reasons import ClockContradicted, Reason, ReplacedFunctions, Unwritten
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.rows import rows
from kernelviz.metrics.verdict_reasons import Apart
from kernelviz.metrics.winner import winners
from kernelviz.store import Store

CHEATS = str(Path(__file__).with_name("planted_cheats.py"))
UNTRUSTED = Method(budget_s=0.1, judge=True)
FOUND_ONLY_BY_A_JUDGE: dict[str, tuple[str, type[Reason]]] = {
    "patches_the_gate": ("wrong", Unwritten),
    "forges_the_result": ("impossible", ClockContradicted),
    "answers_early": ("wrong", Unwritten),
}

pytestmark = pytest.mark.xdist_group("device")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(Store.open(tmp_path), discover(), lock_directory=tmp_path)
    yield bench
    bench.close()


@pytest.mark.timeout(300)
def test_what_a_process_says_about_itself_does_not_count(bench: Bench) -> None:
    """The cheats patch the gate, the result on its way, and the answer to the judge. Two honest variants are right."""
    honest = ("torch_eager", "torch_compile")
    request = RunRequest(
        op="add",
        sizes={"n": "2^20"},
        variants=(*honest, *FOUND_ONLY_BY_A_JUDGE),
        dtype="fp32",
        device="cpu",
        plugins=(CHEATS,),
    )
    run_id = bench.run(bench.plan(request), UNTRUSTED, owner="test")
    for _ in bench.follow(run_id):
        pass
    run = bench.load(run_id)
    assert run.method.untrusted
    results = {r.variant: r for r in run.results}
    for name, (stage, reason) in FOUND_ONLY_BY_A_JUDGE.items():
        outcome = results[name].outcome
        assert isinstance(outcome, Failure), name
        assert (outcome.stage, *map(type, outcome.reasons)) == (stage, reason), name
    for name in honest:
        result = results[name]
        assert result.timing is not None, result.outcome
        assert result.accuracy is not None
        assert result.accuracy.passed
        assert result.conditions is not None
        assert any(isinstance(n, ClockConfirmed | ClockUnverified) for n in result.conditions.notes)
    table = rows(run, ())
    compared = next(r.verdict for r in table if r.result.variant == "torch_compile")
    assert compared is not None
    assert isinstance(compared.reason, Apart)
    (winner,) = winners(table)
    assert winner.leader is not None
    assert winner.leader.result.variant in honest


REPLACED = {
    "patches_the_gate": "kernelviz.measure.gate.check.Comparison.accuracy",
    "patches_the_clock": "time.perf_counter_ns",
    "patches_the_clock_later": "time.perf_counter_ns",
}


@pytest.mark.timeout(300)
def test_an_ordinary_run_refuses_code_that_replaces_the_gate_or_the_clock(bench: Bench) -> None:
    """They are refused by name, and what was measured beside them is measured again in another process."""
    request = RunRequest(
        op="add",
        sizes={"n": "2^12"},
        variants=("torch_eager", *REPLACED),
        dtype="fp32",
        device="cpu",
        plugins=(CHEATS,),
    )
    run_id = bench.run(bench.plan(request), Method(budget_s=0.1, figures=("cold",)), owner="test")
    for _ in bench.follow(run_id):
        pass
    results = {r.variant: r for r in bench.load(run_id).results}
    for name, function in REPLACED.items():
        outcome = results[name].outcome
        assert isinstance(outcome, Failure), name
        (reason,) = outcome.reasons
        assert isinstance(reason, ReplacedFunctions), (name, outcome)
        assert function in reason.functions
        assert outcome.stage == "wrong"
    assert results["torch_eager"].timing is not None, results["torch_eager"].outcome


def test_every_way_to_replace_a_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelviz.measure.gate import check, host_calls
    from kernelviz.measure.session.own_functions import OwnFunctions
    from kernelviz.measure.timing.host import HostTimer

    functions = OwnFunctions()
    assert functions.replaced() == ()

    def other(*arguments: object) -> None:
        """What a cheat puts in place of a function."""

    monkeypatch.setattr(HostTimer, "flush", other)  # a method
    monkeypatch.setattr(host_calls, "cheat_of", other)  # a function of a module
    monkeypatch.setattr(check.Comparison.add, "__code__", other.__code__)  # the code of a function
    monkeypatch.setattr(host_calls, "sum", other, raising=False)  # a name that hides one of Python's
    monkeypatch.setattr(
        check, "__compiled_fn_1", other, raising=False
    )  # as torch.compile does; nobody calls it by this name
    monkeypatch.delattr(check.Comparison, "accuracy")
    assert functions.replaced() == (
        "kernelviz.measure.gate.check.Comparison.accuracy",
        "kernelviz.measure.gate.check.Comparison.add",
        "kernelviz.measure.gate.host_calls.cheat_of",
        "kernelviz.measure.gate.host_calls.sum",
        "kernelviz.measure.timing.host.HostTimer.flush",
    )
    monkeypatch.undo()
    assert functions.replaced() == ()


def test_only_times_that_a_judge_can_check_are_measured(bench: Bench) -> None:
    plan = bench.plan(RunRequest(op="add", sizes={"n": "16"}, device="cpu"))
    with pytest.raises(BadField, match="judge can check only the cold device time"):
        bench.run(plan, Method(figures=("cold", "warm"), judge=True), owner="test")
