"""The bound of `attention_decode` accepts honest kernels that accumulate in fp32, and rejects what it is there to reject."""

from __future__ import annotations

import math

import pytest
import torch
from cases import odd_sizes
from checking import compare, inputs_of
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops import op_named
from kernelviz.ops.attention_decode.sizes import PAGE

OP, PAGED = op_named("attention_decode"), op_named("paged_attention_decode")
DTYPES = ("bf16", "fp16")
SIZES = (
    *odd_sizes(OP),
    {"b": 2, "l": 4096, "hq": 8, "hk": 2, "d": 128},
    {"b": 1, "l": 32768, "hq": 4, "hk": 1, "d": 64},
)
FAULT_SIZES = {"b": 4, "l": 517, "hq": 16, "hk": 2, "d": 128}


def flash(
    q_BHD: Tensor,
    k_BLHD: Tensor,
    v_BLHD: Tensor,
    *,
    tile: int = 64,
    splits: int = 1,
    tokens: int | None = None,
    rescaled: bool = True,
    parts_rescaled: bool = True,
    last_tile: bool = True,
    sums: torch.dtype = torch.float32,
) -> Tensor:
    """As an honest kernel computes it: scores in fp32, weights of a running maximum rounded to the format, sums in fp32, parts
    combined. The keywords plant faults."""
    b, hq, d = q_BHD.shape
    hk, length = k_BLHD.shape[2], k_BLHD.shape[1] if tokens is None else tokens
    q = q_BHD.float().view(b, hk, hq // hk, d)
    part = -(-length // splits)
    all_parts = []
    for first in range(0, length, part):
        top = q.new_full((*q.shape[:3], 1), -math.inf)
        total, o = torch.zeros_like(top), torch.zeros_like(q).to(sums)
        for begin in range(first, min(first + part, length), tile):
            end = min(begin + tile, first + part, length)
            if not last_tile and end == length and begin > first:
                break
            k, v = (t[:, begin:end].float().permute(0, 2, 1, 3) for t in (k_BLHD, v_BLHD))
            s = q @ k.transpose(-1, -2) * (1.4426950408889634 / math.sqrt(d))
            now = torch.maximum(top, s.amax(-1, keepdim=True))
            p, rescale = (s - now).exp2(), (top - now).exp2()
            total = total * rescale + p.sum(-1, keepdim=True)
            o = (o.float() * (rescale if rescaled else rescale.sign()) + p.to(q_BHD.dtype).float() @ v).to(sums)
            top = now
        all_parts.append((top, total, o.float()))
    top = torch.stack([t for t, _, _ in all_parts]).amax(0)
    weights = [(t - top).exp2() if parts_rescaled else torch.ones_like(t) for t, _, _ in all_parts]
    total = sum(w * n for w, (_, n, _) in zip(weights, all_parts, strict=True))
    o = sum(w * x for w, (_, _, x) in zip(weights, all_parts, strict=True))
    return (o / total).view(b, hq, d).to(q_BHD.dtype)


def problem_of(sizes: dict[str, int], dtype: str, data: str = "normal") -> Problem:
    return OP.problem(sizes, dtype, data=data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data", ["normal", "uniform", "outliers", "one_value"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_honest_kernels_are_accepted(sizes: dict[str, int], data: str, dtype: str) -> None:
    problem = problem_of(sizes, dtype, data)
    for seed in range(2):
        inputs = inputs_of(OP, problem, seed)
        for tile, splits in ((64, 1), (16, 3), (128, 7)):
            found = compare(OP, problem, inputs, flash(*inputs, tile=tile, splits=splits))
            assert found.passed, (seed, tile, splits, found.worst_of_bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_scores_are_accepted(dtype: str) -> None:
    problem = problem_of(FAULT_SIZES, dtype)
    q, k, v = inputs_of(OP, problem)
    q *= 8
    found = compare(OP, problem, (q, k, v), flash(q, k, v, splits=3))
    assert found.passed, found.worst_of_bound


FAULTS = {
    "the last token is left out": {"tokens": 516},
    "the last tile is left out": {"last_tile": False},
    "sums are not rescaled to a new maximum": {"rescaled": False},
    "parts are not rescaled to a common maximum": {"parts_rescaled": False, "splits": 5},
    "sums in bf16": {"sums": torch.bfloat16, "tile": 16},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", [*FAULTS])
def test_faults_are_rejected(fault: str, dtype: str) -> None:
    problem = problem_of(FAULT_SIZES, dtype)
    for seed in range(3):
        inputs = inputs_of(OP, problem, seed)
        assert compare(OP, problem, inputs, flash(*inputs, tile=16, splits=5)).passed
        assert not compare(OP, problem, inputs, flash(*inputs, **FAULTS[fault])).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_in_bf16_over_a_long_cache_are_rejected(dtype: str) -> None:
    problem = problem_of({"b": 1, "l": 8192, "hq": 8, "hk": 1, "d": 128}, dtype)
    inputs = inputs_of(OP, problem)
    assert compare(OP, problem, inputs, flash(*inputs)).passed
    assert not compare(OP, problem, inputs, flash(*inputs, sums=torch.bfloat16)).passed


def in_pages(inputs: tuple[Tensor, ...], length: int) -> tuple[Tensor, ...]:
    """q and both caches of `length` tokens, with the pages of each sequence in the order of the table."""
    q, k_pages, v_pages, table = inputs
    return q, *(pages[table.long()].flatten(1, 2)[:, :length] for pages in (k_pages, v_pages))


@pytest.mark.parametrize("dtype", DTYPES)
def test_another_token_of_a_page_is_rejected(dtype: str) -> None:
    """One token too few, one too many of the last page, and other pages than those of the table."""
    problem = PAGED.problem(FAULT_SIZES, dtype)
    length = FAULT_SIZES["l"]
    for seed in range(3):
        inputs = inputs_of(PAGED, problem, seed)
        assert compare(PAGED, problem, inputs, flash(*in_pages(inputs, length), splits=4)).passed
        for wrong in (length - 1, length + 1):
            assert not compare(PAGED, problem, inputs, flash(*in_pages(inputs, wrong))).passed
        q, k_pages, v_pages, table = inputs
        neighbour = (q, k_pages, v_pages, (table + 1) % len(k_pages))
        assert not compare(PAGED, problem, inputs, flash(*in_pages(neighbour, length))).passed


def test_the_block_table_is_a_permutation_of_all_pages() -> None:
    sizes = {"b": 3, "l": 33, "hq": 4, "hk": 2, "d": 64}
    *_, table = inputs_of(PAGED, PAGED.problem(sizes, "bf16"))
    assert table.shape == (3, 3)
    assert sorted(table.flatten().tolist()) == list(range(9))
    *_, table = inputs_of(PAGED, PAGED.problem(sizes, "bf16", data="sorted"))
    assert table.flatten().tolist() == list(range(9))
    assert PAGE == 16


def test_query_heads_that_are_no_multiple_are_refused() -> None:
    for op in (OP, PAGED):
        with pytest.raises(BadField, match=r"size hq.*multiple of the 2 key heads"):
            op.problem({"b": 1, "l": 3, "hq": 3, "hk": 2, "d": 64}, "bf16")


def test_slabs_of_the_reference_are_slabs_of_the_whole() -> None:
    for op in (OP, PAGED):
        problem = op.problem({"b": 5, "l": 37, "hq": 4, "hk": 2, "d": 64}, "bf16")
        given = zip(op.inputs, inputs_of(op, problem), strict=True)
        inputs = tuple(t if not t.is_floating_point() or s.as_stored else t.double() for s, t in given)
        whole = op.expected(problem, inputs)
        bounds = op.bound(problem, inputs, whole)
        assert whole[0].dtype == torch.float64
        for first, last in ((0, 2), (2, 5)):
            cut = tuple(t[first:last] if s.axes[0] == op.slab else t for s, t in zip(op.inputs, inputs, strict=True))
            piece = op.expected(problem, cut)
            torch.testing.assert_close(piece[0], whole[0][first:last])
            torch.testing.assert_close(op.bound(problem, cut, piece)[0], bounds[0][first:last])


def test_17_gb_of_cache_fit_beside_their_reference() -> None:
    sizes = {"b": 64, "l": 65536, "hq": 64, "hk": 8, "d": 128}
    for op in (OP, PAGED):
        problem = op.problem(sizes, "bf16")
        assert 17e9 < op.tensor_bytes(problem) < 18e9
        assert op.needed_bytes(problem) < 24e9
