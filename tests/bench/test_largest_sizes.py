"""A variant that takes sizes up to a limit: which plans have it by default, and what the exit code says of the other sizes."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench

from kernelviz.cli.run import exit_code
from kernelviz.core import Failure, Result
from kernelviz.core.reasons import NotFinite, SizeTooLarge
from kernelviz.core.request import RunRequest
from kernelviz.metrics.rows import rows
from kernelviz.ops import catalogue
from kernelviz.text import format_failure
from kernelviz.text.cells import failures

LIMITED = [(op, v) for op in catalogue().values() for v in op.variants if v.largest]


def test_some_variant_has_a_limit() -> None:
    assert {"cuda_gemv", "cuda_skinny", "cuda_wgmma_skinny"} <= {v.name for op, v in LIMITED if op.name == "matmul"}


@pytest.mark.parametrize(("m", "chosen"), [("1", True), ("4,512", True), ("512", False), ("9", False)])
def test_a_plan_has_it_where_it_takes_one_of_the_sizes(m: str, chosen: bool) -> None:
    bench = RehearsedBench((samples.H200,))
    plan = bench.plan(RunRequest(op="matmul", dtype="bf16", sizes={"m": m, "n": "512", "k": "512"}))
    assert ("cuda_gemv" in plan.variants) == chosen


def test_the_size_that_is_too_large_is_refused_by_name() -> None:
    op = catalogue()["matmul"]
    problem = op.problem({"m": 16, "n": 64, "k": 64}, "bf16")
    assert op.variant_named("cuda_gemv").refuses(problem) == SizeTooLarge(axis="m", size=16, most=8)


def test_what_a_variant_does_not_take_is_no_failure_of_a_run() -> None:
    run = samples.run()
    first, *others = run.results
    too_large = Failure(stage="unavailable", reasons=(SizeTooLarge(axis="n", size=9, most=8),))

    def ended_with(outcome: Failure) -> int:
        results = (msgspec.structs.replace(first, outcome=outcome), *others)
        return exit_code(msgspec.structs.replace(run, results=results))

    assert exit_code(run) == ended_with(too_large) == 0
    assert ended_with(Failure(stage="wrong", reasons=(NotFinite(elements=1),))) == 1


def test_one_limit_is_one_failure_for_all_sizes_and_not_of_this_machine() -> None:
    sizes = [samples.problems("add", [{"n": n}])[0] for n in (9, 10)]
    refused = [
        Result(
            problem=p,
            variant="v",
            outcome=Failure(stage="unavailable", reasons=(SizeTooLarge(axis="n", size=n, most=8),)),
        )
        for p, n in zip(sizes, (9, 10), strict=True)
    ]
    [(_, failure)] = groups = failures(rows(samples.run(refused), ()))
    assert str(format_failure(failure)) == "size not supported: takes n up to 8 only"
    assert [len(group) for group in groups.values()] == [2]
