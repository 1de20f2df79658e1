"""Inspections on a GPU: kernels that are right, a planted one that forgets its last tile, and times that a look must not move."""

from __future__ import annotations

from pathlib import Path

import pytest
from parts import part

from kernelviz.bench import Bench
from kernelviz.core.inspection import Inspection
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest

pytestmark = [part("product"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]

PLANTED = str(Path(__file__).parents[1] / "planted_wrong.py")


def look(bench: Bench, op: str, variant: str, dtype: str, sizes: dict[str, str]) -> Inspection:
    plan = bench.plan(
        RunRequest(op=op, variants=(variant,), dtype=dtype, sizes=sizes, device="cuda:0", plugins=(PLANTED,))
    )
    job = bench.inspect(plan.problems[0], variant, plan.device, plugins=plan.plugins)
    ended = [event for _, event in bench.follow(job, timeout_s=300)][-1]
    found = bench.inspected(job)
    assert found is not None, ended
    return found


def test_a_forgotten_tile_is_found_where_it_is(bench: Bench) -> None:
    found = look(bench, "softmax", "forgets_the_last_tile", "bf16", {"m": "200", "n": "1000"})
    (errors,) = found.errors
    assert not found.passed
    assert (errors.unwritten, errors.wrong) == (1600, 1700)
    assert (errors.first_wrong, errors.last_wrong) == ((183, 900), (199, 999))
    assert {t.device for t in found.tensors} == {"cuda:0"}
    assert all(t.alignment_bytes is not None and t.alignment_bytes >= 16 for t in found.tensors)


@pytest.mark.parametrize(
    ("op", "variant", "dtype", "sizes"),
    [
        ("add", "cuda_vec16", "fp32", {"n": "2^28"}),
        ("softmax", "triton_persistent", "bf16", {"m": "4096", "n": "50257"}),
        ("matmul", "triton_grouped", "bf16", {"m": "4096", "n": "4096", "k": "4096"}),
    ],
)
def test_large_right_ones_are_right_element_by_element(
    bench: Bench, op: str, variant: str, dtype: str, sizes: dict[str, str]
) -> None:
    found = look(bench, op, variant, dtype, sizes)
    (errors,) = found.errors
    assert found.passed, found.reasons
    assert errors.counts.exact + sum(errors.counts.octaves) == errors.elements
    assert errors.worst_of_bound is not None
    assert errors.worst_of_bound <= 1


def test_a_look_between_two_measurements_moves_neither_them_nor_their_verdict(bench: Bench) -> None:
    """The timed graph is replayed for the look, and stays bound: the next measurement begins with it."""
    plan = bench.plan(
        RunRequest(op="add", variants=("cuda_vec16",), dtype="fp32", sizes={"n": "2^20"}, device="cuda:0")
    )

    def cold_s() -> float:
        run = bench.run(plan, Method(budget_s=0.3))
        list(bench.follow(run, timeout_s=120))
        timing = bench.load(run).results[0].timing
        assert timing is not None
        assert timing.device_cold_s is not None
        return timing.device_cold_s.estimate

    before = cold_s()
    job = bench.inspect(plan.problems[0], "cuda_vec16", "cuda:0")
    list(bench.follow(job, timeout_s=120))
    found = bench.inspected(job)
    assert found is not None
    assert (found.passed, found.call) == (True, "timed")
    assert cold_s() == pytest.approx(before, rel=0.02)


def test_allocated_and_reserved_memory_is_known_around_binding_and_call(bench: Bench) -> None:
    """An eager add of 2^26 numbers in fp32 allocates its output of 256 MiB when it is bound."""
    found = look(bench, "add", "torch_eager", "fp32", {"n": "2^26"})
    by_moment = {state.moment: state for state in found.memory}
    assert len(by_moment) == 5
    for state in found.memory:
        assert state.allocated_bytes is not None
        assert state.reserved_bytes is not None
        assert 0 < state.allocated_bytes <= state.reserved_bytes
    before, after = by_moment["before_bind"].allocated_bytes, by_moment["after_bind"].allocated_bytes
    assert before is not None
    assert after is not None
    assert after - before == 2**28
