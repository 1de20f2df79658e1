"""Each run of docs/kernels.md that tests/gpu/documented_runs.py measures can be planned on an H200."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench

from kernelviz.ops import op_named

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))

from documented_runs import RUNS, Documented


@pytest.mark.parametrize("one", RUNS.values(), ids=list(RUNS))
def test_every_variant_of_a_documented_run_can_solve_one_of_its_problems(one: Documented) -> None:
    bench = RehearsedBench((samples.H200,))
    plan = bench.plan(one.request())
    named = [op_named(one.op).variant_named(name) for name in plan.variants]
    assert [v.name for v in named if all(v.refuses(p) is not None for p in plan.problems)] == []
