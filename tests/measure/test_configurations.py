"""The session and configurations: bound as tuning found them, never for another source, given back when they are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kernelviz.core.events import CaseDone, Event, InspectionDone
from kernelviz.core.notes import StaleTuning
from kernelviz.core.problem import Method, Problem
from kernelviz.core.reasons import NotAdmitted
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.core.tuning import Tuned
from kernelviz.measure.session.device_session import DeviceSession, open_session

PLANTED = str(Path(__file__).parents[1] / "planted_tuning.py")
PROBLEM = Problem(op="add", sizes={"n": 1024}, dtype="fp32")
QUICK = Method(budget_s=0.02, seeds=1)
BASE = "in_blocks[block=64,way=0]"


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    return open_session("cpu", (PLANTED,))


def measure(
    session: DeviceSession, *variants: str, tuned: dict[str, Tuned] | None = None, method: Method = QUICK
) -> dict[str, Result]:
    events: list[Event] = []
    session.measure(PROBLEM, variants, variants[0], method, events.append, lambda: False, tuned=tuned or {})
    return {e.result.variant: e.result for e in events if isinstance(e, CaseDone)}


def found(session: DeviceSession, **changes: int) -> Tuned:
    digest = session.ops["add"].variant_named("in_blocks").source_digest()
    return Tuned(configuration={"block": 256, "way": 0} | changes, run_id="r1", source_digest=digest)


def test_a_variant_is_bound_as_it_was_tuned_and_says_so(session: DeviceSession) -> None:
    default = measure(session, "torch_eager", "in_blocks")
    assert default["in_blocks"].configuration == {"block": 64, "way": 0}
    assert default["in_blocks"].tuned_by is None
    assert (default["torch_eager"].configuration, default["torch_eager"].tuned_by) == (None, None)
    # Bound already with the default: it is bound anew.
    tuned = measure(session, "torch_eager", "in_blocks", tuned={"in_blocks": found(session, way=1)})["in_blocks"]
    assert (tuned.configuration, tuned.tuned_by) == ({"block": 256, "way": 1}, "r1")
    again = measure(session, "torch_eager", "in_blocks")["in_blocks"]
    assert (again.configuration, again.tuned_by) == ({"block": 64, "way": 0}, None)


@pytest.mark.parametrize(("changes", "another"), [({"source_digest": "0" * 16}, "source"), ({}, "space")])
def test_what_was_found_for_something_else_is_not_used_and_that_is_said(
    session: DeviceSession, changes: dict[str, str], another: Literal["source", "space"]
) -> None:
    import msgspec

    known = msgspec.structs.replace(found(session, block=256 if changes else 48), **changes)
    result = measure(session, "torch_eager", "in_blocks", tuned={"in_blocks": known})["in_blocks"]
    assert (result.configuration, result.tuned_by) == ({"block": 64, "way": 0}, None)
    assert result.conditions is not None
    assert StaleTuning(run_id="r1", another=another) in result.conditions.notes


def test_a_named_configuration_is_what_its_name_says_whatever_was_tuned(session: DeviceSession) -> None:
    name = "in_blocks[block=512,way=0]"
    result = measure(session, BASE, name, tuned={"in_blocks": found(session)})[name]
    assert isinstance(result.outcome, Timing)
    assert (result.configuration, result.tuned_by) == ({"block": 512, "way": 0}, None)


def test_each_trouble_is_its_own_configurations(session: DeviceSession) -> None:
    names = [f"in_blocks[block={b},way={w}]" for b, w in ((128, 0), (128, 2), (128, 3), (2048, 0))]
    done = measure(session, BASE, *names)
    assert isinstance(done[names[0]].outcome, Timing)
    stages = {}
    for name in names[1:]:
        outcome = done[name].outcome
        assert isinstance(outcome, Failure)
        stages[name] = (outcome.stage, outcome.reasons, outcome.message)
    assert stages[names[1]][0] == "compile"
    assert "shared memory, required: 524288" in stages[names[1]][2]
    assert stages[names[2]][0] == "wrong"
    assert stages[names[3]] == (
        "unavailable",
        (NotAdmitted(text="the block is larger than the vector"),),
        "",
    )
    spent = done[names[1]].preparation
    assert spent is not None, "what a failed bind took is part of what the tuning took"
    assert spent.bind_s is not None


def test_configurations_are_given_back_when_they_are_measured_the_baseline_stays(session: DeviceSession) -> None:
    measure(session, BASE, "in_blocks[block=128,way=0]", "in_blocks[block=256,way=0]", "torch_eager")
    held = session._problems[PROBLEM.key].variants
    assert BASE in held
    assert "torch_eager" in held
    assert not any(name.startswith("in_blocks[") and name != BASE for name in held)


def test_an_inspection_looks_at_what_is_measured(session: DeviceSession) -> None:
    events: list[Event] = []
    session.inspect(PROBLEM, "in_blocks", events.append, lambda: False, tuned={"in_blocks": found(session, way=1)})
    last = events[-1]
    assert isinstance(last, InspectionDone)
    assert last.inspection.configuration == {"block": 256, "way": 1}
    assert last.inspection.passed
