"""Errors by element and facts of tensors against plain loops over every element, for all kinds of shapes, layouts and pieces."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import pytest
import torch
from torch import Tensor

from kernelviz.core.dtypes import DTYPES
from kernelviz.core.inspection import OCTAVES, Element, OutputErrors
from kernelviz.core.problem import Problem
from kernelviz.measure.gate import check, element_errors
from kernelviz.measure.gate.check import Reference, still_poisoned
from kernelviz.measure.gate.element_errors import errors_of
from kernelviz.measure.inspection import tensor_facts
from kernelviz.measure.inspection.tensor_facts import facts_of, pieces
from kernelviz.measure.timing.host import poison, unwritten
from kernelviz.ops import TensorSpec, catalogue

ALLOWED = 0.125
AXES = ("a", "b", "c", "d")
SHAPES = [(1,), (63,), (4097,), (9000,), (3, 5), (64, 64), (130, 70), (1, 9000), (9000, 1), (3, 65, 9), (2, 3, 4, 5)]


def problem_of(shape: tuple[int, ...], *, slab: bool = False) -> tuple[Reference, Tensor]:
    """A reference of zeros to eights, every error allowed up to ALLOWED; and its input."""
    axes = AXES[: len(shape)]
    spec = TensorSpec(name="x", axes=axes)
    op = dataclasses.replace(
        catalogue()["copy"],
        name="made",
        inputs=(spec,),
        outputs=(dataclasses.replace(spec, name="y"),),
        reference=lambda x: (x,),
        bound=lambda problem, inputs, outputs: (torch.full_like(outputs[0], ALLOWED),),
        slab=axes[0] if slab else None,
    )
    x = torch.arange(math.prod(shape), dtype=torch.float32).remainder_(8).reshape(shape)
    sizes = dict(zip(axes, shape, strict=True))
    return Reference(op, Problem(op="made", sizes=sizes, dtype="fp32"), (x,)), x


def spoilt(x: Tensor, seed: int) -> Tensor:
    """Errors of every kind, at places that only the seed knows."""
    got = x.clone()
    flat = got.view(-1)
    chance = torch.Generator().manual_seed(seed)
    for kind in range(5):
        for at in torch.randint(flat.numel(), (1 + flat.numel() // 500,), generator=chance).tolist():
            match kind:
                case 0:
                    flat[at] += ALLOWED / 2  # allowed
                case 1:
                    flat[at] += ALLOWED * 3
                case 2:
                    flat[at] = math.inf
                case 3:
                    flat[at] = float("nan")
                case _:
                    flat.view(torch.int32)[at] = -1  # as it was filled before the call
    return got


def by_hand(x: Tensor, got: Tensor) -> dict[tuple[int, ...], tuple[float, bool]]:
    """Share of the allowed error and whether it was written, by index."""
    found = {}
    lost = got.contiguous().view(torch.int32) == -1
    for index in itertools.product(*(range(s) for s in x.shape)):
        value = float(got[index])
        share = abs(value - float(x[index])) / ALLOWED if math.isfinite(value) else math.inf
        found[index] = (share, bool(lost[index]))
    return found


def cell_of(errors: OutputErrors, index: tuple[int, ...]) -> int:
    grid = errors.map
    if grid.wraps:
        return index[0] // grid.block[1]
    return index[-2] // grid.block[0] * grid.columns + index[-1] // grid.block[1]


@pytest.mark.parametrize(
    ("shape", "piece", "slab_bytes"),
    [
        *((shape, *cut) for shape in SHAPES for cut in ((2**22, 2**28), (40, 2**28), (40, 8 * 50))),
        *((shape, 7, 8 * 7) for shape in SHAPES if math.prod(shape) < 5000),
    ],
)
def test_errors_are_those_of_a_loop_over_every_element(
    shape: tuple[int, ...], piece: int, slab_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the output is cut into slabs and pieces."""
    monkeypatch.setattr(element_errors, "PIECE", piece)
    monkeypatch.setattr(check, "SLAB_BYTES", slab_bytes)
    reference, x = problem_of(shape, slab=slab_bytes < 2**28)
    got = spoilt(x, seed=len(shape) + piece)
    (errors,) = errors_of(reference, (got,))
    told = by_hand(x, got)
    wrong = {i: t for i, t in told.items() if t[0] > 1}
    assert errors.elements == len(told)
    assert errors.wrong == len(wrong)
    assert errors.not_finite == sum(math.isinf(s) for s, _ in told.values()) == errors.counts.beyond
    assert errors.unwritten == sum(lost for _, lost in told.values())
    assert errors.first_wrong == tuple(min(i[d] for i in wrong) for d in range(len(shape)))
    assert errors.last_wrong == tuple(max(i[d] for i in wrong) for d in range(len(shape)))
    assert errors.counts.exact == sum(s == 0 for s, _ in told.values())
    assert errors.counts.octaves[OCTAVES - 1] == sum(s == 0.5 for s, _ in told.values())
    assert errors.counts.octaves[OCTAVES + 2] == sum(2 < s <= 4 for s, _ in told.values())
    order = sorted(wrong, key=lambda i: (-wrong[i][0], i))
    assert [(e.share, e.unwritten) for e in errors.worst[: len(order)]] == [
        (None if math.isinf(wrong[i][0]) else wrong[i][0], wrong[i][1]) for i in order[:10]
    ]
    beyond = [i for i in order if math.isinf(wrong[i][0])][:10]
    assert [e.index for e in errors.worst[: len(beyond)]] == beyond
    grid = errors.map
    assert grid.rows <= 64
    assert grid.columns <= 64
    cells: dict[int, list[tuple[float, bool]]] = {}
    for index, fact in told.items():
        cells.setdefault(cell_of(errors, index), []).append(fact)
    assert sorted(cells) == list(range(len(grid.shares)))
    for cell, facts in cells.items():
        most = max(s for s, _ in facts)
        assert grid.shares[cell] == (None if math.isinf(most) else most)
        assert grid.wrong[cell] == sum(s > 1 for s, _ in facts)
        assert grid.unwritten[cell] == sum(lost for _, lost in facts)


