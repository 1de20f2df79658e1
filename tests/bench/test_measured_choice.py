"""`kernelviz.best` measures the first variants of a rule once and uses that run again; otherwise the rule decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.availability import Choice
from kernelviz.bench.best import Best, best
from kernelviz.bench.measured_choice import (
    CANDIDATES,
    Chosen,
    MeasuredChoice,
    _tried,
    candidates_of,
    chosen,
    stored_choice,
)
from kernelviz.cli import main
from kernelviz.core import (
    BadField,
    Device,
    Environment,
    Failure,
    Figure,
    Plan,
    Problem,
    Result,
    Run,
    Stage,
    Timer,
    Timing,
    UnknownRun,
)
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
    _tried.clear()
    yield made
    made.close()


def names(choice: Best) -> list[str]:
    return [variant.name for variant in choice.variants]


def test_the_fastest_right_candidate_is_measured_once_and_then_known(bench: Bench) -> None:
    by_rule = best(bench, "add", SIZES)
    assert candidates_of(by_rule) == CANDIDATES_HERE
    assert len(CANDIDATES_HERE) == CANDIDATES
    assert chosen(bench, by_rule) == Chosen(by_rule, reason="not_asked")
    choice = chosen(bench, by_rule, measure=True)
    assert choice.measured is not None
    assert dict(choice.measured.seconds) == {"second": 2e-6, "first": 3e-6, "third": 4e-6, "fourth": 5e-6}
    assert names(choice.best) == ["second", "first", "third", "fourth", "in_place", "sixth"]  # none that was wrong
    assert chosen(bench, by_rule, measure=True) == choice
    assert chosen(bench, best(bench, "add", SIZES)) == choice
    assert len(bench.history.find()) == 1
    assert chosen(bench, best(bench, "add", {"n": 65})).measured is None


Changed = Callable[[Run], Run]


def stored(
    bench: Bench, run_id: str, variants: Sequence[str] = tuple(TIMES_S), change: Changed = lambda run: run
) -> None:
    """A finished run of these variants of the problem, the newer the higher its id, with something changed."""
    problem = best(bench, "add", SIZES).problem
    results = tuple(known_result(problem, name) for name in variants)
    plan = Plan(problems=(problem,), variants=tuple(variants), baseline=variants[0], device=GPU.id)
    run = Run(
        id=run_id,
        title="",
        created_at=f"2027-01-01T00:00:0{run_id}+00:00",
        status="finished",
        environment=msgspec.structs.replace(sessions.Session(GPU.id, ()).environment(), device=GPU, versions={}),
        method=Method(),
        plan=plan,
        results=results,
    )
    bench.history.add(change(run))


def of(run: Run, name: str, **fields: object) -> Run:
    """The run with these fields of the result of a variant."""
    results = (msgspec.structs.replace(r, **fields) if r.variant == name else r for r in run.results)
    return msgspec.structs.replace(run, results=tuple(results))


def failed(stage: Stage) -> Failure:
    return Failure(stage=stage, message="planted")


def fourth_by_events(run: Run) -> Run:
    """One variant was timed by events; it is the fastest."""
    return of(run, "fourth", outcome=Timing(device_cold_s=by("events", sessions.figure(0.1e-6))))


def fourth_in_stream(run: Run) -> Run:
    """The same of one that was launched into the stream, beside graphs."""
    figure = msgspec.structs.replace(by("cupti", sessions.figure(0.1e-6)), launch="stream")
    return of(run, "fourth", outcome=Timing(device_cold_s=figure))


def by(timer: Timer, figure: Figure) -> Figure:
    return msgspec.structs.replace(figure, timer=timer)


def traced(run: Run) -> Run:
    """What was timed by the host's clock was timed by the tracer."""
    for result in run.results:
        if isinstance(result.outcome, Timing):
            figure = msgspec.structs.replace(by("cupti", sessions.figure(TIMES_S[result.variant])), launch="graph")
            run = of(run, result.variant, outcome=Timing(device_cold_s=figure))
    return run


def elsewhere(run: Run, **fields: object) -> Run:
    return msgspec.structs.replace(run, environment=msgspec.structs.replace(run.environment, **fields))


def sustained(run: Run) -> Run:
    return msgspec.structs.replace(run, method=Method(clock="sustained"))


