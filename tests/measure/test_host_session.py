"""The whole measuring session on the CPU, with planted variants: each becomes its Failure, the others keep their times."""

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from torch import Tensor

from kernelviz.core.events import CaseDone, CaseStep, Event
from kernelviz.core.notes import CallTooLong, NoEnergyCounter
from kernelviz.core.problem import USUAL_FIGURES, Method, Problem
from kernelviz.core.reasons import (
    DoesNotFitMemory,
    ErrorTooLarge,
    LowerPrecision,
    MutatedInput,
    NoLaunch,
    OutputShape,
    OutputStrides,
    OutputType,
    Raised,
    Reason,
    Recompiled,
    Remembered,
    Stale,
    Unfinished,
    Unwritten,
)
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.metrics.quality import notes_on_other_figures
from kernelviz.ops import Launch, op_named, variant

PLANTED = str(Path(__file__).parents[1] / "planted.py")
QUICK = Method(budget_s=0.05)
RAISED = {"raises_half_a_character": "half a \\ud83d", "raises_in_bind": "no such configuration"}
"""The text of the exception that these variants raise."""


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    return open_session("cpu", (PLANTED,))


def measure(session: DeviceSession, variants: tuple[str, ...], **sizes: int) -> dict[str, Result]:
    events: list[Event] = []
    problem = Problem(op="add", sizes=sizes or {"n": 1000}, dtype="fp32")
    session.measure(problem, variants, variants[0], QUICK, events.append, lambda: False)
    begun = {e.case.variant for e in events if isinstance(e, CaseStep)}
    done = {e.result.variant: e.result for e in events if isinstance(e, CaseDone)}
    assert begun == done.keys() == set(variants)
    return done


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("works_on_in_a_thread", (Unfinished, Unwritten)),
        ("remembers_by_content", Remembered),
        ("works_every_37th_time", Unwritten),
        ("returns_nothing_later", OutputShape),
    ],
)
def test_a_cheat_that_no_tracer_shows_on_a_processor_is_refused(
    session: DeviceSession, name: str, why: type[Reason] | tuple[type[Reason], ...]
) -> None:
    outcome = measure(session, ("honest", name), n=2**20)[name].outcome
    assert isinstance(outcome, Failure)
    assert outcome.stage == "wrong"
    assert isinstance(outcome.reasons[0], why)


def test_a_view_of_the_input_is_no_output(session: DeviceSession) -> None:
    events: list[Event] = []
    problem = Problem(op="transpose", sizes={"m": 100, "n": 50}, dtype="fp32")
    session.measure(problem, ("torch_eager", "is_a_view"), "torch_eager", QUICK, events.append, lambda: False)
    outcome = {e.result.variant: e.result.outcome for e in events if isinstance(e, CaseDone)}["is_a_view"]
    assert isinstance(outcome, Failure)
    assert outcome.reasons == (OutputStrides(output="y_NM", strides=(1, 50)),)


def test_a_call_that_raises_while_it_is_timed_fails_alone(session: DeviceSession) -> None:
    events: list[Event] = []
    names = ("honest", "raises_in_a_timed_block")
    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
    session.measure(problem, names, names[0], Method(budget_s=0.2), events.append, lambda: False)
    outcomes = [(e.result.variant, e.result.outcome) for e in events if isinstance(e, CaseDone)]
    raised = Failure(stage="crash", reasons=(Raised(type="ValueError"),), message="in a block")
    assert [o for name, o in outcomes if name != "honest"] == [raised]
    assert all(isinstance(o, Timing) for name, o in outcomes if name == "honest")
    assert len(outcomes) > 1


@pytest.mark.parametrize(
    ("name", "stage", "why"),
    [
        ("writes_nothing", "wrong", Unwritten),
        ("is_wrong", "wrong", ErrorTooLarge),
        ("remembers", "wrong", Stale),
        ("changes_its_input", "wrong", MutatedInput(inputs=("x_N",))),
        ("has_another_shape", "wrong", OutputShape),
        ("has_gaps", "wrong", OutputStrides(output="z_N", strides=(2,))),
        ("returns_none", "wrong", OutputType(output="z_N", type="NoneType")),
        ("computes_when_read", "wrong", OutputType(output="z_N", type="Later")),
        ("binds_a_number", "crash", NoLaunch(type="int")),
        ("raises_half_a_character", "crash", Raised(type="ValueError")),
        ("raises_in_bind", "crash", Raised(type="ValueError")),
        ("runs_out_of_memory", "out_of_memory", "memory"),
    ],
)
def test_a_planted_fault_becomes_its_failure(
    session: DeviceSession, name: str, stage: str, why: str | Reason | type[Reason]
) -> None:
    done = measure(session, ("honest", name))
    outcome = done[name].outcome
    assert isinstance(outcome, Failure)
    assert outcome.stage == stage
    if isinstance(why, str):
        assert (outcome.reasons, why in outcome.message) == ((), True)
    else:
        assert outcome.message == RAISED.get(name, "")
        assert any(isinstance(r, why) if isinstance(why, type) else r == why for r in outcome.reasons)
    assert isinstance(done["honest"].outcome, Timing)
    assert session.spoilt is None


