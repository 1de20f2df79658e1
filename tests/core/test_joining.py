"""What a later result of a case adds to the one that is there, and what it must not undo."""

from kernelviz.core.merge import merge_later_result
from kernelviz.core.notes import ForeignNote, LaterFailure
from kernelviz.core.problem import Problem
from kernelviz.core.reasons import CancelledBefore
from kernelviz.core.result import Conditions, Failure, Figure, Result, Timing

PROBLEM = Problem(op="add", sizes={"n": 4}, dtype="fp32")
COLD, WARM, LOOP = Figure(estimate=3e-6), Figure(estimate=2e-6), Figure(estimate=9e-6)


def result(outcome: Timing | Failure, digest: str = "a", **conditions: object) -> Result:
    seen = Conditions(**conditions) if conditions else None  # type: ignore[arg-type]
    return Result(problem=PROBLEM, variant="v", outcome=outcome, source_digest=digest, conditions=seen)


def test_later_figures_complete_earlier_ones() -> None:
    joined = merge_later_result(result(Timing(device_cold_s=COLD)), result(Timing(device_warm_s=WARM, loop_s=LOOP)))
    assert joined.outcome == Timing(device_cold_s=COLD, device_warm_s=WARM, loop_s=LOOP)


def test_a_new_cold_time_replaces_and_keeps_the_rest() -> None:
    again = Figure(estimate=3.1e-6)
    joined = merge_later_result(result(Timing(device_cold_s=COLD, loop_s=LOOP)), result(Timing(device_cold_s=again)))
    assert joined.outcome == Timing(device_cold_s=again, loop_s=LOOP)


def test_a_later_failure_is_a_note_unless_it_shows_that_the_call_is_wrong() -> None:
    kept = merge_later_result(result(Timing(device_cold_s=COLD)), result(Failure(stage="crash", message="gone")))
    assert kept.outcome == Timing(device_cold_s=COLD)
    assert kept.conditions is not None
    assert kept.conditions.notes == (LaterFailure(figure="secondary", stage="crash", message="gone"),)
    elsewhere = merge_later_result(
        result(Timing(device_cold_s=COLD)), result(Failure(stage="cancelled", message=""), digest="b")
    )
    assert elsewhere.outcome == Timing(device_cold_s=COLD)
    wrong = result(Failure(stage="wrong", message="compiles"))
    assert merge_later_result(result(Timing(device_cold_s=COLD)), wrong) is wrong


def test_a_cancel_does_not_undo_what_is_known_of_a_case() -> None:
    cancelled = result(Failure(stage="cancelled", reasons=(CancelledBefore(),)))
    for stage in ("crash", "wrong", "out_of_memory", "unavailable"):
        earlier = result(Failure(stage=stage, message="true"))
        assert merge_later_result(earlier, cancelled) is earlier
    assert merge_later_result(result(Timing(device_cold_s=COLD)), cancelled).outcome == Timing(device_cold_s=COLD)
    again = result(Failure(stage="crash", message="of a resumed run"))
    assert merge_later_result(cancelled, again) is again


def test_nothing_is_joined_to_another_source_or_to_a_failure() -> None:
    later = result(Timing(device_warm_s=WARM), digest="b")
    assert merge_later_result(result(Timing(device_cold_s=COLD)), later) is later
    fresh = result(Timing(device_warm_s=WARM))
    assert merge_later_result(result(Failure(stage="wrong", message="")), fresh).outcome == Failure(
        stage="wrong", message=""
    )


def test_what_was_noticed_beside_either_is_kept() -> None:
    first = result(Timing(device_cold_s=COLD), event_reasons=("power cap",), other_processes=0, sm_clock_hz=1.9e9)
    noted = (ForeignNote(text="n"),)
    second = result(Timing(loop_s=LOOP), event_reasons=("idle",), other_processes=2, notes=noted, sm_clock_hz=1.0e9)
    seen = merge_later_result(first, second).conditions
    assert seen is not None
    assert (seen.event_reasons, seen.other_processes, seen.notes) == (
        ("power cap", "idle"),
        2,
        (ForeignNote(text="n"),),
    )
    assert seen.sm_clock_hz == 1.9e9