def test_a_single_number_is_an_output_too() -> None:
    reference, x = problem_of(())
    (errors,) = errors_of(reference, (x + 1,))
    assert (errors.elements, errors.wrong, errors.first_wrong) == (1, 1, ())
    assert errors.worst[0].index == ()
    assert errors.map.shares == (8.0,)


def test_a_strided_output_is_compared_element_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_errors, "PIECE", 30)
    reference, x = problem_of((20, 12))
    turned = x.t().contiguous().t()
    turned[7, 3] += 1
    assert not turned.is_contiguous()
    (errors,) = errors_of(reference, (turned,))
    assert (errors.wrong, errors.worst[0].index) == (1, (7, 3))
    expected = Element(
        index=(7, 3), got=float(x[7, 3]) + 1, expected=float(x[7, 3]), error=1.0, allowed=ALLOWED, share=8.0
    )
    assert errors.worst[0] == expected


def test_nan_and_infinity_agree_with_a_reference_that_has_them_and_no_bound_passes_what_is_exact() -> None:
    reference, x = problem_of((8,))
    x[0], x[1], x[2] = float("nan"), math.inf, -math.inf
    assert errors_of(reference, (x.clone(),))[0].wrong == 0
    other = x.clone()
    other[0], other[1], other[2] = 1.0, -math.inf, -math.inf
    (errors,) = errors_of(reference, (other,))
    assert (errors.wrong, errors.not_finite) == (2, 2)
    assert [(e.got, e.expected) for e in errors.worst] == [(1.0, "NaN"), ("-Inf", "+Inf")]
    exact = dataclasses.replace(reference.op, bound=lambda p, i, o: (torch.zeros_like(o[0]),))
    (errors,) = errors_of(Reference(exact, reference.problem, reference.inputs), (x.clone(),))
    assert errors.wrong == 0
    x2 = x.clone()
    x2[5] += 1e-6
    (errors,) = errors_of(Reference(exact, reference.problem, reference.inputs), (x2,))
    assert (errors.wrong, errors.worst_of_bound, errors.not_finite, errors.worst[0].share) == (1, None, 0, None)
    assert errors.worst[0].error == pytest.approx(1e-6, rel=0.5)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp64", "int64"])