def test_a_wrong_variant_keeps_its_time(session: DeviceSession) -> None:
    outcome = measure(session, ("honest", "is_wrong"))["is_wrong"].outcome
    assert isinstance(outcome, Failure)
    assert outcome.timing is not None
    assert outcome.timing.device_cold_s is not None


def test_a_declared_change_of_an_input_is_restored_before_every_call(session: DeviceSession) -> None:
    done = measure(session, ("honest", "adds_in_place"))
    assert isinstance(done["adds_in_place"].outcome, Timing), done["adds_in_place"].outcome
    assert isinstance(done["honest"].outcome, Timing)
    assert done["honest"].accuracy is not None
    assert done["honest"].accuracy.passed


def test_more_launches_hold_the_same_numbers_elsewhere(session: DeviceSession) -> None:
    import torch

    from kernelviz.measure.session.binding import BoundProblem

    op = session.ops["add"]
    problem = Problem(op="add", sizes={"n": 1001}, dtype="fp32")
    bound = BoundProblem(op, problem, torch.device("cpu"), 2**30, "cpu")
    assert bound.buffers == 1
    bound.buffers = 3
    launches = [p.launch() for p in bound._more_launches(op.variant_named("torch_eager"))]
    assert len(launches) == len(bound.more_inputs) == 2
    expected = bound.inputs[0] + bound.inputs[1]
    addresses = {t.data_ptr() for inputs in (bound.inputs, *bound.more_inputs) for t in inputs}
    assert len(addresses) == 6
    assert all(torch.equal(found, expected) for found in launches)


