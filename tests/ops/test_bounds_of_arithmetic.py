"""The bounds of add, mul and div accept honest arithmetic and reject what they should; what the published variants do.

Run as a script with TRITON_INTERPRET=1 it tries the Triton variants, interpreted, on what normal data never holds and in several
configurations, and prints one JSON line a case: {"case", "wrong"}.
"""

import itertools
from pathlib import Path

import pytest
import torch
from cases import WRONG
from checking import bind, checked, compare, inputs_of, reasons_of
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter_process import interpreted_lines, write_case
from torch import Tensor

from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import op_named
from kernelviz.ops.arithmetic.variants import rows_of
from kernelviz.ops.catalog.space import draw

DTYPES = ("fp32", "fp16", "bf16")
OPS = ("add", "mul", "div")
INF, NAN = float("inf"), float("nan")


def exactly(op: str, x_N: Tensor, y_N: Tensor) -> Tensor:
    """In float64, rounded once."""
    (wide_N,) = op_named(op).reference(x_N.double(), y_N.double())
    return wide_N.to(x_N.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["mul", "div"])
def test_a_result_is_rounded_once(name: str, dtype: str) -> None:
    op = op_named(name)
    problem = op.problem({"n": 4099}, dtype)
    for seed in range(10):
        x_N, y_N = inputs_of(op, problem, seed)
        z_N = exactly(name, x_N, y_N)
        assert compare(op, problem, (x_N, y_N), z_N).passed
        if (name, dtype) != ("div", "fp32"):
            # The next number beyond the right one is wrong already.
            assert not compare(op, problem, (x_N, y_N), torch.nextafter(z_N, torch.full_like(x_N, INF))).passed


