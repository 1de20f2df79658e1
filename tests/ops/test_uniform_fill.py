"""What the gate of `uniform_fill` proves, and its kernels by fibers of the processor: known answers, each element's bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from checking import compare, inputs_of
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernelviz.core.result import Accuracy
from kernelviz.ops import op_named
from kernelviz.ops.uniform_fill import cuda
from kernelviz.ops.uniform_fill.formats import bits_of

KINDS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
OP = op_named("uniform_fill")
N = 2**17 + 5


def judged(y_N: Tensor) -> Accuracy:
    dtype = next(name for name, kind in KINDS.items() if kind == y_N.dtype)
    problem = OP.problem({"n": y_N.numel()}, dtype)
    return compare(OP, problem, inputs_of(OP, problem), y_N)


def cut(y_N: Tensor, dtype: torch.dtype) -> Tensor:
    """fp32 numbers as the multiples of the format's step below them."""
    steps = 2 ** bits_of(torch.empty(0, dtype=dtype))
    return ((y_N * steps).floor() / steps).to(dtype)


def rounded_but_for_one(y_N: Tensor, dtype: torch.dtype) -> Tensor:
    """As torch draws on a GPU: rounded to the format, and 0 where that gives 1."""
    near_N = y_N.to(dtype)
    return near_N.where(near_N != 1, 0.0)


def drawn(y_N: Tensor, dtype: torch.dtype) -> Tensor:
    """As torch draws on a processor."""
    return torch.rand(y_N.numel(), dtype=dtype)


@pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("honest", [cut, rounded_but_for_one, drawn])
def test_honest_numbers_are_accepted(honest: Callable[[Tensor, torch.dtype], Tensor], dtype: torch.dtype) -> None:
    for n in (1, 2, 7, 63, 65, 1021, N):
        for seed in range(3):
            torch.manual_seed(seed)
            found = judged(honest(torch.rand(n), dtype))
            assert found.passed, (n, seed, found.reasons)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_bias_of_rounding_is_accepted_however_many_numbers_show_it(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    assert judged(rounded_but_for_one(torch.rand(2**24), dtype)).passed


def rounded(y_N: Tensor) -> Tensor:
    """Some become 1. What torch.compile makes of torch.rand in half precision."""
    return y_N


def mirrored(y_N: Tensor) -> Tensor:
    """From above 0 to 1 (a zero is among the first numbers of 2^-11)."""
    return 1 - (y_N * 256).floor() / 256


def half_of_the_range(y_N: Tensor) -> Tensor:
    return y_N / 2


def squared(y_N: Tensor) -> Tensor:
    return y_N * y_N


def too_few_bits(y_N: Tensor) -> Tensor:
    return (y_N * 64).floor() / 64


def one_number(y_N: Tensor) -> Tensor:
    return y_N[:1].expand_as(y_N).contiguous()


def in_order(y_N: Tensor) -> Tensor:
    return y_N.sort().values


def evenly_spaced(y_N: Tensor) -> Tensor:
    return torch.arange(y_N.numel()) / y_N.numel()


def vectors_share_a_number(y_N: Tensor) -> Tensor:
    return y_N[: -(-y_N.numel() // 4)].repeat_interleave(4)[: y_N.numel()]


def blocks_begin_anew(y_N: Tensor) -> Tensor:
    return y_N[:4096].repeat(-(-y_N.numel() // 4096))[: y_N.numel()]


def neighbours_are_opposite(y_N: Tensor) -> Tensor:
    pairs = y_N[: -(-y_N.numel() // 2)]
    return torch.stack([pairs, (pairs + 0.5) % 1], dim=1).flatten()[: y_N.numel()]


def a_part_is_zero(y_N: Tensor) -> Tensor:
    y_N[-2048:] = 0
    return y_N


def one_is_negative(y_N: Tensor) -> Tensor:
    y_N[4097] = -0.25
    return y_N


def one_is_not_a_number(y_N: Tensor) -> Tensor:
    y_N[4097] = float("nan")
    return y_N


WRONG = [
    half_of_the_range,
    squared,
    too_few_bits,
    one_number,
    in_order,
    evenly_spaced,
    vectors_share_a_number,
    blocks_begin_anew,
    neighbours_are_opposite,
    a_part_is_zero,
    one_is_negative,
    one_is_not_a_number,
    mirrored,
]


@pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("wrong", WRONG)
def test_other_numbers_are_rejected(wrong: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    assert not judged(wrong(cut(torch.rand(N), dtype).float()).to(dtype)).passed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_that_are_rounded_to_one_are_rejected(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    assert not judged(torch.rand(N).to(dtype)).passed


def test_half_precision_in_fp32_is_rejected() -> None:
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16):
        assert not judged(torch.rand(N, dtype=dtype).float()).passed


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5000), seed=st.integers(0, 1000), dtype=st.sampled_from(sorted(KINDS)))
def test_chance_alone_is_never_found_wrong(n: int, seed: int, dtype: str) -> None:
    torch.manual_seed(seed)
    found = judged(torch.rand(n, dtype=KINDS[dtype]))
    assert found.passed, found.reasons


def philox(index: int, seed: int, rounds: int) -> tuple[int, int, int, int]:
    """Philox 4x32 in Python."""
    mask = 2**32 - 1
    c, low, high = (index & mask, index >> 32, 0, 0), seed & mask, seed >> 32
    for _ in range(rounds):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = (q >> 32) ^ c[1] ^ low, q & mask, (p >> 32) ^ c[3] ^ high, p & mask
        low, high = (low + 0x9E3779B9) & mask, (high + 0xBB67AE85) & mask
    return c


def test_our_philox_gives_the_known_answers_of_its_authors() -> None:
    """Random123, tests/kat_vectors."""
    assert philox(0, 0, 10) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox(0, 0, 7) == (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)


def filled(
    emulator: Emulator, kernel: str, dtype: torch.dtype, n: int, rounds: int, mode: Mode, text: str | None = None
) -> Tensor:
    """What a launch with the seed 2^32 + 5 leaves."""
    like_1 = torch.empty(1, dtype=dtype)
    program = emulator.program(cuda.SOURCE, ("fill_scalar", "fill_vec16"), cuda.defines(like_1, rounds), text=text)
    each = 1 if kernel == "fill_scalar" else cuda.elements_of_call(bits_of(like_1))
    out = Output(1, n, dtype)
    grid = Grid(blocks=-(-n // (each * cuda.THREADS)), threads=cuda.THREADS)
    size = n - 1 if kernel == "fill_scalar" else n
    assert program.run([out.matrix, size, 2**32 + 5], grid, mode, kernel=kernel) == ""
    assert out.guard_is_unchanged()
    return out.matrix[0].clone()


def by_hand(kernel: str, dtype: torch.dtype, n: int, rounds: int) -> Tensor:
    """The same numbers in Python: which call of Philox, and which of its bits, each element takes."""
    bits = bits_of(torch.empty(0, dtype=dtype))
    each = cuda.elements_of_call(bits)
    slot_bits, width = 128 // each, 16 // dtype.itemsize
    values = []
    for i in range(n):
        call, slot = i, 0
        if kernel == "fill_vec16":
            block, rest = divmod(i, each * cuda.THREADS)
            vector, inside = divmod(rest, width)
            k, thread = divmod(vector, cuda.THREADS)
            call, slot = block * cuda.THREADS + thread, k * width + inside
        word = philox(call, 2**32 + 5, rounds)[slot * slot_bits // 32] << (slot * slot_bits % 32) & (2**32 - 1)
        values.append((word >> (32 - bits)) / 2**bits)
    return torch.tensor(values, dtype=torch.float64).to(dtype)


@needs_compiler
@pytest.mark.parametrize(("kernel", "rounds"), [("fill_scalar", 10), ("fill_vec16", 10), ("fill_vec16", 7)])
@pytest.mark.parametrize("dtype", KINDS.values(), ids=KINDS)
def test_each_element_takes_its_bits(dtype: torch.dtype, kernel: str, rounds: int, emulator: Emulator) -> None:
    for mode, n in zip(MODES, (7, 4099), strict=True):
        y_N = filled(emulator, kernel, dtype, n, rounds, mode)
        assert torch.equal(y_N, by_hand(kernel, dtype, n, rounds))
        assert judged(y_N).passed


MISTAKES = {
    "all blocks have one counter": ("(long long)blockIdx.x * 256 + threadIdx.x;", "threadIdx.x;"),
    "all elements take the same bits": ("words[slot * SLOT / 32] << (slot * SLOT % 32)", "words[0]"),
    "numbers of more bits are rounded": ("number(word >> (32 - BITS))", "static_cast<ELEMENT>(word * 2.3283064e-10f)"),
    "the end is not written": ("if (first + j < n)", "if (false)"),
}


@needs_compiler
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_kernel_is_found(mistake: str, emulator: Emulator) -> None:
    before, after = MISTAKES[mistake]
    text = cuda.SOURCE.read_text()
    assert before in text
    y_N = filled(emulator, "fill_vec16", torch.bfloat16, 65539, 10, MODES[0], text.replace(before, after))
    assert not judged(y_N).passed
