"""The bounds of cross_entropy and its gradient accept honest arithmetic, and reject what they are there to reject."""

from collections.abc import Callable

import pytest
import torch
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.core.problem import Direction, Problem
from kernelviz.ops import op_named

DTYPES = ("fp32", "fp16", "bf16")
INF, NAN = float("inf"), float("nan")
SIZES = ({"m": 1, "v": 1}, {"m": 5, "v": 128}, {"m": 67, "v": 33}, {"m": 3, "v": 1031}, {"m": 2, "v": 50257})


def online(logits_MV: Tensor, labels_M: Tensor, block: int = 64) -> tuple[Tensor, Tensor]:
    """Loss and ln Σ exp in fp32 with a running maximum, added before the label's logit is taken away, as Liger does."""
    wide_MV = logits_MV.float()
    top_M, total_M = torch.full(labels_M.shape, -3e38), torch.zeros(labels_M.shape)
    for part_MB in torch.split(wide_MV, block, dim=-1):
        now_M = torch.maximum(top_M, part_MB.amax(-1))
        total_M = total_M * (top_M - now_M).exp() + (part_MB - now_M[:, None]).exp().sum(-1)
        top_M = now_M
    sum_M = top_M + total_M.log()
    return (sum_M - wide_MV.gather(-1, labels_M[:, None]).squeeze(-1)).to(logits_MV.dtype), sum_M


def gradient_from(sum_M: Tensor, logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor | None = None) -> Tensor:
    """exp(x - ln Σ exp) less one at the label, in fp32."""
    p_MV = (logits_MV.float() - sum_M[:, None]).exp()
    p_MV[torch.arange(len(labels_M)), labels_M] -= 1
    slope_M1 = 1.0 if dloss_M is None else dloss_M.float()[:, None]
    return (p_MV * slope_M1).to(logits_MV.dtype)


def problem_of(name: str, sizes: dict[str, int], dtype: str, direction: Direction = "forward") -> Problem:
    return op_named(name).problem(sizes, dtype, direction=direction)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_honest_losses_and_gradients_are_accepted(sizes: dict[str, int], spread: float, dtype: str) -> None:
    """Large logits, too, and labels that are the likeliest class, where the loss is all but nothing."""
    loss, both = op_named("cross_entropy"), op_named("cross_entropy_with_grad")
    problem, second = problem_of(loss.name, sizes, dtype), problem_of(both.name, sizes, dtype)
    backward = problem_of(loss.name, sizes, dtype, "backward")
    for seed in range(2):
        logits_MV, labels_M, dloss_M = inputs_of(loss, backward, seed)
        logits_MV *= spread
        for labels in (labels_M, logits_MV.argmax(-1)):
            given_ = (logits_MV, labels)
            loss_M, sum_M = online(*given_)
            assert compare(loss, problem, given_, loss_M).passed
            assert compare(both, second, given_, (loss_M, gradient_from(sum_M, *given_))).passed
            taken = (*given_, dloss_M)
            assert compare(loss, backward, taken, gradient_from(sum_M, *taken)).passed
            for name in ("composite_eager", "torch_eager"):
                assert compare(loss, problem, given_, bind(loss.variant_named(name), problem, given_)()).passed
                assert compare(both, second, given_, bind(both.variant_named(name), second, given_)()).passed
                assert compare(loss, backward, taken, bind(loss.variant_named(name), backward, taken)()).passed


