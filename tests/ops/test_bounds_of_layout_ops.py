"""The bounds of transpose, of the ops that follow ids, and of rope accept honest arithmetic, and reject what they must."""

from collections.abc import Callable

import pytest
import torch
from cases import odd_sizes
from checking import bind, compare, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.measure.session.inputs import torch_dtype
from kernelviz.ops import Op, op_named

DTYPES = ("fp32", "fp16", "bf16")
EXACT = ("transpose", "embedding", "index_select", "gather")
INF = float("inf")
size = st.integers(1, 40)


def answers(op: Op, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The reference's answer, rounded once to the format of the inputs."""
    wide = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    return tuple(t.to(inputs[0].dtype) for t in op.reference(*wide))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_what_moves_elements_may_not_change_one(name: str, dtype: str) -> None:
    op = op_named(name)
    problem = op.problem(dict.fromkeys(op.axis_names, 37), dtype)
    inputs = inputs_of(op, problem)
    (right,) = answers(op, inputs)
    assert compare(op, problem, inputs, right).passed
    other = right.clone()
    other[36, 36] = torch.nextafter(right[36, 36], torch.tensor(INF, dtype=right.dtype))
    assert not compare(op, problem, inputs, other).passed
    assert not compare(op, problem, inputs, right.roll(1, 0)).passed
    assert not compare(op, problem, inputs, right.roll(1, 1)).passed


def test_a_square_matrix_that_is_not_turned_is_no_transpose() -> None:
    op = op_named("transpose")
    problem = op.problem({"m": 64, "n": 64}, "bf16")
    (x_MN,) = inputs_of(op, problem)
    assert not compare(op, problem, (x_MN,), x_MN.clone()).passed


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=10, deadline=None)
@given(drawn=st.tuples(size, size, size), ascending=st.booleans())
def test_every_torch_variant_moves_any_shape(name: str, drawn: tuple[int, int, int], ascending: bool) -> None:
    op = op_named(name)
    data = "sorted" if ascending and name != "transpose" else "normal"
    problem = op.problem(dict(zip(op.axis_names, drawn, strict=False)), "bf16", data=data)
    inputs = inputs_of(op, problem)
    for v in op.variants:
        if v.backend == "torch":
            assert compare(op, problem, inputs, bind(v, problem, inputs)()).passed, v.name
    if data == "sorted":
        assert torch.equal(inputs[1], inputs[1].sort().values)


@pytest.mark.parametrize("name", EXACT[1:])
def test_the_rows_that_are_counted_are_those_that_are_read(name: str) -> None:
    op = op_named(name)
    for sizes in ({"v": 40, "t": 7, "d": 3}, {"v": 7, "t": 40, "d": 3}, {"v": 5, "t": 5, "d": 3}):
        problem = op.problem(sizes, "bf16")
        _, ids_T = inputs_of(op, problem)
        read_bytes = ids_T.unique().numel() * 3 * 2 + ids_T.numel() * ids_T.element_size()
        assert op.cost_of(problem).read_bytes == read_bytes


def rope_in_fp32(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    def turned(x: Tensor) -> Tensor:
        a, b = x.float().unbind(2)
        c, s = cos.float()[:, None], sin.float()[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), 2).to(x.dtype)

    return turned(q), turned(k)


def rope_in_steps(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """Products and sums each rounded to the format of the tensors, as Llama's own code does it."""

    def turned(x: Tensor) -> Tensor:
        a, b = x.unbind(2)
        c, s = cos[:, None], sin[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), 2)

    return turned(q), turned(k)


