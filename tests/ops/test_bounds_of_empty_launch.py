"""Every one of the k launches leaves its mark, and one that did not happen is found."""

import pytest
import torch
from checking import bind, checked, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from kernelviz.ops import op_named


class Fills(TorchDispatchMode):
    """Counts what torch is asked to launch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("k", [1, 7, 64])
def test_eager_launches_once_an_element(k: int) -> None:
    op = op_named("empty_launch")
    problem = op.problem({"k": k}, "fp32")
    launch = bind(op.variant_named("torch_eager"), problem, inputs_of(op, problem))
    with Fills() as fills:
        launch()
    assert fills.seen == ["fill_"] * k


@pytest.mark.parametrize("missing", [0, 3, 16])
@pytest.mark.parametrize("left", [0.0, 2.0, float("nan")])
def test_a_launch_that_did_not_happen_is_found(missing: int, left: float) -> None:
    op = op_named("empty_launch")
    problem = op.problem({"k": 17}, "fp32")
    inputs = inputs_of(op, problem)
    done_K = torch.ones(17)
    assert compare(op, problem, inputs, done_K).passed
    done_K[missing] = left
    assert not compare(op, problem, inputs, done_K).passed


@given(k=st.integers(1, 300))
@settings(max_examples=10, deadline=None)
def test_eager_is_right_at_any_count(k: int) -> None:
    op = op_named("empty_launch")
    assert checked(op, op.variant_named("torch_eager"), op.problem({"k": k}, "fp32")).passed
