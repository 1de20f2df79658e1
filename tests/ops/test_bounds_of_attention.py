"""The bounds of attention accept honest arithmetic, and reject what they are there to reject."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from checking import bind, compare, inputs_of
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.ops import op_named

OPS = ("attention", "causal_attention")
SIZES = (
    {"b": 1, "s": 1, "hq": 1, "hk": 1, "d": 64},
    {"b": 2, "s": 33, "hq": 4, "hk": 2, "d": 40},
    {"b": 1, "s": 300, "hq": 3, "hk": 1, "d": 64},
)
TILE = 64
Step = Callable[[Tensor], Tensor]


def as_it_is(x: Tensor) -> Tensor:
    return x


def by_tiles(
    q_BSHD: Tensor,
    k_BSHD: Tensor,
    v_BSHD: Tensor,
    *,
    causal: bool,
    later: int = 1,
    rescale: Step = as_it_is,
    dropped: bool = False,
    accumulate: Step = as_it_is,
    tile: int = TILE,
) -> Tensor:
    """Online softmax in fp32 over tiles of keys, weights rounded for the products, as every kernel here does it.

    `later`: a query does not see the key so many positions after it. The other arguments plant a fault.
    """
    dtype, (length, heads), dimension = q_BSHD.dtype, q_BSHD.shape[1:3], q_BSHD.shape[-1]
    q_BHSD = q_BSHD.float().transpose(1, 2)
    k_BHSD, v_BHSD = (t.float().repeat_interleave(heads // t.shape[2], 2).transpose(1, 2) for t in (k_BSHD, v_BSHD))
    maximum, total = torch.full((*q_BHSD.shape[:3], 1), -torch.inf), torch.zeros((*q_BHSD.shape[:3], 1))
    o_BHSD = torch.zeros_like(q_BHSD)
    edges = [*range(0, length, tile), length]
    for first, last in list(pairwise(edges))[: -1 if dropped and len(edges) > 2 else None]:
        scores = q_BHSD @ k_BHSD[:, :, first:last].transpose(2, 3) / dimension**0.5
        if causal:
            rows, keys = torch.arange(length)[:, None], torch.arange(first, last)
            scores = scores.masked_fill(keys >= rows + later, -torch.inf)
        higher = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        reference = higher.where(higher > -torch.inf, 0.0)
        weights = (scores - reference).exp()
        factor = rescale((maximum - reference).exp())
        total = total * factor + weights.sum(-1, keepdim=True)
        o_BHSD = accumulate(o_BHSD * factor + weights.to(dtype).float() @ v_BHSD[:, :, first:last])
        maximum = higher
    return (o_BHSD / total).transpose(1, 2).to(dtype).contiguous()


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_honest_attention_is_accepted(name: str, sizes: dict[str, int], dtype: str) -> None:
    op = op_named(name)
    for data in ("normal", "zeros", "one_value"):
        problem = op.problem(sizes, dtype, data=data)
        inputs = inputs_of(op, problem, 1)
        found = by_tiles(*inputs, causal=name.startswith("causal"))
        assert compare(op, problem, inputs, found).passed, data
        for variant in ("composite_eager", "torch_eager"):
            launch = bind(op.variant_named(variant), problem, inputs)
            assert compare(op, problem, inputs, launch()).passed, (data, variant)


FAULTS: dict[str, Callable[..., Tensor]] = {
    "a query sees the next key": lambda *t, causal: by_tiles(*t, causal=True, later=2),
    "a query does not see its own key": lambda *t, causal: by_tiles(*t, causal=True, later=0),
    "no rescaling to the new maximum": lambda *t, causal: by_tiles(*t, causal=causal, rescale=torch.ones_like),
    "the last tile is dropped": lambda *t, causal: by_tiles(*t, causal=causal, dropped=True),
    "sums in bf16": lambda *t, causal: by_tiles(*t, causal=causal, accumulate=lambda o: o.bfloat16().float(), tile=1),
    "no mask": lambda *t, causal: by_tiles(*t, causal=not causal),
    "a neighbour's keys": lambda q, k, v, causal: by_tiles(q, k.roll(1, 2), v.roll(1, 2), causal=causal),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused(name: str, dtype: str, fault: str) -> None:
    op, causal = op_named(name), name.startswith("causal")
    if not causal and fault.startswith("a query"):
        return
    problem = op.problem({"b": 1, "s": 700, "hq": 2, "hk": 2, "d": 64}, dtype)
    inputs = inputs_of(op, problem, 2)
    assert compare(op, problem, inputs, by_tiles(*inputs, causal=causal)).passed
    assert not compare(op, problem, inputs, FAULTS[fault](*inputs, causal=causal)).passed


def gradients(
    q_BSHD: Tensor,
    k_BSHD: Tensor,
    v_BSHD: Tensor,
    do_BSHD: Tensor,
    *,
    causal: bool,
    later: int = 1,
    delta: Step = as_it_is,
    keys: int | None = None,
    rounded: bool = True,
) -> tuple[Tensor, ...]:
    """The backward pass in fp32 with w and ∂s rounded for the products, from the o that the forward pass stored."""
    dtype, (length, heads), dimension = q_BSHD.dtype, q_BSHD.shape[1:3], q_BSHD.shape[-1]
    o_BSHD = by_tiles(q_BSHD, k_BSHD, v_BSHD, causal=causal)
    q, do, o = (t.float().transpose(1, 2) for t in (q_BSHD, do_BSHD, o_BSHD))
    group = heads // k_BSHD.shape[2]
    k, v = (t.float().repeat_interleave(group, 2).transpose(1, 2) for t in (k_BSHD, v_BSHD))
    scores = q @ k.transpose(2, 3) / dimension**0.5
    if causal:
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(later), -torch.inf)
    w = scores.softmax(-1)
    ds = w * (do @ v.transpose(2, 3) - delta((do * o).sum(-1, keepdim=True)))
    if rounded:
        w, ds = w.to(dtype).float(), ds.to(dtype).float()
    if keys is not None:
        ds[..., keys:] = 0
    dq, dk, dv = ds @ k / dimension**0.5, ds.transpose(2, 3) @ q / dimension**0.5, w.transpose(2, 3) @ do
    dk, dv = (t.unflatten(1, (-1, group)).sum(2) for t in (dk, dv))
    return tuple(t.transpose(1, 2).to(dtype).contiguous() for t in (dq, dk, dv))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_honest_gradients_are_accepted(name: str, sizes: dict[str, int], dtype: str) -> None:
    op = op_named(name)
    for data in ("normal", "zeros"):
        problem = op.problem(sizes, dtype, direction="backward", data=data)
        inputs = inputs_of(op, problem, 1)
        found = gradients(*inputs, causal=name.startswith("causal"))
        assert compare(op, problem, inputs, found).passed, data
        for variant in ("composite_eager", "torch_eager"):
            launch = bind(op.variant_named(variant), problem, inputs)
            assert compare(op, problem, inputs, launch()).passed, (data, variant)


GRADIENT_FAULTS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "a query sees the next key": lambda *t, causal: gradients(*t, causal=True, later=2),
    "without the mean": lambda *t, causal: gradients(*t, causal=causal, delta=torch.zeros_like),
    "the last tile of keys is dropped": lambda *t, causal: gradients(*t, causal=causal, keys=700 - 60),
    "a neighbour's queries": lambda q, k, v, do, causal: gradients(q.roll(1, 2), k, v, do, causal=causal),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("fault", GRADIENT_FAULTS)
def test_faults_of_gradients_are_refused(name: str, fault: str) -> None:
    op, causal = op_named(name), name.startswith("causal")
    if not causal and fault.startswith("a query"):
        return
    problem = op.problem({"b": 1, "s": 700, "hq": 2, "hk": 2, "d": 64}, "bf16", direction="backward")
    inputs = inputs_of(op, problem, 2)
    assert compare(op, problem, inputs, gradients(*inputs, causal=causal)).passed
    assert not compare(op, problem, inputs, GRADIENT_FAULTS[fault](*inputs, causal=causal)).passed


def test_query_heads_must_be_a_multiple_of_the_key_heads() -> None:
    with pytest.raises(BadField, match="multiple of the 3 key heads"):
        op_named("attention").problem({"b": 1, "s": 8, "hq": 8, "hk": 3, "d": 64}, "bf16")
