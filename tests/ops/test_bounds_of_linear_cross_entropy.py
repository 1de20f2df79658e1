"""The bounds of linear_cross_entropy accept honest arithmetic, with logits stored or not, and refuse planted faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from torch import Tensor

from kernelviz.core.problem import Direction, Problem
from kernelviz.ops import op_named
from kernelviz.ops.linear_cross_entropy import reference

OP = op_named("linear_cross_entropy")
DTYPES = ("bf16", "fp16", "fp32")
SIZES = ({"m": 1, "h": 1, "v": 1}, {"m": 67, "h": 33, "v": 131}, {"m": 64, "h": 512, "v": 1031})
FAULTY = {"m": 256, "h": 64, "v": 521}
"""Logits of normal data deviate by √H = 8: several classes of a row have a share of its sum."""
TILE = 64


def problem_of(sizes: dict[str, int], dtype: str, direction: Direction = "forward") -> Problem:
    return OP.problem(sizes, dtype, direction=direction)


def in_tiles(
    x_MH: Tensor,
    w_VH: Tensor,
    labels_M: Tensor,
    *,
    rescaled: bool = True,
    dropped: int = 0,
    shift: int = 0,
    padded: int = 0,
    narrow: bool = False,
) -> Tensor:
    """The loss as a fused kernel computes it: fp32 sums over H, and maximum and sum of one tile of the vocabulary after another.

    Faults: not `rescaled`, tiles `dropped` at the end, labels off by `shift`, columns `padded` with zeros, `narrow` sums.
    """
    m, v = len(labels_M), w_VH.shape[0]
    top_M, total_M = torch.full((m,), -3e38), torch.zeros(m)
    chosen_M = torch.zeros(m)
    label_M = labels_M + shift
    starts = list(range(0, v, TILE))
    for start in starts[: len(starts) - dropped]:
        part_VH = w_VH[start : start + TILE]
        z_MT = accumulated(x_MH, part_VH) if narrow else x_MH.float() @ part_VH.float().t()
        z_MT = torch.cat([z_MT, z_MT.new_zeros(m, padded * (start == starts[-1]))], dim=1)
        now_M = torch.maximum(top_M, z_MT.amax(1))
        scale_M = (top_M - now_M).exp() if rescaled else torch.ones(m)
        total_M = total_M * scale_M + (z_MT - now_M[:, None]).exp().sum(1)
        top_M = now_M
        inside_M = (label_M >= start) & (label_M < start + z_MT.shape[1])
        found_M = z_MT.gather(1, (label_M - start).clamp(0, z_MT.shape[1] - 1)[:, None]).squeeze(1)
        chosen_M = torch.where(inside_M, found_M, chosen_M)
    return (total_M.log() + (top_M - chosen_M)).to(x_MH.dtype)


def accumulated(x_MH: Tensor, w_VH: Tensor) -> Tensor:
    """Sums over H that are rounded to the format of the inputs after each eight products."""
    total_MV = torch.zeros(x_MH.shape[0], w_VH.shape[0], dtype=x_MH.dtype)
    for start in range(0, x_MH.shape[1], 8):
        part = slice(start, start + 8)
        total_MV = (total_MV.float() + x_MH[:, part].float() @ w_VH[:, part].float().t()).to(x_MH.dtype)
    return total_MV.float()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_honest_losses_are_accepted_whether_logits_are_stored_or_not(
    sizes: dict[str, int], spread: float, dtype: str
) -> None:
    """Also labels that are the likeliest class, where the loss is all but nothing."""
    problem = problem_of(sizes, dtype)
    x_MH, w_VH, labels_M = inputs_of(OP, problem)
    w_VH *= spread
    for labels in (labels_M, (x_MH.float() @ w_VH.float().t()).argmax(1)):
        given = (x_MH, w_VH, labels)
        assert compare(OP, problem, given, in_tiles(*given)).passed
        for name in ("composite_eager", "torch_eager", "torch_chunked"):
            assert compare(OP, problem, given, bind(OP.variant_named(name), problem, given)()).passed, name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "fault",
    [{"shift": 1}, {"shift": -1}, {"rescaled": False}, {"dropped": 1}, {"padded": 503}],
    ids=str,
)
def test_planted_faults_are_refused(fault: dict[str, int], dtype: str) -> None:
    problem = problem_of(FAULTY, dtype)
    given = inputs_of(OP, problem)
    if "padded" in fault:  # logits of zero count where the others are small
        given[1].mul_(0.02)
    assert compare(OP, problem, given, in_tiles(*given)).passed
    assert not compare(OP, problem, given, in_tiles(*given, **fault)).passed  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_sums_over_h_in_16_bits_are_refused(dtype: str) -> None:
    problem = problem_of({"m": 64, "h": 4096, "v": 521}, dtype)
    given = inputs_of(OP, problem)
    assert compare(OP, problem, given, in_tiles(*given)).passed
    assert not compare(OP, problem, given, in_tiles(*given, narrow=True)).passed


def gradients(
    x_MH: Tensor,
    w_VH: Tensor,
    labels_M: Tensor,
    dloss_M: Tensor,
    *,
    shift: int = 0,
    dropped: int = 0,
    slope: bool = True,
) -> tuple[Tensor, Tensor]:
    """Both gradients with p in fp32, rounded before the products."""
    z_MV = x_MH.float() @ w_VH.float().t()
    p_MV = z_MV.softmax(1)
    p_MV[torch.arange(len(labels_M)), (labels_M + shift) % w_VH.shape[0]] -= 1
    dz_MV = p_MV * (dloss_M.float()[:, None] if slope else 1.0)
    if dropped:
        dz_MV[:, -dropped:] = 0
    dz_MV = dz_MV.to(x_MH.dtype).float()
    return (dz_MV @ w_VH.float()).to(x_MH.dtype), (dz_MV.t() @ x_MH.float()).to(x_MH.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_honest_gradients_are_accepted_and_faulty_ones_are_not(dtype: str) -> None:
    problem = problem_of(FAULTY, dtype, "backward")
    given = inputs_of(OP, problem)
    assert compare(OP, problem, given, gradients(*given)).passed
    for fault in ({"shift": 1}, {"dropped": 1}, {"slope": False}):
        assert not compare(OP, problem, given, gradients(*given, **fault)).passed, fault  # type: ignore[arg-type]


def test_pieces_of_rows_give_the_same_reference_and_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of({"m": 13, "h": 24, "v": 40}, "bf16", "backward")
    given = tuple(t.double() if t.is_floating_point() else t for t in inputs_of(OP, problem))

    def computed(function: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        return function(*given)

    back = OP.backward
    assert back is not None
    whole = (*OP.reference(*given[:3]), *computed(back.reference))
    bounds = (*OP.bound(problem, given[:3], whole[:1]), *back.bound(problem, given, whole[1:]))
    monkeypatch.setattr(reference, "PIECE_ELEMENTS", 5 * 40)
    parts = (*OP.reference(*given[:3]), *computed(back.reference))
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(
        (*OP.bound(problem, given[:3], parts[:1]), *back.bound(problem, given, parts[1:])), bounds
    )


def test_the_reference_is_the_gradient_of_the_loss() -> None:
    problem = problem_of({"m": 9, "h": 12, "v": 31}, "fp32", "backward")
    x_MH, w_VH, labels_M, dloss_M = (t.double() if t.is_floating_point() else t for t in inputs_of(OP, problem))
    leaves = x_MH.clone().requires_grad_(), w_VH.clone().requires_grad_()
    (loss_M,) = OP.reference(*leaves, labels_M)
    assert OP.backward is not None
    torch.testing.assert_close(
        torch.autograd.grad(loss_M, leaves, dloss_M), OP.backward.reference(x_MH, w_VH, labels_M, dloss_M)
    )
