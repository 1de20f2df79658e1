"""Inspections by the real session on the CPU: right variants, planted wrong ones, and what a look must leave as it was."""

from __future__ import annotations

import gc
import math
from pathlib import Path

import msgspec
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from kernelviz.core.events import CaseStep, Event, InspectionDone
from kernelviz.core.inspection import Inspection
from kernelviz.core.problem import TIMED_SEED, Method, Problem
from kernelviz.core.reasons import (
    ErrorTooLarge,
    LowerPrecision,
    MutatedInput,
    OutputShape,
    OutputStrides,
    Reason,
    Stale,
    Unwritten,
)
from kernelviz.measure.inspection.case import inspect
from kernelviz.measure.session.binding import BoundProblem
from kernelviz.measure.session.contract import CaseFailed
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.measure.session.inputs import unchanged
from kernelviz.measure.timing.host import HostTimer
from kernelviz.ops import catalogue
from kernelviz.text.inspection import describe_unknown_memory

TESTS = Path(__file__).parents[1]
PLANTED = (str(TESTS / "planted.py"), str(TESTS / "planted_wrong.py"))


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    return open_session("cpu", PLANTED)


def look(
    session: DeviceSession, variant: str, op: str = "add", dtype: str = "fp32", **sizes: int
) -> tuple[Inspection, list[Event]]:
    events: list[Event] = []
    problem = Problem(op=op, sizes=sizes or {"n": 1000}, dtype=dtype)
    session.inspect(problem, variant, events.append, lambda: False)
    last = events[-1]
    assert isinstance(last, InspectionDone)
    made = last.inspection
    assert (
        msgspec.json.decode(msgspec.json.encode(made), type=Inspection) == made
    )  # nothing in it is lost in a document
    return made, events


def inspected(session: DeviceSession, variant: str, **sizes: int) -> Inspection:
    return look(session, variant, **sizes)[0]


def test_a_right_variant_and_all_its_tensors(session: DeviceSession) -> None:
    made, events = look(session, "honest", n=5000)
    assert (made.passed, made.reasons, made.seed, made.seeds) == (True, (), 0, 3)
    assert made.environment.device.id == "cpu"
    assert [e.step for e in events if isinstance(e, CaseStep)] == ["binding"] + ["checking"] * 4
    assert [(t.name, t.role, t.shape, t.strides, t.size_bytes) for t in made.tensors] == [
        (name, role, (5000,), (1,), 20000) for name, role in (("x_N", "input"), ("y_N", "input"), ("z_N", "output"))
    ]
    x, y, z = made.tensors
    assert x.mean is not None
    assert y.mean is not None
    assert z.mean == pytest.approx(x.mean + y.mean, abs=1e-6)
    assert z.deviation == pytest.approx(math.sqrt(2), rel=0.05)
    assert (z.unwritten, x.unwritten, z.nan, z.aliases) == (0, None, 0, ())
    assert all(t.alignment_bytes is not None and t.alignment_bytes % 16 == 0 for t in made.tensors)
    (errors,) = made.errors
    assert errors.wrong == errors.not_finite == errors.unwritten == 0
    assert errors.first_wrong is None
    assert errors.counts.exact + sum(errors.counts.octaves) == 5000
    assert errors.worst_of_bound is not None
    assert 0 < errors.worst_of_bound <= 1
    assert errors.worst[0].share == errors.worst_of_bound == max(s for s in errors.map.shares if s is not None)


def test_the_facts_of_the_gate_and_of_a_look_are_the_same(session: DeviceSession) -> None:
    """Of the fill that came out worst: one fill is looked at, the gate sums over three."""
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": 3000}, dtype="fp32")
    session.measure(problem, ("honest",), "honest", Method(budget_s=0.02, seeds=1), events.append, lambda: False)
    accuracy = events[-1].result.accuracy  # type: ignore[union-attr]
    made = inspected(session, "honest", n=3000)
    assert accuracy is not None
    assert made.call == "timed"  # what stands is called as it stands
    assert made.errors[0].max_abs == accuracy.max_abs
    assert made.errors[0].relative_l2 == pytest.approx(accuracy.relative_l2)
    assert made.errors[0].worst_of_bound == accuracy.worst_of_bound