def turned_back(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    return rope_in_fp32(q, k, cos, -sin)


def neighbours_paired(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """GPT-NeoX's other convention: pairs of neighbours instead of halves."""

    def swapped(x: Tensor, back: bool) -> Tensor:
        shape = x.shape
        flat = x.reshape(*shape[:2], -1)
        return (flat.unflatten(2, (2, -1)).mT if back else flat.unflatten(2, (-1, 2)).mT).reshape(shape)

    turned = rope_in_fp32(swapped(q, False), swapped(k, False), cos, sin)
    return tuple(swapped(t, True) for t in turned)


def keys_forgotten(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    return rope_in_fp32(q, k, cos, sin)[0], k.clone()


def tables_of_the_next_token(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    return rope_in_fp32(q, k, cos.roll(1, 0), sin.roll(1, 0))


def tables_in_eight_bits(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    def coarse(x: Tensor) -> Tensor:
        return (x.float() * 127).round().div(127).to(x.dtype)

    return rope_in_fp32(q, k, coarse(cos), coarse(sin))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("honest", [rope_in_fp32, rope_in_steps])
def test_honest_rotations_are_accepted(honest: Callable[..., tuple[Tensor, ...]], dtype: str) -> None:
    op = op_named("rope")
    for sizes in (*odd_sizes(op), {"t": 64, "hq": 8, "hk": 2, "p": 64}):
        problem = op.problem(sizes, dtype)
        for seed in range(3):
            inputs = inputs_of(op, problem, seed)
            assert compare(op, problem, inputs, honest(*inputs)).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "wrong", [turned_back, neighbours_paired, keys_forgotten, tables_of_the_next_token, tables_in_eight_bits]
)
def test_another_rotation_is_rejected(wrong: Callable[..., tuple[Tensor, ...]], dtype: str) -> None:
    op = op_named("rope")
    problem = op.problem({"t": 16, "hq": 4, "hk": 2, "p": 32}, dtype)
    inputs = inputs_of(op, problem)
    assert compare(op, problem, inputs, rope_in_fp32(*inputs)).passed
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_is_turned_back(dtype: str) -> None:
    """By autograd in float64; what is turned on in place of back is rejected."""
    op = op_named("rope")
    problem = op.problem({"t": 5, "hq": 3, "hk": 2, "p": 8}, dtype, direction="backward")
    inputs = inputs_of(op, problem)
    q, k, cos, sin, dq, dk = (t.double() for t in inputs)
    leaves = q.requires_grad_(), k.requires_grad_()
    wide = torch.autograd.grad(op.reference(*leaves, cos, sin), leaves, (dq, dk))
    assert compare(op, problem, inputs, tuple(t.to(torch_dtype(dtype)) for t in wide)).passed
    cos, sin, dq, dk = inputs[2:]
    assert compare(op, problem, inputs, turned_back(dq, dk, cos, sin)).passed
    assert not compare(op, problem, inputs, rope_in_fp32(dq, dk, cos, sin)).passed


def added(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.float().index_add(0, ids_T, src_TD.float()).to(x_VD.dtype)


def added_in_any_order(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    """As atomic additions come: the largest last, which is the worst for what is small."""
    order_T = src_TD.abs().sum(1).argsort()
    return added(x_VD, src_TD[order_T], ids_T[order_T])


def added_by_segments(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    """Sums of the rows first, x last."""
    return (torch.zeros_like(x_VD.float()).index_add(0, ids_T, src_TD.float()) + x_VD.float()).to(x_VD.dtype)


def one_row_forgotten(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    return added(x_VD, src_TD[1:], ids_T[1:])


def last_row_kept(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    """What a kernel does that adds without an atomic instruction."""
    y_VD = x_VD.clone()
    for i, row in zip(ids_T.tolist(), src_TD, strict=True):
        y_VD[i] = x_VD[i] + row
    return y_VD


def without_what_was_there(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Tensor:
    return added(torch.zeros_like(x_VD), src_TD, ids_T)


SUMS = (
    {"v": 5, "t": 257, "d": 64},
    {"v": 64, "t": 4096, "d": 8},
    {"v": 1, "t": 5000, "d": 3},
    {"v": 131, "t": 7, "d": 9},
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("honest", [added, added_in_any_order, added_by_segments])
@pytest.mark.parametrize("sizes", SUMS, ids=str)
def test_honest_sums_are_accepted(sizes: dict[str, int], honest: Callable[..., Tensor], dtype: str) -> None:
    op = op_named("scatter_add")
    problem = op.problem(sizes, dtype)
    for seed in range(5):
        inputs = inputs_of(op, problem, seed)
        assert compare(op, problem, inputs, honest(*inputs)).passed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [one_row_forgotten, last_row_kept, without_what_was_there])
def test_another_sum_is_rejected(wrong: Callable[..., Tensor], dtype: str) -> None:
    op = op_named("scatter_add")
    problem = op.problem(SUMS[0], dtype)
    inputs = inputs_of(op, problem)
    assert not compare(op, problem, inputs, wrong(*inputs)).passed


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_sums_that_are_rounded_at_every_addition_are_rejected_where_there_are_several(dtype: str) -> None:
    """As 16-bit atomic additions round them."""
    op = op_named("scatter_add")
    for sizes, right in ((SUMS[0], False), ({"v": 131, "t": 67, "d": 9}, True)):
        problem = op.problem(sizes, dtype)
        x_VD, src_TD, ids_T = inputs_of(op, problem)
        y_VD = x_VD.clone()
        for i, row in zip(ids_T.tolist(), src_TD, strict=True):
            y_VD[i] += row
        assert compare(op, problem, (x_VD, src_TD, ids_T), y_VD).passed is right


def test_sums_in_half_precision_show_in_fp32() -> None:
    op = op_named("scatter_add")
    problem = op.problem(SUMS[0], "fp32")
    x_VD, src_TD, ids_T = inputs_of(op, problem)
    assert not compare(op, problem, (x_VD, src_TD, ids_T), added(x_VD, src_TD.bfloat16(), ids_T)).passed