def stepped(x_N: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        x_N = torch.nextafter(x_N, torch.full_like(x_N, INF))
    return x_N


def test_an_fp32_quotient_may_be_two_ulp_off_and_no_more() -> None:
    """What PTX promises of div.full; 2 ulp more than the rounding, and 6 ulp are more than 5.01 u of any number."""
    op = op_named("div")
    problem = op.problem({"n": 4099}, "fp32")
    for seed in range(10):
        x_N, y_N = inputs_of(op, problem, seed)
        z_N = exactly("div", x_N, y_N)
        assert compare(op, problem, (x_N, y_N), stepped(z_N, 2)).passed
        assert not compare(op, problem, (x_N, y_N), stepped(z_N, 6)).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_half_precision_inside_is_rejected(name: str, dtype: str) -> None:
    op = op_named(name)
    problem = op.problem({"n": 4099}, dtype)
    x_N, y_N = inputs_of(op, problem)
    inside = torch.bfloat16 if dtype == "fp16" else torch.float16
    z_N = exactly(name, x_N.to(inside), y_N.to(inside)).to(x_N.dtype)
    # bf16 numbers of normal size are fp16 numbers, too: then the rounding to fp16 in between is what must show.
    if dtype == "bf16":
        z_N = exactly(
            name, x_N, (1 / y_N.half()).bfloat16() if name == "div" else y_N.to(torch.float8_e4m3fn).bfloat16()
        )
    assert not compare(op, problem, (x_N, y_N), z_N).passed


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_quotient_of_fast_mathematics_is_rejected(dtype: str) -> None:
    """PTX's div.approx gives 0 for divisors between 2^126 and 2^128; div.full does not."""
    op = op_named("div")
    x_N = torch.tensor([2.0**20, -(2.0**30), 3.0]).to(getattr(torch, {"fp32": "float32", "bf16": "bfloat16"}[dtype]))
    y_N = torch.full_like(x_N, 1.5 * 2.0**126)
    problem = op.problem({"n": 3}, dtype)
    assert compare(op, problem, (x_N, y_N), exactly("div", x_N, y_N)).passed
    assert not compare(op, problem, (x_N, y_N), torch.zeros_like(x_N)).passed


SPECIAL = (0.0, -0.0, 1.0, -1.0, 3.0, INF, -INF, NAN, 2.0**-14, 65504.0, -65504.0)


def special(dtype: str) -> tuple[Tensor, Tensor]:
    """Every pair of special numbers, followed by ordinary numbers."""
    kind = getattr(torch, {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}[dtype])
    pairs = torch.tensor(list(itertools.product(SPECIAL, SPECIAL)), dtype=torch.float64)
    pairs = torch.cat([pairs, torch.randn((1000, 2), generator=torch.Generator().manual_seed(0), dtype=torch.float64)])
    both = pairs.to(kind)
    return both[:, 0].clone(), both[:, 1].clone()


def wrong_on_special(name: str, variant: str, dtype: str) -> str:
    """What is wrong with the results of every pair of special numbers, or nothing."""
    op, (x_N, y_N) = op_named(name), special(dtype)
    if name != "div" and dtype == "fp16":
        # Sums and products that overflow fp16 have no reference there.
        exact_N = op.reference(x_N.double(), y_N.double())[0]
        keep = ~(torch.isfinite(exact_N) & (exact_N.abs() > 65504))
        x_N, y_N = x_N[keep].clone(), y_N[keep].clone()
    problem = op.problem({"n": x_N.numel()}, dtype)
    (z_N,) = as_tuple(bind(op.variant_named(variant), problem, (x_N, y_N))())
    # A NaN may have the very bits that stand for "never written".
    return reasons_of(compare(op, problem, (x_N, y_N), z_N.masked_fill(z_N.isnan(), NAN)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(
    "variant", ["torch_eager", pytest.param("torch_compile", marks=pytest.mark.xdist_group("inductor"))]
)
def test_zeros_infinities_and_nan(variant: str, name: str, dtype: str) -> None:
    assert wrong_on_special(name, variant, dtype) == ""


def test_a_wrong_answer_for_a_zero_divisor_is_rejected() -> None:
    op = op_named("div")
    x_N, y_N = torch.tensor([1.0, -1.0, 0.0, 2.0]), torch.tensor([0.0, 0.0, 0.0, INF])
    problem = op.problem({"n": 4}, "fp32")
    right = torch.tensor([INF, -INF, NAN, 0.0])
    assert compare(op, problem, (x_N, y_N), right).passed
    for at, other in ((0, -INF), (0, 3.4e38), (1, NAN), (2, 0.0), (2, INF), (3, 1e-30)):
        wrong = right.clone()
        wrong[at] = other
        assert not compare(op, problem, (x_N, y_N), wrong).passed, (at, other)


def test_fp16_overflows_where_the_format_ends_and_nowhere_else() -> None:
    op = op_named("div")
    x_N = torch.tensor([65504.0, -65504.0, 65504.0, 60000.0], dtype=torch.float16)
    y_N = torch.tensor([0.5, 0.25, 1.0, 1.0], dtype=torch.float16)
    problem = op.problem({"n": 4}, "fp16")
    right = torch.tensor([INF, -INF, 65504.0, 60000.0], dtype=torch.float16)
    assert compare(op, problem, (x_N, y_N), right).passed
    for at, other in ((0, 65504.0), (0, -INF), (1, INF), (2, INF), (3, INF)):
        wrong = right.clone()
        wrong[at] = other
        assert not compare(op, problem, (x_N, y_N), wrong).passed, (at, other)


@pytest.mark.parametrize("name", OPS)
def test_bound_and_reference_of_slabs_are_slabs_of_the_whole(name: str) -> None:
    """The gate computes large references in pieces along the slab axis."""
    op = op_named(name)
    problem = op.problem({"n": 12}, "fp32")
    inputs = tuple(t.double() for t in inputs_of(op, problem))
    (whole,) = op.reference(*inputs)
    (bound,) = op.bound(problem, inputs, (whole,))
    for part in (slice(0, 5), slice(5, 12)):
        cut = tuple(t[part] for t in inputs)
        torch.testing.assert_close(op.reference(*cut)[0], whole[part])
        torch.testing.assert_close(op.bound(problem, cut, op.reference(*cut))[0], bound[part])


@given(n=st.integers(1, 3000), seed=st.integers(0, 2**16), name=st.sampled_from(OPS), dtype=st.sampled_from(DTYPES))
@settings(max_examples=20, deadline=None)
def test_eager_is_right_at_any_length(n: int, seed: int, name: str, dtype: str) -> None:
    op = op_named(name)
    accuracy = checked(op, op.variant_named("torch_eager"), op.problem({"n": n}, dtype), seed)
    assert accuracy.passed, accuracy.reasons


@pytest.mark.parametrize("variant", sorted(v for o, v in WRONG if o == "add"))
def test_a_published_variant_does_not_add_in_fp32(variant: str) -> None:
    op = op_named("add")
    assert not checked(op, op.variant_named(variant), op.problem({"n": 4096}, "fp32")).passed


def test_the_published_layout_repeats_rows_that_overlap() -> None:
    op = op_named("add")
    x_N, y_N = torch.arange(10000.0), torch.zeros(10000)
    (z_N,) = as_tuple(op.variant_named("torch_aligned").bind(x_N, y_N)())
    # Row i of the 100 × 100 matrix begins at element 32 i instead of 100 i.
    assert z_N.view(100, 100)[:, 0].tolist() == [32.0 * i for i in range(100)]


@given(n=st.integers(1, 10**8))
@settings(max_examples=20, deadline=None)
def test_a_matrix_of_n_elements_has_n_elements(n: int) -> None:
    rows = rows_of(n)
    assert n % rows == 0
    assert rows * rows <= n


@pytest.mark.parametrize("name", OPS)
def test_a_tuner_has_a_hundred_configurations_to_try(name: str) -> None:
    op = op_named(name)
    problem = op.problem({"n": 2**20}, "fp32")
    found = draw(op, "triton_tuned", problem)
    assert (found.space, found.admitted) == (252, 216)
    assert all(c["block"] >= 32 * c["warps"] for c in found.configurations)
    refused = op.variant_named("triton_tuned[block=128,warps=8]")
    assert "256 threads for 128 elements" in repr(refused.refuses(problem))


CONFIGURATIONS = (
    {},
    {"block": 128, "warps": 1, "parts": 4, "evict": 1},
    {"block": 8192, "warps": 32, "parts": 2, "evict": 1},
    {"block": 4096, "parts": 4},
)


def main() -> None:
    for name, dtype in itertools.product(OPS, ("fp32", "fp16")):
        for variant in ("triton_block", "triton_adaptive", "triton_tuned"):
            write_case(f"{name} {variant} {dtype} special", wrong_on_special(name, variant, dtype))
    for number, configuration in enumerate(CONFIGURATIONS):
        op = op_named("add")
        problem = op.problem({"n": 20011}, "fp32")
        inputs = inputs_of(op, problem)
        found = compare(op, problem, inputs, op.variant_named("triton_tuned").bind(*inputs, **configuration)())
        write_case(f"configuration {number}", reasons_of(found))


@pytest.mark.xdist_group("interpreter")
def test_triton_kernels_on_special_values_and_in_other_configurations() -> None:
    pytest.importorskip("triton")
    found = {line["case"]: line["wrong"] for line in interpreted_lines(Path(__file__))}
    assert len(found) == 18 + len(CONFIGURATIONS)
    assert {case: wrong for case, wrong in found.items() if wrong} == {}


if __name__ == "__main__":
    main()