CHANGES: dict[str, Changed] = {
    "another source": lambda run: of(run, "third", source_digest="other"),
    "a wrong one of another source": lambda run: of(run, "wrong", source_digest="other"),
    "cancelled": lambda run: msgspec.structs.replace(of(run, "third", outcome=failed("cancelled")), status="cancelled"),
    "interrupted": lambda run: msgspec.structs.replace(run, status="interrupted"),
    "a candidate without memory": lambda run: of(run, "third", outcome=failed("out_of_memory")),
    "sustained load": sustained,
    "another driver": lambda run: elsewhere(run, device=msgspec.structs.replace(GPU, driver="1.2")),
    "another Triton": lambda run: elsewhere(run, versions={"triton": "0.1"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_run_that_does_not_say_what_would_be_measured_now_does_not_count(bench: Bench, change: Changed) -> None:
    """A newer run with all variants that has something else."""
    by_rule = best(bench, "add", SIZES)
    stored(bench, "1", CANDIDATES_HERE)
    known = stored_choice(bench, by_rule)
    assert known is not None
    assert (known.run_id, next(iter(known.seconds))) == ("1", "second")
    stored(bench, "2", change=change)
    assert stored_choice(bench, by_rule) == known
    stored(bench, "3", ("first", "second"))
    assert stored_choice(bench, by_rule) == known
    stored(bench, "4")
    newest = stored_choice(bench, by_rule)
    assert newest is not None
    assert (newest.run_id, next(iter(newest.seconds))) == ("4", "sixth")


def test_a_candidate_that_failed_for_good_and_one_that_was_timed_in_another_way_are_left_out(bench: Bench) -> None:
    stored(bench, "1", CANDIDATES_HERE, lambda run: fourth_by_events(of(run, "second", outcome=failed("crash"))))
    known = stored_choice(bench, best(bench, "add", SIZES))
    assert known is not None
    assert list(known.seconds) == ["first", "third"]


@pytest.mark.parametrize("change", [fourth_by_events, fourth_in_stream])
def test_all_timers_on_the_device_and_ways_to_launch_count(bench: Bench, change: Changed) -> None:
    """Of calls that the tracer times in graphs: one that is timed by events because the tracer changes it, or launched into the
    stream because a call beside it has to be."""
    stored(bench, "1", CANDIDATES_HERE, lambda run: change(traced(run)))
    known = stored_choice(bench, best(bench, "add", SIZES))
    assert known is not None
    assert list(known.seconds) == ["fourth", "second", "first", "third"]


def test_the_configuration_of_that_run_is_known(bench: Bench) -> None:
    stored(bench, "1", change=lambda run: of(run, "second", configuration={"block": 128}))
    known = stored_choice(bench, best(bench, "add", SIZES))
    assert known is not None
    assert known.configurations == {"second": {"block": 128}}


def test_without_a_right_candidate_the_rule_decides_and_nothing_is_tried_again(bench: Bench) -> None:
    by_rule = best(bench, "add", {"n": 1})
    assert chosen(bench, by_rule, measure=True) == Chosen(by_rule, reason="none_right")
    assert chosen(bench, by_rule, measure=True) == Chosen(by_rule, reason="tried_before")
    assert len(bench.history.find()) == 1


def test_an_interrupt_cancels_the_run_and_is_raised(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []

    def interrupted(run_id: str, **_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    def cancel(run_id: str) -> None:
        cancelled.append(run_id)
        raise UnknownRun(run_id)

    monkeypatch.setattr(bench, "follow", interrupted)
    monkeypatch.setattr(bench, "cancel", cancel)
    with pytest.raises(KeyboardInterrupt):
        chosen(bench, best(bench, "add", {"n": 66}), measure=True)
    assert len(cancelled) == 1


def test_backward_passes_are_known_by_their_own_source(tmp_path: Path) -> None:
    """Variants of the catalogue: the source of a backward pass is another one than that of the forward pass."""
    made = Bench(Store.open(tmp_path), (GPU,), lock_directory=tmp_path)
    by_rule = best(made, "softmax", {"m": 64, "n": 64}, "fp32", direction="backward")
    op = made.ops()["softmax"].of(by_rule.problem)
    results = tuple(
        msgspec.structs.replace(
            sessions.result(by_rule.problem, name, Timing(device_cold_s=sessions.figure(position * 1e-6))),
            source_digest=op.variant_named(name).source_digest(),
        )
        for position, name in enumerate(reversed(candidates_of(by_rule)), start=1)
    )

    def backward(run: Run) -> Run:
        plan = Plan(
            problems=(by_rule.problem,), variants=candidates_of(by_rule), baseline=results[0].variant, device="cuda:0"
        )
        return msgspec.structs.replace(run, plan=plan, results=results)

    stored(made, "1", ("first",), backward)
    known = stored_choice(made, by_rule)
    assert known is not None
    assert list(known.seconds) == [result.variant for result in results]
    made.close()


def test_a_card_of_another_machine_cannot_be_measured(bench: Bench) -> None:
    there = best(bench, "add", SIZES, device="H200")
    assert chosen(bench, there) == Chosen(there, reason="not_asked")
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
    assert "Not measured: none of the rule's first variants gave a right result" in capsys.readouterr().err
