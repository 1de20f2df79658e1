"""The data of the inputs: outliers, and that zeros cannot hide a wrong kernel."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest
import torch

from kernelviz.core.events import CaseDone, Event, InspectionDone
from kernelviz.core.problem import RANDOM_DATA, Data, Method, Problem, problem_of_seed
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.measure.session.device_session import DeviceSession, open_session
from kernelviz.measure.session.inputs import (
    MOST_PERMUTATIONS,
    OUTLIER_DISTANCE,
    OUTLIER_FACTOR,
    allocate,
    check_seeds,
    fill,
    unchanged,
)
from kernelviz.ops import op_named
from kernelviz.text.inspection import describe_inputs

PLANTED = str(Path(__file__).parents[1] / "planted.py")
N = 1_000_003


def filled(data: str, seed: int = 0, dtype: str = "fp32", n: int = N) -> tuple[torch.Tensor, ...]:
    problem = Problem(op="add", sizes={"n": n}, dtype=dtype, data=data)  # type: ignore[arg-type]
    op = op_named("add")
    tensors = allocate(op.inputs, problem, torch.device("cpu"))
    fill(op, tensors, problem, seed)
    assert unchanged(op, tensors, problem, seed) == []
    return tensors


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_outliers_are_normal_with_a_thousandth_that_is_larger(dtype: str) -> None:
    for tensor in filled("outliers", dtype=dtype):
        wide = tensor.double()
        large = (wide.abs() > 6).nonzero().view(-1)  # of a million normal numbers, none is above 6 in 500 fills
        gaps = large.diff()
        assert (gaps % OUTLIER_DISTANCE == 0).all()
        every = wide[int(large[0]) % OUTLIER_DISTANCE :: OUTLIER_DISTANCE]
        assert len(every) == pytest.approx(N / OUTLIER_DISTANCE, abs=1)
        assert float(every.std()) == pytest.approx(OUTLIER_FACTOR, rel=0.1)
        assert torch.isfinite(wide).all()


def test_a_tensor_may_be_smaller_than_the_distance_of_outliers() -> None:
    (x, _) = filled("outliers", n=3)
    assert torch.isfinite(x).all()


def test_a_seed_always_writes_the_same_numbers() -> None:
    assert all(torch.equal(a, b) for a, b in zip(filled("outliers"), filled("outliers"), strict=True))


@pytest.mark.parametrize("data", get_args(Data))
def test_only_the_timed_fill_has_data_that_could_hide_a_wrong_kernel(data: Data) -> None:
    problem = Problem(op="add", sizes={"n": 8}, dtype="fp32", data=data)
    assert problem_of_seed(problem, 0).data == data
    assert problem_of_seed(problem, 1).data in RANDOM_DATA
    assert any(problem_of_seed(problem, seed).data in RANDOM_DATA for seed in check_seeds(problem, 1))
    assert len(check_seeds(problem, 3)) == 3


def test_with_zeros_the_timed_inputs_are_zero_and_the_checked_ones_are_not() -> None:
    assert all(int(t.count_nonzero()) == 0 for t in filled("zeros"))
    assert all(int(t.count_nonzero()) > N / 2 for t in filled("zeros", seed=1))


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    return open_session("cpu", (PLANTED, str(Path(__file__).with_name("right_on_zeros.py"))))


def measure(session: DeviceSession, problem: Problem, variants: tuple[str, ...], method: Method) -> dict[str, Result]:
    events: list[Event] = []
    session.measure(problem, variants, variants[0], method, events.append, lambda: False)
    return {e.result.variant: e.result for e in events if isinstance(e, CaseDone)}


@pytest.mark.parametrize("data", ["zeros", "one_value", "small_integers", "outliers", "normal"])
@pytest.mark.parametrize("seeds", [1, 3])
def test_a_kernel_that_is_right_only_on_zeros_is_wrong_with_every_data(
    session: DeviceSession, data: Data, seeds: int
) -> None:
    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32", data=data)
    done = measure(session, problem, ("honest", "returns_zeros"), Method(budget_s=0.02, seeds=seeds))
    assert isinstance(done["honest"].outcome, Timing)
    outcome = done["returns_zeros"].outcome
    assert isinstance(outcome, Failure)
    assert outcome.stage == "wrong"
    assert done["honest"].problem.data == data


def test_an_inspection_names_the_data_of_the_fill_that_came_out_wrong(session: DeviceSession) -> None:
    problem = Problem(op="add", sizes={"n": 1000}, dtype="fp32", data="zeros")
    events: list[Event] = []
    session.inspect(problem, "returns_zeros", events.append, lambda: False)
    (inspection,) = [e.inspection for e in events if isinstance(e, InspectionDone)]
    assert not inspection.passed
    assert inspection.seed > 0
    assert "inputs: normal data" in str(describe_inputs(inspection))
    timed = msgspec.structs.replace(inspection, seed=0)
    assert "inputs: zeros data" in str(describe_inputs(timed))


def test_ids_repeat_all_rows_in_another_order_each_time_however_many_they_are() -> None:
    op, rows, times = op_named("scatter_add"), 3, 2 * MOST_PERMUTATIONS
    problem = op.problem({"v": rows, "t": rows * times - 1, "d": 1}, "fp32")

    def ids(seed: int) -> torch.Tensor:
        tensors = allocate(op.inputs, problem, torch.device("cpu"))
        fill(op, tensors, problem, seed)
        return tensors[-1]

    assert torch.equal(ids(1), ids(1))
    assert not torch.equal(ids(1), ids(2))
    whole = ids(1)[: rows * (times - 1)].view(-1, rows)
    assert torch.equal(whole.sort(dim=1).values, torch.arange(rows).expand(times - 1, rows))
    assert len(whole.unique(dim=0)) == 6
