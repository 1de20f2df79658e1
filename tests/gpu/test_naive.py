"""The naive protocol on a GPU: CUDA events in a new process, beside our time of the same case."""

from __future__ import annotations

import pytest
from parts import part

from kernelviz.bench import Bench
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest

pytestmark = [part("product"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]


def test_the_first_call_takes_longer_than_the_kernel_and_the_next_problem_is_measured(bench: Bench) -> None:
    """Source 1 adds 10^8 numbers. The second problem needs a new worker, because the protocol's processes come to the GPU after
    the first one."""
    plan = bench.plan(
        RunRequest(
            op="add",
            variants=("triton_block",),
            dtype="fp32",
            sizes={"n": "2^20,100000000"},
            device="cuda:0",
        )
    )
    run_id = bench.run(plan, Method(budget_s=0.2, figures=("cold", "naive")))
    for _ in bench.follow(run_id, timeout_s=500):
        pass
    run = bench.load(run_id)
    assert run.status == "finished"
    assert len(run.results) == 2
    for result in run.results:
        assert result.timing is not None, result.outcome
        naive, cold = result.timing.naive_timing, result.timing.device_cold_s
        assert naive is not None, result.conditions
        assert cold is not None
        assert naive.timer == "events"
        assert 1 <= naive.calls <= 100
        # Loading a kernel alone takes longer than 50 us, and a call is never shorter than its kernel with warm caches.
        assert naive.first_s > cold.estimate
        assert naive.bind_and_first_s >= naive.first_s
        assert naive.mean_s >= 0.5 * cold.estimate
        assert naive.mean_s <= naive.first_s