@pytest.mark.parametrize("piece", [2**22, 9])
def test_facts_of_a_tensor(dtype: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_facts, "PIECE", piece)
    monkeypatch.setattr(pieces, "__defaults__", (piece,))
    wide = torch.arange(-50, 50, dtype=torch.float64).reshape(4, 25)
    tensor = wide.to(getattr(torch, DTYPES[dtype].torch_name))
    found = facts_of("t", "input", tensor)
    assert (found.dtype, found.shape, found.strides, found.elements) == (dtype, (4, 25), (25, 1), 100)
    assert (found.minimum, found.maximum, found.mean, found.zeros, found.nan) == (-50, 49, -0.5, 1, 0)
    assert found.deviation == pytest.approx(float(wide.std(correction=0)), rel=1e-14)
    assert found.histogram is not None
    assert sum(found.histogram.counts) == 100
    assert (len(found.histogram.counts), found.histogram.low, found.histogram.high) == (64, -50, 49)
    turned = facts_of("t", "input", tensor.t())
    assert (turned.shape, turned.strides, turned.contiguous) == ((25, 4), (1, 25), False)
    assert (turned.mean, turned.deviation, turned.histogram) == (found.mean, found.deviation, found.histogram)


def test_counts_leave_the_finite_values_alone() -> None:
    tensor = torch.tensor([1.0, 3.0, float("nan"), math.inf, -math.inf, -0.0, math.inf])
    found = facts_of("t", "output", tensor)
    assert (found.nan, found.positive_infinity, found.negative_infinity, found.zeros) == (1, 2, 1, 1)
    assert (found.minimum, found.maximum, found.mean) == (0, 3, pytest.approx(4 / 3))
    nothing = facts_of("t", "output", torch.full((3,), float("nan")))
    assert (nothing.minimum, nothing.mean, nothing.histogram, nothing.unwritten) == (None, None, None, 0)
    poisoned = torch.full((3,), -1, dtype=torch.int32).view(torch.float32)
    assert facts_of("t", "output", poisoned).unwritten == 3
    same = facts_of("t", "input", torch.full((5,), 2.5))
    assert same.histogram is not None
    assert (same.histogram.low, same.histogram.high, same.histogram.counts, same.deviation) == (2.5, 2.5, (5,), 0)
    far = facts_of("t", "input", torch.tensor([-1.7e308, 1.7e308], dtype=torch.float64))
    assert (far.histogram, far.deviation, far.maximum) == (
        None,
        None,
        1.7e308,
    )  # beyond float64 is unknown, not infinite


def test_memory_is_told_as_it_is() -> None:
    whole = torch.zeros(1024)
    part = whole[1:9]
    found = facts_of("part", "output", part, inputs={"whole": whole, "other": torch.zeros(3)})
    assert found.alignment_bytes == 4
    assert found.aliases == ("whole",)
    copy = facts_of("copy", "output", part.clone(), of=part, inputs={"whole": whole})
    assert (copy.alignment_bytes, copy.aliases) == (4, ("whole",))
    assert facts_of("none", "input", torch.zeros(0)).alignment_bytes is None


@pytest.mark.parametrize("shape", [(), (1,), (10,), (3, 7), (2, 3, 5), (1, 20), (20, 1)])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_pieces_hold_every_element_in_order(shape: tuple[int, ...], most: int) -> None:
    tensor = torch.arange(math.prod(shape)).reshape(shape)
    for given in (tensor, tensor.reshape(shape[::-1]).permute(tuple(range(len(shape)))[::-1])):
        found = list(pieces(given, most))
        assert max(p.numel() for p in found) <= most
        assert torch.cat(found).tolist() == given.reshape(-1).tolist()


