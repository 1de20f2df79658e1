"""`kernelviz.best` measures the first variants of a rule once and uses that run again; otherwise the rule decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.availability import Choice
from kernelviz.bench.best import Best, best
from kernelviz.bench.measured_choice import CANDIDATES, MeasuredChoice, candidates_of, chosen, stored_choice
from kernelviz.cli import main
from kernelviz.core import BadField, Device, Environment, Failure, Plan, Problem, Result, Timing
from kernelviz.core.problem import Method
from kernelviz.measure.session.contract import Emit, Stop
from kernelviz.ops import Op, Variant, catalogue
from kernelviz.ops.catalog.best import Card
from kernelviz.store import Store
from tests.bench.bench_of_sessions import QUICK, missing
from tests.worker import sessions

GPU = Device(id="cuda:0", kind="cuda", name="Test GPU", uuid="GPU-test", compute_capability=(9, 0), multiprocessors=132)
TIMES_S = {
    "first": 3e-6,
    "in_place": 0.1e-6,
    "second": 2e-6,
    "wrong": 1e-6,
    "third": 4e-6,
    "fourth": 5e-6,
    "sixth": 0.5e-6,
}
"""`in_place` changes an input, which the first variant of the rule does not; `sixth` is the sixth without it."""
CANDIDATES_HERE = ("first", "second", "wrong", "third", "fourth")
SIZES = {"n": 64}


def _bind(*inputs: object) -> None:
    raise AssertionError("nothing is bound in the server")


def rule(problem: Problem, card: Card) -> tuple[str, ...]:
    """The variants in the order of their names' numbers."""
    return tuple(TIMES_S)


def ops() -> Mapping[str, Op]:
    """`add` with own variants of known times, and a library."""
    changed = {"in_place": ("x_N",)}
    made = [
        Variant(name=name, backend="triton", bind=_bind, summary=name, mutates=changed.get(name, ()))
        for name in TIMES_S
    ]
    made.append(Variant(name="library", backend="torch", bind=_bind, summary="a library"))
    return {"add": dataclasses.replace(catalogue()["add"], variants=tuple(made), baseline="library", best=rule)}


class KnownTimes(sessions.Session):
    """Each variant takes its known time; `wrong` is wrong, and everything fails on problems of one element."""

    def environment(self) -> Environment:
        return msgspec.structs.replace(super().environment(), device=GPU)

    def measure(
        self,
        problem: Problem,
        variants: tuple[str, ...],
        baseline: str,
        method: Method,
        emit: Emit,
        stop: Stop,
        **others: object,
    ) -> None:
        for name in variants:
            emit(sessions.CaseDone(result=known_result(problem, name)))


def known_result(problem: Problem, name: str) -> Result:
    wrong = name == "wrong" or problem.sizes["n"] == 1
    outcome = (
        Failure(stage="wrong", message="1 of 64") if wrong else Timing(device_cold_s=sessions.figure(TIMES_S[name]))
    )
    return msgspec.structs.replace(
        sessions.result(problem, name, outcome), source_digest=ops()["add"].variant_named(name).source_digest()
    )


def open_session(device: str, plugins: tuple[str, ...] = ()) -> KnownTimes:
    return KnownTimes(device, plugins)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(
        Store.open(tmp_path),
        (GPU,),
        choice=Choice(ops=ops, missing=missing),
        session=f"{__name__}:open_session",
        limits=QUICK,
        lock_directory=tmp_path,
    )
    yield made
    made.close()


def names(choice: Best) -> list[str]:
    return [variant.name for variant in choice.variants]


def test_the_fastest_right_candidate_is_measured_once_and_then_known(bench: Bench) -> None:
    by_rule = best(bench, "add", SIZES)
    assert candidates_of(by_rule) == CANDIDATES_HERE
    assert len(CANDIDATES_HERE) == CANDIDATES
    assert chosen(bench, by_rule) == (by_rule, None)
    choice, measured = chosen(bench, by_rule, measure=True)
    assert measured is not None
    assert dict(measured.seconds) == {"second": 2e-6, "first": 3e-6, "third": 4e-6, "fourth": 5e-6}
    assert names(choice) == ["second", "first", "third", "fourth", "in_place", "sixth"]  # none that was wrong
    assert chosen(bench, by_rule, measure=True)[1] == measured
    assert chosen(bench, best(bench, "add", SIZES)) == (choice, measured)
    assert len(bench.history.find()) == 1
    assert chosen(bench, best(bench, "add", {"n": 65}))[1] is None


def stored(bench: Bench, run_id: str, variants: Sequence[str], *, old_source: str = "") -> None:
    """A run of these variants of the problem, as one that somebody measured."""
    by_rule = best(bench, "add", SIZES)
    results = [known_result(by_rule.problem, name) for name in variants]
    results = [msgspec.structs.replace(r, source_digest="other") if r.variant == old_source else r for r in results]
    template = bench.load(
        bench.run(
            Plan(problems=(best(bench, "add", {"n": 7}).problem,), variants=("first",), baseline="first", device=GPU.id)
        )
    )
    plan = Plan(problems=(by_rule.problem,), variants=tuple(variants), baseline=variants[0], device=GPU.id)
    environment = msgspec.structs.replace(template.environment, device=GPU)
    run = msgspec.structs.replace(
        template,
        id=run_id,
        plan=plan,
        results=tuple(results),
        environment=environment,
        created_at=f"2027-01-01T00:00:0{run_id}+00:00",
    )
    bench.history.add(run)


def test_the_newest_run_of_all_candidates_with_their_sources_counts_with_all_its_variants(bench: Bench) -> None:
    by_rule = best(bench, "add", SIZES)
    stored(bench, "1", tuple(TIMES_S))
    stored(bench, "2", tuple(TIMES_S), old_source="third")
    stored(bench, "3", ("first", "second"))
    measured = stored_choice(bench, by_rule)
    assert measured is not None
    assert (measured.run_id, next(iter(measured.seconds))) == ("1", "sixth")


def test_without_a_right_candidate_the_rule_decides(bench: Bench) -> None:
    by_rule = best(bench, "add", {"n": 1})
    assert chosen(bench, by_rule, measure=True) == (by_rule, None)


def test_a_card_of_another_machine_cannot_be_measured(bench: Bench) -> None:
    there = best(bench, "add", SIZES, device="H200")
    assert chosen(bench, there) == (there, None)
    with pytest.raises(BadField, match="not a GPU of this machine"):
        chosen(bench, there, measure=True)


def test_the_command_says_what_was_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    assert main(["best", "add", "--size", "n=64"]) == 0
    assert capsys.readouterr().out == "first\n"
    assert main(["best", "add", "--size", "n=64", "--measure"]) == 0
    said = capsys.readouterr()
    assert said.out == "second\n"
    assert "cold device times): second 2.000 µs, first 3.000 µs" in said.err
    assert "The rule prefers first." in said.err
    assert main(["best", "add", "--size", "n=64", "--json"]) == 0
    record = msgspec.json.decode(capsys.readouterr().out)
    assert (record["variant"], record["by_rule"]) == ("second", "first")
    assert list(record["measured"]["cold_s"]) == ["second", "first", "third", "fourth"]
    assert MeasuredChoice(record["measured"]["run"], record["measured"]["at"], record["measured"]["cold_s"])
    assert main(["best", "add", "--size", "n=1", "--measure"]) == 0
    assert "Not measured" in capsys.readouterr().err
