"""The ladder of an op: the order of its steps, what a gain refers to, and what wrong and missing steps do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import sample_runs as samples
from msgspec.structs import replace

from kernelviz.core import Problem, Result, Run
from kernelviz.core.reasons import NoDtype
from kernelviz.metrics.ladder import (
    DeclaredVariant,
    Ladder,
    NotPlanned,
    NotYet,
    RunEnded,
    Step,
    StepKind,
    ladder_at,
    steps_by_backend,
)
from kernelviz.metrics.ladder_summary import roof_value, summary_of, value_of, wrong_value_of
from kernelviz.text.ladder import describe_gain, format_gain, format_gain_short
from kernelviz.text.ladder_summary import describe_summary

(PROBLEM,) = samples.problems("rmsnorm", [{"m": 8192, "n": 8192}])
FIRST, SECOND, THIRD, LAST = "cuda_first", "cuda_second", "cuda_third", "cuda_last"
NAMES = (FIRST, SECOND, THIRD, LAST)


def declared(name: str, backend: str = "cuda", *, named: bool = False, refused: bool = False) -> DeclaredVariant:
    return DeclaredVariant(
        name=name,
        backend=backend,
        idea=f"the idea of {name}",
        only_when_named=named,
        refusal=NoDtype(dtype="bf16", has=("fp32",)) if refused else None,
    )


DECLARED = (declared("torch_eager", "torch"), *map(declared, NAMES), declared("triton_one", "triton"))


def run_of(results: Sequence[Result], variants: Sequence[str] = (), **more: object) -> Run:
    made = samples.run(results, id="ladder", sizes=[PROBLEM.sizes], shares={}, **more)  # type: ignore[arg-type]
    names = tuple(dict.fromkeys(("torch_eager", *variants, *(r.variant for r in results))))
    return replace(made, plan=replace(made.plan, variants=names))


def ladder_of(shares: Mapping[str, float | str], *, library: float = 0.9, **more: object) -> Ladder:
    """Each variant at a share of the bandwidth, or failed at a stage."""
    results = [samples.timed(PROBLEM, "torch_eager", library, again=True)]
    for name, share in shares.items():
        results.append(
            samples.failed(PROBLEM, name, share)  # type: ignore[arg-type]
            if isinstance(share, str)
            else samples.timed(PROBLEM, name, share)
        )
    run = run_of(results, **more)  # type: ignore[arg-type]
    return ladder_at(run, PROBLEM, DECLARED, run.environment.roofs)


def steps(ladder: Ladder, backend: str = "cuda") -> dict[str, Step]:
    of = ladder.of(backend)
    assert of is not None
    return {step.variant: step for step in of.steps}


def kinds(ladder: Ladder) -> list[StepKind]:
    return [step.kind for step in steps(ladder).values()]


def test_the_steps_are_in_the_order_of_the_catalogue_and_each_gain_is_over_the_one_before() -> None:
    ladder = ladder_of({LAST: 0.88, THIRD: 0.80, FIRST: 0.10, SECOND: 0.40})
    assert list(steps(ladder)) == list(NAMES)
    assert [step.number for step in steps(ladder).values()] == [1, 2, 3, 4]
    assert [step.over.name if step.over else None for step in steps(ladder).values()] == [None, FIRST, SECOND, THIRD]
    assert kinds(ladder) == ["first", "faster", "faster", "faster"]
    second = steps(ladder)[SECOND].speed_up
    assert second is not None
    assert second.low is not None
    assert second.high is not None
    assert second.low < second.estimate < second.high
    assert second.estimate == pytest.approx(4.0, rel=0.02)


def test_each_backend_has_a_ladder_of_its_own_and_libraries_are_no_steps() -> None:
    ladder = ladder_of({FIRST: 0.1, SECOND: 0.5, "triton_one": 0.7})
    assert [of.backend for of in ladder.ladders] == ["cuda", "triton"]
    assert steps(ladder, "triton")["triton_one"].kind == "first"
    assert [row.result.variant for row in ladder.libraries] == ["torch_eager"]
    assert ladder.main is not None
    assert ladder.main.backend == "cuda"


def test_a_slower_step_is_slower_and_an_equal_one_is_a_tie() -> None:
    ladder = ladder_of({FIRST: 0.5, SECOND: 0.4, THIRD: 0.4, LAST: 0.8})
    assert kinds(ladder) == ["first", "slower", "same", "faster"]
    slower = steps(ladder)[SECOND]
    assert slower.speed_up is not None
    assert slower.speed_up.estimate < 1
    assert str(format_gain_short(slower)).startswith("▼ 1.2")
    assert "slower than cuda first" in str(describe_gain(slower))
    assert str(format_gain(steps(ladder)[THIRD])).startswith("= tie")


def test_a_wrong_step_gives_no_gain_and_the_next_one_is_compared_with_the_last_correct_one() -> None:
    ladder = ladder_of({FIRST: 0.1, SECOND: "wrong", THIRD: 0.2, LAST: 0.4})
    assert kinds(ladder) == ["first", "wrong", "faster", "faster"]
    wrong, third = steps(ladder)[SECOND], steps(ladder)[THIRD]
    assert (wrong.gain, wrong.speed_up, wrong.correct) == (None, None, False)
    assert value_of(wrong.row, "bandwidth") is None
    assert wrong_value_of(wrong.row, "bandwidth") is not None  # shown, and marked
    assert third.over is not None
    assert (third.over.name, third.between) == (FIRST, (SECOND,))
    assert third.speed_up is not None
    assert third.speed_up.estimate == pytest.approx(2.0, rel=0.02)
    assert "cuda second between them has none" in str(describe_gain(third))
    summary = summary_of(ladder, ladder.ladders[0])
    assert summary is not None
    assert summary.best.variant == LAST  # the wrong one, which would be the fastest, is not


def test_a_step_that_is_wrong_at_another_problem_does_not_count_here_either() -> None:
    other = replace(PROBLEM, sizes={"m": 16, "n": 4096})
    results = [
        samples.timed(PROBLEM, "torch_eager", 0.9, again=True),
        samples.timed(PROBLEM, FIRST, 0.1),
        samples.timed(PROBLEM, SECOND, 0.8),
        samples.failed(other, SECOND, "wrong"),
        samples.timed(PROBLEM, THIRD, 0.2),
    ]
    run = run_of(results)
    ladder = ladder_at(run, PROBLEM, DECLARED, run.environment.roofs)
    assert kinds(ladder)[:3] == ["first", "wrong elsewhere", "faster"]
    over = steps(ladder)[THIRD].over
    assert over is not None
    assert over.name == FIRST


def test_a_time_whose_check_did_not_pass_is_wrong_whatever_a_document_says() -> None:
    result = samples.timed(PROBLEM, FIRST, 0.1)
    assert result.accuracy is not None
    forged = replace(result, accuracy=replace(result.accuracy, passed=False))
    run = run_of([samples.timed(PROBLEM, "torch_eager", 0.9, again=True), forged, samples.timed(PROBLEM, SECOND, 0.2)])
    ladder = ladder_at(run, PROBLEM, DECLARED, ())
    assert kinds(ladder)[:2] == ["wrong", "first"]


@pytest.mark.parametrize(
    ("status", "planned", "reason"),
    [
        ("finished", (), NotPlanned()),
        ("running", (SECOND,), NotYet()),
        ("cancelled", (SECOND,), RunEnded("cancelled")),
        ("interrupted", (SECOND,), RunEnded("interrupted")),
    ],
)
def test_a_step_without_a_result_says_why(status: str, planned: tuple[str, ...], reason: object) -> None:
    ladder = ladder_of({FIRST: 0.1, THIRD: 0.2}, variants=planned, status=status)
    missing = steps(ladder)[SECOND]
    assert (missing.kind, missing.absence) == ("absent", reason)
    assert str(describe_gain(missing)).startswith("○ not measured: ")
    assert steps(ladder)[THIRD].between == (SECOND,)


def test_a_failed_step_says_at_which_stage() -> None:
    ladder = ladder_of({FIRST: 0.1, SECOND: "compile"})
    assert steps(ladder)[SECOND].kind == "failed"
    assert "does not compile" in str(describe_gain(steps(ladder)[SECOND]))


def test_a_variant_that_is_measured_only_when_named_begins_a_ladder_or_is_beside_it() -> None:
    before, after = declared("cuda_slow", named=True), declared("cuda_published", named=True)
    alone = declared("gluon_published", "gluon", named=True)
    by_backend = steps_by_backend([before, declared(FIRST), after, alone])
    assert [v.name for v in by_backend["cuda"]] == ["cuda_slow", FIRST]
    assert "gluon" not in by_backend
    run = run_of([samples.timed(PROBLEM, FIRST, 0.5), samples.timed(PROBLEM, "cuda_published", 0.01)])
    ladder = ladder_at(run, PROBLEM, [declared(FIRST), after], ())
    assert [step.variant for step in ladder.ladders[0].steps] == [FIRST]
    assert [row.result.variant for row in ladder.beside] == ["cuda_published"]


def test_a_variant_that_cannot_solve_the_problem_is_no_step_and_is_named_with_its_reason() -> None:
    unable = declared("cuda_fp32", refused=True)
    run = run_of([samples.timed(PROBLEM, FIRST, 0.5), samples.failed(PROBLEM, "cuda_fp32", "unavailable")])
    ladder = ladder_at(run, PROBLEM, [unable, declared(FIRST)], ())
    assert [step.variant for step in ladder.ladders[0].steps] == [FIRST]
    assert ladder.excluded == (unable,)


def test_the_sentence_names_ends_largest_gain_slow_steps_and_what_the_last_ones_give() -> None:
    ladder = ladder_of({FIRST: 0.1, SECOND: 0.8, THIRD: 0.79, LAST: 0.81}, library=0.60)
    summary = summary_of(ladder, ladder.ladders[0])
    assert summary is not None
    assert (summary.steps, summary.first.variant, summary.best.variant) == (4, FIRST, LAST)
    assert summary.largest is not None
    assert summary.largest.variant == SECOND
    assert [step.variant for step in summary.slower] == [THIRD]
    assert summary.tail is not None
    assert summary.tail[0] == 2
    said = str(describe_summary(summary, "bandwidth"))
    assert said.startswith("CUDA C++: 4 rungs from 438 GB/s to 3.48 TB/s, 7.96×")
    assert "the largest gain is cuda second, 7.87×" in said
    assert "cuda third makes it slower; with the last 2 together it is 1.01" in said
    assert " faster than with cuda second, compared directly in the same rounds." in said
    assert "faster than torch eager, the fastest library, and reaches 79 % of the roof." in said


def test_the_tail_of_equal_steps_gives_nothing_that_can_be_measured() -> None:
    ladder = ladder_of({FIRST: 0.1, SECOND: 0.8, THIRD: 0.8, LAST: 0.8})
    assert "the last 2 together change nothing that can be measured" in str(
        describe_summary(summary_of(ladder, ladder.ladders[0]), "bandwidth")
    )


def test_nothing_correct_has_no_sentence_and_one_step_has_no_gain() -> None:
    nothing = ladder_of({FIRST: "crash"})
    assert summary_of(nothing, nothing.ladders[0]) is None
    assert str(describe_summary(None, "rate")) == "No rung has a correct time yet."
    one = ladder_of({FIRST: 0.5})
    said = str(describe_summary(summary_of(one, one.ladders[0]), "bandwidth"))
    assert "cuda first is the only rung with a correct time" in said
    assert ". It is 1.782× (1.782–1.783) slower than torch eager" in said
    first = ladder_of({FIRST: 0.5, SECOND: 0.4})
    said = str(describe_summary(summary_of(first, first.ladders[0]), "bandwidth"))
    assert said.startswith("CUDA C++: 2 rungs, of which the first, cuda first, is the fastest with 2.1")


def test_values_and_roof_have_the_unit_of_the_metric() -> None:
    ladder = ladder_of({FIRST: 0.5})
    row, cost = steps(ladder)[FIRST].row, samples.timed(PROBLEM, FIRST, 0.5).cost
    assert row is not None
    assert row.figure is not None
    assert cost is not None
    by_time, by_bytes = value_of(row, "time"), value_of(row, "bandwidth")
    assert by_time is not None
    assert by_bytes is not None
    assert by_bytes.estimate == pytest.approx(cost.moved_bytes / by_time.estimate)
    assert by_bytes.low is not None
    assert by_bytes.high is not None
    assert by_bytes.low < by_bytes.estimate < by_bytes.high
    roof_s, roof = roof_value(ladder, "time"), roof_value(ladder, "bandwidth")
    assert roof_s is not None
    assert roof == pytest.approx(cost.moved_bytes / roof_s)


def test_other_code_than_today_is_said() -> None:
    run = run_of([samples.timed(PROBLEM, FIRST, 0.5)])
    old, same = (
        ladder_at(run, PROBLEM, [DeclaredVariant(FIRST, "cuda", "", digest=digest)], ())
        for digest in ("other", "0123456789abcdef")
    )
    assert steps(old)[FIRST].code_changed
    assert not steps(same)[FIRST].code_changed


def test_a_problem_of_another_key_is_not_mixed_in() -> None:
    other = Problem(op="rmsnorm", sizes={"m": 16, "n": 4096}, dtype="bf16")
    run = run_of([samples.timed(PROBLEM, FIRST, 0.1), samples.timed(other, SECOND, 0.9)])
    assert kinds(ladder_at(run, PROBLEM, DECLARED, ())) == ["first", "absent", "absent", "absent"]
