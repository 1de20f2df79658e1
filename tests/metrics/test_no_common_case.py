"""Why two runs have no case in common: each reason planted, and the plan that would measure one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench import Bench
from kernelviz.bench.comparison import plan_of_common_cases
from kernelviz.core import Run
from kernelviz.metrics import no_common_case as n
from kernelviz.metrics.comparison import compare
from kernelviz.store import Store
from kernelviz.text.no_common_case import describe_no_common_case

SMALL, LARGE = [{"m": 64, "n": 128}], [{"m": 64, "n": 256}]
SHARES = {"torch_eager": 0.6, "torch_compile": 0.9}


def run(
    id: str, sizes: Sequence[Mapping[str, int]] = SMALL, *, changes: Mapping[str, Any] | None = None, **more: Any
) -> Run:
    made = samples.run(id=id, sizes=sizes, **{"shares": SHARES, **more})
    results = [
        msgspec.structs.replace(r, problem=msgspec.structs.replace(r.problem, **(changes or {}))) for r in made.results
    ]
    return msgspec.structs.replace(made, results=tuple(results))


A = run("a")
ADD = run("b", [{"n": 64}], op="add", dtype="fp32")
CASES: tuple[tuple[Run, type[n.NoCommonCase], str], ...] = (
    (ADD, n.OtherPart, "the ops differ (rmsnorm in A, add in B)"),
    (run("b", LARGE), n.OtherSizes, "the sizes differ (A: n = 128; B: n = 256)"),
    (run("b", dtype="fp32"), n.OtherPart, "the data types differ (bf16 in A, fp32 in B)"),
    (run("b", changes={"direction": "backward"}), n.OtherPart, "the directions differ (forward in A, backward in B)"),
    (
        run("b", shares={"triton_persistent": 0.9}),
        n.OtherPart,
        "the variants differ (torch eager, torch compile in A, triton persistent in B)",
    ),
    (msgspec.structs.replace(A, id="b", results=()), n.NoResults, "B has no result"),
)


@pytest.mark.parametrize(("b", "kind", "sentence"), CASES)
def test_each_reason_is_found_and_said(b: Run, kind: type[n.NoCommonCase], sentence: str) -> None:
    reasons = n.why_no_common_case(compare(A, b))
    assert [type(reason) for reason in reasons] == [kind]
    assert str(describe_no_common_case(reasons)) == f"A and B have no case in common: {sentence}."


def test_all_reasons_are_said_at_once_and_none_is_untested() -> None:
    reasons = n.why_no_common_case(compare(A, run("b", LARGE, dtype="fp32")))
    assert [type(reason) for reason in reasons] == [n.OtherPart, n.OtherSizes]
    first, second = A.results
    other = msgspec.structs.replace(first, problem=samples.problems("rmsnorm", LARGE, "bf16")[0])
    crossed = compare(
        msgspec.structs.replace(A, results=(first,)), msgspec.structs.replace(A, id="b", results=(other, second))
    )
    assert [type(reason) for reason in n.why_no_common_case(crossed)] == [n.NoCombination]
    assert "no combination of them is in both" in str(describe_no_common_case(n.why_no_common_case(crossed)))
    assert {kind for _, kind, _ in CASES} | {n.NoCombination} == set(get_args(n.NoCommonCase))


def test_a_pair_needs_no_reason_and_of_many_sizes_three_are_named() -> None:
    assert n.why_no_common_case(compare(A, run("b"))) == ()
    many = run("b", [{"m": 64, "n": 2**i} for i in range(8, 13)])
    assert "n = 1,024 and 2 more sizes)" in str(describe_no_common_case(n.why_no_common_case(compare(A, many))))


def test_of_other_heads_the_heads_are_named_and_not_each_length() -> None:
    def heads(id: str, hq: int) -> Run:
        sizes = [{"b": 1, "s": s, "hq": hq, "hk": 4, "d": 64} for s in (512, 1024, 2048, 4096)]
        return samples.run(id=id, op="causal_attention", sizes=sizes, shares={"torch_eager": 0.6})

    said = str(describe_no_common_case(n.why_no_common_case(compare(heads("a", 4), heads("b", 8)))))
    assert said.endswith("the sizes differ (A: hq = 4; B: hq = 8).")


def test_the_plan_measures_the_sizes_of_a_with_the_variants_of_b(tmp_path: Path) -> None:
    bench = Bench(Store.open(tmp_path), (samples.CPU,))
    plan = plan_of_common_cases(bench, compare(A, run("b", LARGE)))
    assert plan is not None
    assert [p.sizes for p in plan.problems] == SMALL
    assert set(plan.variants) <= set(SHARES)
    assert plan.baseline in plan.variants
    assert plan_of_common_cases(bench, compare(A, ADD)) is None, "another op"
    assert plan_of_common_cases(bench, compare(A, run("b"))) is None, "there are pairs"
    bench.close()