@pytest.mark.parametrize(("free_bytes", "times"), [(2**21, 6), (2**30, 3)])
def test_a_reference_is_computed_once_for_all_variants_where_the_memory_is_large(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch, free_bytes: int, times: int
) -> None:
    """Three seeds, two variants; of a size whose reference is always kept on no machine."""
    import torch

    from kernelviz.measure.session import binding
    from kernelviz.measure.timing.timer import BoundLaunch

    computed = []

    def reference(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        computed.append(inputs)
        return (inputs[0] + inputs[1],)

    monkeypatch.setattr(binding, "CACHED_BYTES", 0)
    op = replace(session.ops["add"], reference=reference)
    problem = Problem(op="add", sizes={"n": 2**14}, dtype="fp32")  # 256 KiB a seed
    bound = binding.BoundProblem(op, problem, torch.device("cpu"), free_bytes, "cpu")

    def check_two_variants() -> None:
        for name in ("torch_eager", "torch_eager"):
            variant = op.variant_named(name)
            place = BoundLaunch(bound.bind(variant, bound.inputs)[0])
            assert bound.check(variant, session.timer.prepare(place), 3).passed

    check_two_variants()
    assert len(computed) == times
    bound.forget_references()
    check_two_variants()
    assert len(computed) == 2 * times


def test_a_timing_accounts_for_every_sample(session: DeviceSession) -> None:
    outcome = measure(session, ("honest",), n=5000)["honest"].outcome
    assert isinstance(outcome, Timing)
    figure = outcome.device_cold_s
    assert figure is not None
    assert figure.samples is not None
    assert figure.blocks is not None
    assert len(figure.samples) == sum(b.size for b in figure.blocks)
    assert figure.timer == "host"
    assert 1e-7 < figure.estimate < 1e-2


def test_the_baseline_has_a_second_series_when_there_is_something_to_compare(session: DeviceSession) -> None:
    done = measure(session, ("honest", "torch_eager"))
    assert isinstance(done["honest"].outcome, Timing)
    assert done["honest"].outcome.again_s is not None
    assert isinstance(done["torch_eager"].outcome, Timing)
    assert done["torch_eager"].outcome.again_s is None


def test_a_problem_that_does_not_fit_fails_before_anything_is_allocated(session: DeviceSession) -> None:
    outcome = measure(session, ("honest",), n=2**44)["honest"].outcome
    assert isinstance(outcome, Failure)
    assert outcome.stage == "out_of_memory"
    (needs,) = outcome.reasons
    assert isinstance(needs, DoesNotFitMemory)
    assert needs.needed_bytes > needs.free_bytes


def test_a_stop_gives_cancelled_to_what_has_no_result(session: DeviceSession) -> None:
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": 77}, dtype="fp32")
    session.measure(problem, ("honest", "torch_eager"), "honest", QUICK, events.append, lambda: True)
    outcomes = [e.result.outcome for e in events if isinstance(e, CaseDone)]
    assert [o.stage for o in outcomes if isinstance(o, Failure)] == ["cancelled", "cancelled"]


def test_a_repeated_point_binds_nothing_again(session: DeviceSession) -> None:
    measure(session, ("honest",), n=4242)
    bound = session._problems["add fp32 n=4242"].variants["honest"]
    measure(session, ("honest",), n=4242)
    assert session._problems["add fp32 n=4242"].variants["honest"] is bound


def test_what_was_used_longest_ago_is_forgotten_and_memory_given_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session("cpu")
    released = []
    monkeypatch.setattr(session, "_release", lambda: released.append(len(session._problems)))
    for n in range(100, 120):
        session._bound(session.ops["add"], Problem(op="add", sizes={"n": n}, dtype="fp32"))
    newest = list(session._problems)[-3:]
    held = session._reserved_bytes()
    last_three = sum(session._problems[key].needed_bytes for key in newest)
    monkeypatch.setattr("kernelviz.measure.session.device_session.CACHED_SHARE", (last_three + 1) / held)
    monkeypatch.setattr(session, "device", msgspec.structs.replace(session.device, memory_bytes=held))
    session._trim()
    assert list(session._problems) == newest
    assert released == [20, 3]  # the references, then all problems that had to go


def test_the_problem_that_comes_next_stays_bound_however_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session("cpu")
    monkeypatch.setattr("kernelviz.measure.session.device_session.CACHED_SHARE", 0.0)
    first, second = (Problem(op="add", sizes={"n": n}, dtype="fp32") for n in (100, 200))
    bound: list[list[str]] = []
    for problem, following, stopped in (
        (first, first.key, False),
        (first, second.key, False),
        (second, None, False),
        (second, second.key, True),
    ):
        session.measure(
            problem,
            ("torch_eager",),
            "torch_eager",
            QUICK,
            lambda event: None,
            lambda now=stopped: now,  # type: ignore[misc]
            following=following,
        )
        bound.append(list(session._problems))
    assert bound == [[first.key], [], [], []]


def test_errors_of_a_narrower_format_are_named(session: DeviceSession) -> None:
    outcome = measure(session, ("honest", "computes_in_half"))["computes_in_half"].outcome
    assert isinstance(outcome, Failure)
    assert outcome.reasons[0] == LowerPrecision(precision="fp16")
    plainly_wrong = measure(session, ("honest", "is_wrong"))["is_wrong"].outcome
    assert isinstance(plainly_wrong, Failure)
    assert not any(isinstance(r, LowerPrecision) for r in plainly_wrong.reasons)


def others(session: DeviceSession, variants: tuple[str, ...], n: int) -> dict[str, Result]:
    """What is told behind the cold times, by variant."""
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": n}, dtype="fp32")
    method = Method(budget_s=0.05, figures=USUAL_FIGURES)
    session.measure(problem, variants, variants[0], method, events.append, lambda: False)
    told = [e.result for e in events if isinstance(e, CaseDone)]
    return {r.variant: r for r in told[len(variants) :]}


def test_the_other_figures_follow_the_cold_time(session: DeviceSession) -> None:
    found = others(session, ("honest", "torch_eager"), 3000)
    timing = found["honest"].outcome
    assert isinstance(timing, Timing)
    assert timing.device_cold_s is None  # it was told before
    assert timing.device_warm_s is not None
    assert timing.again_warm_s is not None
    assert timing.call_eager_s is not None
    assert timing.call_eager_s.samples is not None
    assert len(timing.call_eager_s.samples) == 1000
    assert len(timing.call_eager_s.blocks or ()) == 20
    assert timing.loop_s is not None
    # A processor has no queue and no graphs: nothing is made up for them.
    assert timing.enqueue_s is None
    assert timing.call_graph_s is None
    second = found["torch_eager"].outcome
    assert isinstance(second, Timing)
    assert second.again_warm_s is None


def test_a_call_that_compiles_while_it_is_timed_is_refused(session: DeviceSession) -> None:

    found = others(session, ("honest", "compiles_in_every_call"), 3001)
    outcome = found["compiles_in_every_call"].outcome
    assert isinstance(outcome, Failure)
    assert (outcome.reasons, outcome.message) == ((Recompiled(),), "")
    assert isinstance(found["honest"].outcome, Timing)


def test_sustained_times_come_from_passes_behind_their_own_load(session: DeviceSession) -> None:
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": 500}, dtype="fp32")
    method = Method(clock="sustained", load_s=0.01)
    session.measure(problem, ("honest",), "honest", method, events.append, lambda: False)
    outcome = next(e.result.outcome for e in events if isinstance(e, CaseDone))
    assert isinstance(outcome, Timing)
    assert outcome.device_cold_s is not None
    assert len(outcome.device_cold_s.blocks or ()) == 30
    assert outcome.device_cold_s.low is not None


def test_a_long_call_has_no_other_figures_and_says_why(session: DeviceSession) -> None:
    found = others(session, ("honest", "takes_long"), 3002)
    assert isinstance(found["honest"].outcome, Timing)
    assert found["honest"].outcome.device_warm_s is not None
    assert found["takes_long"].outcome == Timing()
    seen = found["takes_long"].conditions
    assert seen is not None
    (note,) = seen.notes
    assert isinstance(note, CallTooLong)
    assert note.figure == "secondary"
    assert 0.1 < note.call_s < 1


def test_a_device_without_a_counter_of_energy_says_so_with_the_result(session: DeviceSession) -> None:
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
    method = msgspec.structs.replace(QUICK, figures=("warm", "energy"))
    session.measure(problem, ("honest",), "honest", method, events.append, lambda: False)
    (found,) = (e.result for e in events if isinstance(e, CaseDone))
    assert found.timing is not None
    assert found.timing.energy is None
    assert found.timing.device_warm_s is not None
    assert notes_on_other_figures(found) == (NoEnergyCounter(figure="energy"),)


def test_a_case_that_was_cancelled_before_its_first_block_is_not_wrong_afterwards(session: DeviceSession) -> None:
    """Its outputs are those of the checks, which use other numbers."""
    problem = Problem(op="add", sizes={"n": 1234}, dtype="fp32")
    events: list[Event] = []

    def stopped() -> bool:
        return any(isinstance(e, CaseStep) and e.step == "measuring" for e in events)

    session.measure(problem, ("honest",), "honest", QUICK, events.append, stopped)
    (cancelled,) = [e.result for e in events if isinstance(e, CaseDone)]
    assert isinstance(cancelled.outcome, Failure)
    assert cancelled.outcome.stage == "cancelled"
    assert cancelled.accuracy is not None
    assert cancelled.accuracy.passed
    assert isinstance(measure(session, ("honest",), n=1234)["honest"].outcome, Timing)


def test_a_call_that_is_bound_alone_keeps_its_inputs() -> None:
    """CUDA C++ knows only the addresses of its inputs: on an H100 such calls read memory that the driver had back."""

    def only_knows_addresses(x_N: Tensor, y_N: Tensor) -> Launch:
        """It adds them once."""
        z_N = x_N + y_N
        return lambda: z_N

    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
    bound = BoundProblem(op_named("add").of(problem), problem, torch.device("cpu"), 2**30, "cpu")
    inputs = [weakref.ref(t) for t in bound.inputs]
    launch = bound.bound_alone(variant(backend="torch")(only_knows_addresses))
    del bound
    gc.collect()
    assert all(one() is not None for one in inputs)
    del launch
    gc.collect()
    assert all(one() is None for one in inputs)


def test_the_search_of_a_library_has_a_time_of_its_own_and_other_binding_has_none() -> None:
    """A variant that declares that it searches: its binding is the search. Documents of others stay as they were."""
    op, problem = op_named("add"), Problem(op="add", sizes={"n": 100}, dtype="fp32")
    plain = op.variant_named("torch_eager")
    bound = BoundProblem(op, problem, torch.device("cpu"), 2**30, "cpu")
    (_, searched), (_, made) = (bound.bind(v, bound.inputs) for v in (replace(plain, searches=True), plain))
    assert searched.searched_s is not None
    assert searched.searched_s == searched.bind_s
    assert made.searched_s is None
    assert b"search_s" not in msgspec.json.encode(made)