@pytest.mark.parametrize(
    ("name", "why", "wrong"),
    [
        ("writes_nothing", Unwritten, 1000),
        ("is_wrong", ErrorTooLarge, 1000),
        ("remembers", Stale, 1000),
        ("changes_its_input", MutatedInput, 1000),
        ("computes_in_half", LowerPrecision, None),
    ],
)
def test_a_wrong_variant_is_looked_at_and_named_as_by_the_gate(
    session: DeviceSession, name: str, why: type[Reason], wrong: int | None
) -> None:
    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32")
    session.measure(problem, (name,), name, Method(budget_s=0.02), lambda _: None, lambda: False)
    made = inspected(session, name)
    assert not made.passed
    assert any(isinstance(reason, why) for reason in made.reasons)
    assert made.call == "timed"
    assert made.errors[0].wrong == (wrong or made.errors[0].wrong) > 900


def test_one_that_was_never_measured_is_bound_for_the_look(session: DeviceSession) -> None:
    made = inspected(session, "is_wrong", n=777)
    assert (made.call, made.passed, made.seed) == ("eager", False, 2)
    assert made.errors[0].wrong == 777


def test_what_is_not_written_is_told_apart_from_what_is_wrong(session: DeviceSession) -> None:
    """The last 16 rows lack their last 100 columns; the row above them is off by 5 % there."""
    made, _ = look(session, "forgets_the_last_tile", "softmax", "bf16", m=200, n=1000)
    (errors,) = made.errors
    assert (errors.unwritten, errors.not_finite) == (1600, 1600)
    assert errors.wrong == 1700
    assert (errors.first_wrong, errors.last_wrong) == ((183, 900), (199, 999))
    assert (errors.map.rows, errors.map.columns, errors.map.block) == (50, 63, (4, 16))
    assert sum(errors.map.unwritten) == 1600
    assert sum(errors.map.wrong) == errors.wrong
    bad = [divmod(i, 63) for i, wrong in enumerate(errors.map.wrong) if wrong]
    assert {row for row, _ in bad} == {45, 46, 47, 48, 49}
    assert {column for _, column in bad} == set(range(56, 63))
    assert [e.index for e in errors.worst] == [(184, 900 + i) for i in range(10)]
    assert all(e.unwritten and e.got == "NaN" and e.share is None for e in errors.worst)
    assert made.tensors[-1].unwritten == made.tensors[-1].nan == 1600


def test_an_infinite_element_and_a_wrong_row_are_found(session: DeviceSession) -> None:
    made, _ = look(session, "spoils_a_row", "softmax", m=65, n=33)
    (errors,) = made.errors
    assert (errors.not_finite, errors.unwritten, errors.counts.beyond) == (1, 0, 1)
    first, second = errors.worst[:2]
    assert (first.index, first.got, first.error, first.share, first.unwritten) == ((18, 5), "+Inf", None, None, False)
    assert second.index[0] == 17
    assert second.share is not None
    assert second.share > 1
    assert (errors.first_wrong, errors.last_wrong) == ((17, 0), (18, 32))
    assert made.tensors[-1].positive_infinity == 1
    assert made.tensors[-1].maximum is not None


def test_outputs_that_cannot_be_compared_still_have_their_facts(session: DeviceSession) -> None:
    made = inspected(session, "has_another_shape")
    assert not made.passed
    assert made.errors == ()
    assert made.reasons == (OutputShape(output="z_N", shape=(500,), expected=(1000,)),)
    assert made.tensors[-1].shape == (500,)


def test_what_works_in_place_says_whose_memory_it_is_and_is_right(session: DeviceSession) -> None:
    made = inspected(session, "adds_in_place")
    assert made.passed
    assert made.tensors[-1].aliases == ("x_N",)
    assert made.tensors[0].mean != made.tensors[-1].mean  # the input is told as the call got it


def test_a_strided_output_is_wrong_and_read_in_the_order_of_its_indices(session: DeviceSession) -> None:
    made, _ = look(session, "stores_columns", "softmax", m=40, n=24)
    assert made.reasons == (OutputStrides(output="y_MN", strides=(1, 40)),)
    assert not made.passed
    assert (made.tensors[-1].strides, made.tensors[-1].contiguous) == ((1, 40), False)


@pytest.mark.parametrize(
    ("name", "stage", "said"),
    [("raises_in_bind", "crash", "no such configuration"), ("runs_out_of_memory", "out_of_memory", "memory")],
)
def test_what_a_variant_raises_is_its_failure(session: DeviceSession, name: str, stage: str, said: str) -> None:
    with pytest.raises(CaseFailed, match=said) as raised:
        inspected(session, name)
    assert raised.value.failure.stage == stage
    assert session.spoilt is None
    assert inspected(session, "honest").passed


