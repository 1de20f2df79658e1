"""`varlen_attention`: faults that the bound refuses, and lengths that the axes of the op do not give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checking import compare, inputs_of
from interpreter_process import interpreted_lines

from kernelviz.ops import op_named

HERE = Path(__file__).parent
OP = op_named("varlen_attention")


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return OP.reference(q.double(), k.double(), v.double(), ends)[0].to(q.dtype)


def as_one_sequence(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return exact(q, k, v, ends[-1:])


def with_a_key_of_the_sequence_before(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    """The second sequence begins one position too early."""
    earlier = ends.clone()
    earlier[0] -= 1
    o, wrong = exact(q, k, v, ends), exact(q, k, v, earlier)
    o[ends[0] : ends[1]] = wrong[ends[0] : ends[1]]
    return o


def last_query_as_the_first_of_the_next(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    earlier = ends.clone()
    earlier[0] -= 1
    o = exact(q, k, v, ends)
    o[ends[0] - 1] = exact(q, k, v, earlier)[ends[0] - 1]
    return o


def without_the_last_query(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    o = exact(q, k, v, ends)
    o[ends[-1] - 1] = 0
    return o


@pytest.mark.parametrize(
    "wrong",
    [
        as_one_sequence,
        with_a_key_of_the_sequence_before,
        last_query_as_the_first_of_the_next,
        without_the_last_query,
    ],
)
@pytest.mark.parametrize("dtype", OP.dtypes)
def test_the_bound_refuses_faults(wrong: Callable[..., torch.Tensor], dtype: str) -> None:
    problem = OP.problem({"b": 4, "s": 40, "u": 2, "hq": 2, "hk": 1, "d": 64}, dtype)
    inputs = inputs_of(OP, problem)
    assert compare(OP, problem, inputs, exact(*inputs)).passed
    assert not compare(OP, problem, inputs, wrong(*inputs)).passed


@pytest.mark.xdist_group("interpreter")
def test_triton_finds_every_tile_of_every_sequence() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(HERE / "varlen_lengths.py")
    assert len(lines) == 5
    for line in lines:
        assert line["passed"], line
        assert line["rows_of_others"] == 0, line
