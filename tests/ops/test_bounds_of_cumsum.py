"""The bound of cumsum accepts honest scans, and rejects what it is there to reject."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from cases import odd_sizes
from checking import compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")


def one_accumulator(x_N: Tensor) -> Tensor:
    return torch.from_numpy(np.add.accumulate(x_N.float().numpy(), dtype=np.float32)).to(x_N.dtype)


def of_tiles(x_N: Tensor, tile: int = 64) -> Tensor:
    """Scans of tiles; the sum of all tiles before a tile is added afterwards. These are three kernels."""
    parts = [one_accumulator(p.float()) for p in x_N.split(tile)]
    totals = one_accumulator(torch.stack([p[-1] for p in parts]))
    before = [torch.zeros(()), *totals[:-1]]
    return torch.cat([p + b for p, b in zip(parts, before, strict=True)]).to(x_N.dtype)


def doubling(x_N: Tensor) -> Tensor:
    """Hillis and Steele: log N steps, each adding what lies twice as far before."""
    y_N, apart = x_N.float().clone(), 1
    while apart < x_N.numel():
        y_N = torch.cat([y_N[:apart], y_N[apart:] + y_N[:-apart]])
        apart *= 2
    return y_N.to(x_N.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [*odd_sizes(op_named("cumsum")), {"n": 2**18}], ids=str)
def test_honest_scans_are_accepted(sizes: dict[str, int], dtype: str) -> None:
    op = op_named("cumsum")
    problem = op.problem(sizes, dtype)
    for seed in range(3):
        (x_N,) = inputs_of(op, problem, seed)
        for x in (x_N, x_N * 0.01 + 0.05):
            for scan in (one_accumulator, of_tiles, doubling):
                assert compare(op, problem, (x,), scan(x)).passed, (scan.__name__, seed)


def in_its_own_precision(x_N: Tensor) -> Tensor:
    """Rounded to the storage format after each addition."""
    y_N, total = torch.empty_like(x_N), torch.zeros((), dtype=x_N.dtype)
    for i, x in enumerate(x_N):
        total = total + x
        y_N[i] = total
    return y_N


def exclusive(x_N: Tensor) -> Tensor:
    return (x_N.double().cumsum(0) - x_N.double()).to(x_N.dtype)


def tiles_forget_their_last(x_N: Tensor) -> Tensor:
    parts = x_N.double().split(64)
    before = torch.stack([p[:-1].sum() for p in parts]).cumsum(0)
    return torch.cat([parts[0].cumsum(0), *(p.cumsum(0) + b for p, b in zip(parts[1:], before, strict=False))]).to(
        x_N.dtype
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [exclusive, tiles_forget_their_last])
def test_another_scan_is_rejected(wrong: Callable[[Tensor], Tensor], dtype: str) -> None:
    op = op_named("cumsum")
    problem = op.problem({"n": 1023}, dtype)
    (x_N,) = inputs_of(op, problem)
    assert compare(op, problem, (x_N,), x_N.double().cumsum(0).to(x_N.dtype)).passed
    assert not compare(op, problem, (x_N,), wrong(x_N)).passed


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_scan_in_half_precision_is_rejected(dtype: str) -> None:
    op = op_named("cumsum")
    problem = op.problem({"n": 1023}, dtype)
    (x_N,) = inputs_of(op, problem)
    assert not compare(op, problem, (x_N,), in_its_own_precision(x_N)).passed


@settings(max_examples=20, deadline=None)
@given(n=st.integers(2, 4000), cut=st.floats(0, 1), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_a_tile_that_did_not_wait_is_found(n: int, cut: float, dtype: str, seed: int) -> None:
    """Everything from some place on misses the sum of what lies before: seen unless that happens to be next to nothing."""
    op = op_named("cumsum")
    problem = op.problem({"n": n}, dtype)
    (x_N,) = inputs_of(op, problem, seed)
    assert compare(op, problem, (x_N,), of_tiles(x_N)).passed
    at = min(n - 1, 1 + int(cut * (n - 1)))
    y_N = x_N.double().cumsum(0)
    missed = y_N[at - 1].item()
    y_N[at:] -= missed
    if abs(missed) > 0.5:
        assert not compare(op, problem, (x_N,), y_N.to(x_N.dtype)).passed