def test_a_look_leaves_what_is_timed_as_it_was(session: DeviceSession) -> None:
    problem = Problem(op="add", sizes={"n": 2000}, dtype="fp32")
    names = ("honest", "adds_in_place")
    session.measure(problem, names, "honest", Method(budget_s=0.02), lambda _: None, lambda: False)
    bound = session._problems[problem.key]
    kept = dict(bound.variants)
    for name in (*names, "is_wrong"):
        inspected(session, name, n=2000)
        assert session._problems[problem.key] is bound
        assert unchanged(bound.op, bound.inputs, problem, TIMED_SEED) == []
    assert bound.variants == kept
    expected = bound.inputs[0] + bound.inputs[1]
    assert torch.equal(kept["adds_in_place"].timed.run_once()[0], expected)  # what is restored is the timed fill again


def test_a_stop_ends_it_without_facts_and_restores_the_inputs(session: DeviceSession) -> None:
    events: list[Event] = []
    problem = Problem(op="add", sizes={"n": 1500}, dtype="fp32")
    session.inspect(problem, "honest", events.append, lambda: True)
    assert not any(isinstance(e, InspectionDone) for e in events)
    assert inspected(session, "honest", n=1500).passed


MOMENTS = ("before_bind", "after_bind", "after_first_call", "before_call", "after_call")


def test_memory_is_read_around_binding_and_call_and_unknown_on_a_processor(session: DeviceSession) -> None:
    made = inspected(session, "honest", n=3000)
    assert tuple(state.moment for state in made.memory) == MOMENTS
    assert {(state.allocated_bytes, state.reserved_bytes) for state in made.memory} == {(None, None)}
    assert "GPUs only" in str(describe_unknown_memory(made))


def storage(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Address and bytes of a tensor's memory; None for one that has none, such as a fake tensor that torch.compile left."""
    if isinstance(tensor, FakeTensor):
        return None
    try:
        return tensor.data_ptr(), tensor.untyped_storage().nbytes()
    except RuntimeError:  # functional tensors and others that only stand for one
        return None


class Counter:
    """A reader that counts the tensors of 4 MiB that were made after it, as a GPU's allocator would."""

    def __init__(self) -> None:
        self.held: list[int] = []
        # What is there already is not searched again and again: a million objects, 0.3 s each time.
        gc.collect()
        gc.freeze()

    def __call__(self) -> tuple[int, int]:
        gc.collect()
        storages = {storage(found) for found in gc.get_objects() if isinstance(found, torch.Tensor)}
        self.held.append(sum(held[1] for held in storages if held is not None and held[1] == 2**22))
        return self.held[-1], max(self.held)


def test_a_tensor_without_memory_is_not_counted() -> None:
    count = Counter()
    before, _ = count()
    with FakeTensorMode():
        fake = torch.empty(2**20)
    assert fake.numel() * fake.element_size() == 2**22
    assert count()[0] == before


@pytest.mark.parametrize("measured", [False, True], ids=["bound anew", "the timed call"])
def test_what_binding_allocates_is_seen_between_its_moments(measured: bool) -> None:
    """An eager add of 2^20 numbers in fp32 allocates its output of 4 MiB when it is bound, and none in its calls."""
    problem = Problem(op="add", sizes={"n": 2**20}, dtype="fp32")
    op = catalogue()["add"]
    bound = BoundProblem(op, problem, torch.device("cpu"), 2**33, "cpu")
    bound.memory_now = Counter()
    variant = op.variant_named("torch_eager")
    if measured:
        bound.prepare(variant, HostTimer(None), 1, lambda: None)
    environment = open_session("cpu").environment()
    made = inspect(bound, variant, environment, lambda step, fraction: None, lambda: False)
    assert made is not None
    assert made.call == ("timed" if measured else "eager")
    assert tuple(state.moment for state in made.memory) == MOMENTS
    by_moment = {state.moment: state.allocated_bytes or 0 for state in made.memory}
    assert by_moment["after_bind"] - by_moment["before_bind"] == 2**22
    assert by_moment["after_first_call"] == by_moment["after_bind"]
    assert describe_unknown_memory(made) is None
    assert all((s.reserved_bytes or 0) >= (s.allocated_bytes or 0) for s in made.memory)