def neighbour(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """Off by one: the logit beside the label's."""
    return online(logits_MV, (labels_M + 1) % logits_MV.shape[1])[0]


def without_the_last(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """A tail that the sum forgets."""
    chosen_M = logits_MV.float().gather(-1, labels_M[:, None]).squeeze(-1)
    return (logits_MV.float()[:, :-1].logsumexp(-1) - chosen_M).to(logits_MV.dtype)


def mean_of_rows(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    loss_M = online(logits_MV, labels_M)[0]
    return loss_M.float().mean().to(loss_M.dtype).expand(loss_M.shape).clone()


def base_two(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    chosen_M = logits_MV.float().gather(-1, labels_M[:, None]).squeeze(-1)
    return (logits_MV.float().exp2().sum(-1).log() - chosen_M).to(logits_MV.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [neighbour, without_the_last, mean_of_rows, base_two])
def test_another_loss_is_rejected(wrong: Callable[[Tensor, Tensor], Tensor], dtype: str) -> None:
    op, problem = op_named("cross_entropy"), problem_of("cross_entropy", {"m": 64, "v": 131}, dtype)
    given_ = inputs_of(op, problem)
    assert compare(op, problem, given_, online(*given_)[0]).passed
    assert not compare(op, problem, given_, wrong(*given_)).passed


def without_one(p_MV: Tensor, labels_M: Tensor) -> Tensor:
    """The softmax itself."""
    return p_MV.index_put((torch.arange(len(labels_M)), labels_M), torch.tensor(1.0, dtype=p_MV.dtype), accumulate=True)


def other_sign(p_MV: Tensor, labels_M: Tensor) -> Tensor:
    return -p_MV


def zero_at_the_label(p_MV: Tensor, labels_M: Tensor) -> Tensor:
    return p_MV.index_put((torch.arange(len(labels_M)), labels_M), torch.tensor(0.0, dtype=p_MV.dtype))


def rounded_before_one(p_MV: Tensor, labels_M: Tensor) -> Tensor:
    """p stored in half precision before one is taken away: what is left of a likely label's gradient has few digits."""
    p_MV = without_one(p_MV.float(), labels_M).half()
    return without_one(p_MV.float(), labels_M) - 2 * torch.nn.functional.one_hot(labels_M, p_MV.shape[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [without_one, other_sign, zero_at_the_label])
def test_another_gradient_is_rejected(wrong: Callable[[Tensor, Tensor], Tensor], dtype: str) -> None:
    op, problem = op_named("cross_entropy"), problem_of("cross_entropy", {"m": 64, "v": 131}, dtype, "backward")
    logits_MV, labels_M, dloss_M = inputs_of(op, problem)
    _, sum_M = online(logits_MV, labels_M)
    honest = gradient_from(sum_M, logits_MV, labels_M, dloss_M)
    assert compare(op, problem, (logits_MV, labels_M, dloss_M), honest).passed
    other = wrong(gradient_from(sum_M, logits_MV, labels_M), labels_M) * dloss_M[:, None]
    assert not compare(op, problem, (logits_MV, labels_M, dloss_M), other).passed
    forgotten = gradient_from(sum_M, logits_MV, labels_M)
    assert not compare(op, problem, (logits_MV, labels_M, dloss_M), forgotten).passed


def test_a_likely_label_whose_gradient_lost_its_digits_is_rejected() -> None:
    op, problem = op_named("cross_entropy_with_grad"), problem_of("cross_entropy_with_grad", {"m": 8, "v": 131}, "fp32")
    logits_MV, labels_M = inputs_of(op, problem)
    logits_MV[torch.arange(8), labels_M] += 12.0
    loss_M, sum_M = online(logits_MV, labels_M)
    honest = gradient_from(sum_M, logits_MV, labels_M)
    assert compare(op, problem, (logits_MV, labels_M), (loss_M, honest)).passed
    assert not compare(op, problem, (logits_MV, labels_M), (loss_M, rounded_before_one(honest, labels_M))).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["composite_eager", "torch_eager"])
def test_masked_and_hopeless_rows(name: str, dtype: str) -> None:
    """Masked classes have no share; a masked label costs infinity; a row of -inf, with inf or with NaN has no loss."""
    op, problem = op_named("cross_entropy_with_grad"), problem_of("cross_entropy_with_grad", {"m": 6, "v": 37}, dtype)
    logits_MV, labels_M = inputs_of(op, problem)
    labels_M[:] = torch.tensor([1, 2, 3, 4, 5, 6])
    logits_MV[0, ::2] = -INF
    logits_MV[1, 2] = -INF
    logits_MV[2] = -INF
    logits_MV[3, 9] = INF
    logits_MV[4, 9] = NAN
    logits_MV[5] += 100.0
    loss_M, gradient_MV = bind(op.variant_named(name), problem, (logits_MV, labels_M))()
    # A NaN may have the very bits that stand for "never written".
    shown = (loss_M.masked_fill(loss_M.isnan(), NAN), gradient_MV.masked_fill(gradient_MV.isnan(), NAN))
    assert compare(op, problem, (logits_MV, labels_M), shown).passed
    assert loss_M[1] == INF
    assert loss_M[2:5].isnan().all()
    assert gradient_MV[0, ::2].count_nonzero() == 0


@settings(max_examples=15, deadline=None)
@given(m=st.integers(1, 9), v=st.integers(1, 300), seed=st.integers(0, 99), dtype=st.sampled_from(DTYPES))
def test_gradients_of_a_row_sum_to_nothing_and_losses_are_positive(m: int, v: int, seed: int, dtype: str) -> None:
    op = op_named("cross_entropy_with_grad")
    problem = problem_of(op.name, {"m": m, "v": v}, dtype)
    wide = tuple(t.double() if t.is_floating_point() else t for t in inputs_of(op, problem, seed))
    loss_M, gradient_MV = op.reference(*wide)
    torch.testing.assert_close(gradient_MV.sum(-1), torch.zeros(m, dtype=torch.float64), atol=1e-12, rtol=0)
    assert (loss_M >= -1e-12).all()
    leaf_MV = wide[0].clone().requires_grad_()
    torch.nn.functional.cross_entropy(leaf_MV, wide[1], reduction="sum").backward()
    assert leaf_MV.grad is not None
    torch.testing.assert_close(leaf_MV.grad, gradient_MV)