SPECIAL = (0.0, -0.0, 1.5, -8.0, 1e-30, 3e38, math.inf, -math.inf, math.nan)
BOUNDS = (0.0, -0.0, 1e-3, 0.5, math.inf, math.nan)


def compared_by_hand(got: Tensor, expected: Tensor, bound: Tensor) -> tuple[float, float, float, float, int]:
    """Squared error, squared reference, largest error, largest share of the bound, and how many are not finite as expected."""
    facts = [0.0, 0.0, 0.0, 0.0]
    not_finite = 0
    for value, right, allowed in zip(*(t.double().reshape(-1).tolist() for t in (got, expected, bound)), strict=True):
        if not (math.isfinite(value) and math.isfinite(right)):
            not_finite += value != right and not (math.isnan(value) and math.isnan(right))
            continue
        error = abs(value - right)
        share = 0.0 if error == 0 or math.isnan(allowed) else math.inf if allowed == 0 else error / allowed
        facts = [facts[0] + error**2, facts[1] + right**2, max(facts[2], error), max(facts[3], share)]
    return (*facts, not_finite)


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("piece", [7, 1000])
def test_the_gate_compares_as_loops_do(
    special: bool, dtype: torch.dtype, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an element that is not finite, or has no bound, lies beside others, and for a bound that rows share."""
    monkeypatch.setattr(check, "PROCESSOR_PIECE", piece)
    chance = torch.Generator().manual_seed(piece)
    for rows, columns in ((1, 1), (3, 5), (9, 13), (0, 4), (31, 2)):
        shape = (rows, columns)

        def chosen(values: tuple[float, ...], size: tuple[int, ...] = shape) -> Tensor:
            at = torch.randint(len(values), size, generator=chance)
            return torch.tensor(values, dtype=torch.float64)[at]

        integers = dtype == torch.int64
        right = chosen(SPECIAL[:6] if integers or not special else SPECIAL).clamp(
            -1e18 if integers else -math.inf, 1e18
        )
        expected = right.to(dtype) if integers else right
        off = chosen((0.0, 0.0, 0.25, -2.0))
        got = (right + off).to(dtype)
        if special and not integers and rows:
            got[0, 0] = chosen(SPECIAL, (1,))[0]
        for bound in (chosen(BOUNDS), chosen(BOUNDS, (rows, 1)), chosen(BOUNDS, (1,)), torch.zeros(())):
            comparison = check.Comparison()
            comparison._add(got, expected, bound.double())
            found = (
                *(comparison.error_squared, comparison.reference_squared, comparison.max_abs),
                *(comparison.worst, comparison.not_finite),
            )
            assert found == pytest.approx(compared_by_hand(got, expected, bound.expand(shape)), rel=1e-12)


@pytest.mark.parametrize(("got", "expected"), [((0,), (5,)), ((2, 3), (3, 2)), ((1,), (5,)), ((4,), (8,))])
def test_the_gate_compares_only_equal_shapes(
    got: tuple[int, ...], expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "PROCESSOR_PIECE", 2)
    with pytest.raises(ValueError, match=re.escape(f"an output of {got} cannot be compared with one of {expected}")):
        check.Comparison()._add(torch.zeros(got), torch.zeros(expected, dtype=torch.float64), torch.zeros(()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64], ids=str)
def test_every_element_is_poisoned_whatever_the_strides_of_an_axis_of_one_element(dtype: torch.dtype) -> None:
    shapes = (((5, 1), (1, 5)), ((5, 1), (1, 1)), ((), ()), ((1,), (5,)), ((1, 1), (5, 7)), ((0, 3), (3, 1)))
    for tensor in (torch.empty_strided(shape, strides, dtype=dtype) for shape, strides in shapes):
        assert tensor.is_contiguous()
        poison(tensor)
        assert still_poisoned(tensor).all()
        assert unwritten(tensor) == tensor.numel()
