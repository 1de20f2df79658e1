"""`kernelviz.best`: the chosen variant is bound to tensors, and what cannot be bound is passed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch

import kernelviz as kv
from kernelviz.api.best_calls import bound
from kernelviz.bench.best import Best
from kernelviz.core import BadField, Direction, UnknownName
from kernelviz.formats import shipped_runs
from kernelviz.ops import Launch, Op, Staged, catalogue, op_named, variant
from kernelviz.ops.catalog.called import problem_of_tensors


@dataclass(frozen=True)
class Shaped:
    """What `problem_of_tensors` needs of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@pytest.mark.parametrize("op", catalogue().values(), ids=lambda op: op.name)
def test_the_tensors_of_a_problem_state_the_problem(op: Op) -> None:
    """For every op, direction and number format: sizes that no tensor has are given, all others are found."""
    sizes = {"h": 8, "w": 8, "r": 1, "hq": 4, "hk": 2, "d": 64} | {"s": 2 if "r" in op.axis_names else 16}
    for direction in op.directions:
        for dtype in op.dtypes:
            problem = op.problem({a: sizes.get(a, 32) for a in op.axis_names}, dtype, direction=direction)
            specs = op.of(problem).inputs
            tensors = [Shaped(spec.shape(problem.sizes), named(spec.dtype or dtype)) for spec in specs]
            in_tensors = {axis for spec in specs for axis in spec.axes if isinstance(axis, str)}
            rest = {axis: size for axis, size in problem.sizes.items() if axis not in in_tensors}
            assert problem_of_tensors(op, tensors, rest, compute=problem.compute, direction=direction) == problem


def named(name: str) -> torch.dtype:
    from kernelviz.core.dtypes import DTYPES

    found: torch.dtype = getattr(torch, DTYPES[name].torch_name)
    return found


@pytest.mark.parametrize(
    ("shapes", "dtype", "told"),
    [
        ([(4, 8)], "bf16", "takes 2 tensors: x_MN, w_N"),
        ([(4, 8), (9,)], "bf16", "its size n is 8 elsewhere"),
        ([(4, 8), (8, 1)], "bf16", "it has 1"),
        ([(4, 8), (8,)], "fp64", "dtype"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(shapes: list[tuple[int, ...]], dtype: str, told: str) -> None:
    tensors = [Shaped(shape, named(dtype)) for shape in shapes]
    with pytest.raises((BadField, UnknownName), match=told):
        problem_of_tensors(op_named("rmsnorm"), tensors, {})


def planted(refuse: bool) -> Callable[[torch.Tensor], Launch]:
    def bind(x_MN: torch.Tensor) -> Launch:
        """A softmax on the processor."""
        if refuse:
            raise BadField("input x_MN", "0x8", "this kernel needs one that starts on 16 bytes")
        return lambda: torch.softmax(x_MN, -1)

    return bind


def two_variants() -> Op:
    made = (variant(backend="triton")(planted(refuse)) for refuse in (True, False))
    variants = tuple(replace(one, name=name) for one, name in zip(made, ("aligned", "plain"), strict=True))
    return replace(op_named("softmax"), variants=variants)


def test_the_first_variant_that_can_be_bound_is_called_and_the_others_are_named() -> None:
    op, x = two_variants(), torch.randn(4, 8)
    device = shipped_runs.load("h200-softmax").environment.device
    problem = problem_of_tensors(op, [x], {})
    call = bound(op, (x,), Best(problem, device, "The rule.", op.variants))
    assert call.variant == "plain"
    assert "16 bytes" in call.passed_over["aligned"]
    assert torch.equal(call(), torch.softmax(x, -1))  # type: ignore[arg-type]
    x.add_(torch.randn(4, 8))
    assert torch.equal(call(), torch.softmax(x, -1))  # type: ignore[arg-type]
    with pytest.raises(BadField, match="16 bytes"):
        bound(op, (x,), Best(problem, device, "The rule.", op.variants[:1]))


def test_a_call_of_a_backward_pass_follows_the_forward_pass_of_what_the_tensors_hold_then() -> None:
    def bind(x_MN: torch.Tensor, dy_MN: torch.Tensor) -> Staged:
        """The gradient of a softmax on the processor, from the outputs of its forward pass."""
        y_MN = torch.empty_like(x_MN)

        def gradient() -> torch.Tensor:
            return y_MN * (dy_MN - (y_MN * dy_MN).sum(-1, keepdim=True))

        return Staged(forward=lambda: y_MN.copy_(torch.softmax(x_MN, -1)), call=gradient)

    only = replace(variant(backend="triton", directions=("backward",))(bind), name="only")
    op = replace(op_named("softmax"), variants=(only,))
    x, dy = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)
    problem = problem_of_tensors(op, [x, dy], {}, direction="backward")
    device = shipped_runs.load("h200-softmax").environment.device
    call = bound(op, (x.detach(), dy), Best(problem, device, "The rule.", op.variants))
    for _ in range(2):
        (expected,) = torch.autograd.grad(torch.softmax(x, -1), x, dy)
        torch.testing.assert_close(call(), expected)
        x.data.add_(torch.randn(4, 8))


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_tensors_of_the_processor_are_refused(direction: Direction) -> None:
    tensors = [torch.randn(4, 8) for _ in range(1 if direction == "forward" else 2)]
    with pytest.raises(BadField, match="name a GPU"):
        kv.best("softmax", *tensors, direction=direction)
