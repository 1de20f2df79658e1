"""Kernels of `rope` by fibers of the processor, out of place and in place, and planted mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from emulator import MODES, Emulator, Grid, Mode, Output, needs_compiler
from rows_on_processor import text_of
from torch import Tensor

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.rope import cuda, staged
from kernelviz.ops.rope.reference import rotated

pytestmark = needs_compiler
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
SHAPES = (
    (1, 1, 1, 1),
    (7, 3, 1, 5),
    (2, 5, 2, 64),
    (3, 2, 2, 40),
    (5, 3, 4, 33),
    (1, 7, 6, 104),
    (5, 2, 1, 2),
    (3, 1, 3, 4),
)
"""Tokens, query heads, key heads, and pairs of a head."""


@dataclass(frozen=True)
class Way:
    """How the kernel is launched: by tokens, or with one vector a thread of that width, and an index of 32 or 64 bits;
    `whole_heads`: with both halves of a head in one access; `tokens`: with the heads of so many tokens in shared memory."""

    width: int | None = None
    index: str = "unsigned"
    heads_a_thread: int = 2
    whole_heads: bool = False
    tokens: int = 0


def integers(*shape: int, dtype: torch.dtype) -> Tensor:
    """Small integers, whose products and sums every format holds."""
    return torch.randint(-4, 4, shape).to(dtype)


def before_zeros(values: Tensor) -> Tensor:
    """The same values, with zeros behind them in memory: what a kernel reads there is never the NaN of a guard."""
    buffer = torch.zeros(values.numel() + 64, dtype=values.dtype)
    return buffer[: values.numel()].copy_(values.flatten()).view(values.shape)


def error_of(
    emulator: Emulator,
    shape: tuple[int, int, int, int],
    dtype: torch.dtype,
    way: Way,
    mode: Mode,
    change: tuple[str, str] = ("", ""),
    *,
    back: bool = False,
    in_place: bool = False,
) -> str:
    """What is wrong with the results; an empty text if nothing is."""
    t, hq, hk, p = shape
    torch.manual_seed(t * hq + p)
    cos_TP, sin_TP = integers(t, p, dtype=dtype), integers(t, p, dtype=dtype)
    heads = [before_zeros(integers(t, h, 2, p, dtype=dtype)) for h in (hq, hk)]
    outputs = [Output(t * h * 2, p, dtype) for h in (hq, hk)]
    if in_place:
        for output, x_TH2P in zip(outputs, heads, strict=True):
            output.matrix.copy_(x_TH2P.view(-1, p))
    inputs = [output.matrix for output in outputs] if in_place else heads
    expected = [rotated(x_TH2P, cos_TP, -sin_TP if back else sin_TP) for x_TH2P in heads]
    width = 16 // dtype.itemsize if way.width is None else way.width
    constants = {"SIGN": -1 if back else 1, "HQ": hq, "HK": hk, "PAIRS": p, "UNIT": width}
    tables = [torch.zeros(t * p + 16, dtype=dtype) for _ in range(2)]
    starts = [-table.data_ptr() // dtype.itemsize % (16 // dtype.itemsize) for table in tables]
    aligned = [
        table[start : start + t * p].copy_(values.flatten())
        for table, start, values in zip(tables, starts, (cos_TP, sin_TP), strict=True)
    ]
    arguments: list[Tensor | int] = [*inputs, *aligned, *(output.matrix for output in outputs)]
    source = staged.SOURCE if way.tokens else cuda.SOURCE
    if way.tokens:
        kernel, index = "rope_staged", "unsigned"
        grid = Grid(blocks=-(-t // way.tokens), threads=staged.THREADS)
        constants |= {"TOKENS": way.tokens}
        arguments.append(t)
    elif way.width is None:
        kernel, blocks = "rope_vec16", cuda.token_blocks(hq + hk, p // width, way.heads_a_thread)
        grid = Grid(blocks=t * blocks.blocks, threads=blocks.threads)
        constants |= {"HEADS_A_THREAD": way.heads_a_thread, "CHUNKS": blocks.blocks, "BLOCK_THREADS": blocks.threads}
        index = "unsigned"
    else:
        kernel, flat = "rope_flat", cuda.Flat(t * (hq + hk) * p // width, width)
        grid, index = Grid(blocks=flat.blocks, threads=flat.threads), way.index
        constants |= {"BLOCK_THREADS": flat.threads, "WHOLE_HEADS": int(way.whole_heads)}
        arguments.append(flat.count)
    defines = {"ELEMENT": nvrtc.element_type(dtype), "INDEX": index}
    defines |= {name: str(value) for name, value in constants.items()}
    text = text_of(source)
    assert change[0] in text
    program = emulator.program(source, kernel, defines, text=text.replace(*change) if change[0] else text)
    if error := program.run(arguments, grid, mode):
        return error
    if not all(output.guard_is_unchanged() for output in outputs):
        return "something was written outside an output"
    same = all(torch.equal(out.matrix.view_as(y), y) for out, y in zip(outputs, expected, strict=True))
    return "" if same else "a result differs"


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pairs_are_rotated(shape: tuple[int, int, int, int], dtype: str, in_place: bool, emulator: Emulator) -> None:
    itemsize = DTYPES[dtype].itemsize
    widest = math.gcd(shape[3], 16 // itemsize)
    ways = [Way(width=2**e) for e in range(widest.bit_length())] + [Way(width=widest, index="unsigned long long")]
    if widest == shape[3] and widest * itemsize <= 8:
        ways += [Way(width=widest, whole_heads=True), Way(width=widest, index="unsigned long long", whole_heads=True)]
    if widest * itemsize == 16:
        ways += [Way(heads_a_thread=2), Way(heads_a_thread=4)]
    for number, way in enumerate(ways):
        for mode in MODES:
            error = error_of(emulator, shape, DTYPES[dtype], way, mode, back=number % 2 == 1, in_place=in_place)
            assert error == "", (way, mode)


STAGED_SHAPES = ((1, 1, 1, 1), (17, 3, 1, 5), (9, 2, 3, 11), (33, 5, 4, 33), (40, 1, 1, 3), (12, 1, 2, 22))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", STAGED_SHAPES, ids=str)
def test_pairs_are_rotated_in_shared_memory(
    shape: tuple[int, int, int, int], dtype: str, in_place: bool, emulator: Emulator
) -> None:
    _, hq, hk, p = shape
    tile = staged.staged(10**6, hq, hk, p, DTYPES[dtype].itemsize, 1)
    whole_vectors = 16 // DTYPES[dtype].itemsize
    for number, tokens in enumerate(
        (whole_vectors, 2 * whole_vectors, min(tile.tokens, 24) if tile else whole_vectors)
    ):
        for mode in MODES:
            way = Way(tokens=tokens)
            error = error_of(emulator, shape, DTYPES[dtype], way, mode, back=number % 2 == 1, in_place=in_place)
            assert error == "", (way, mode)


STAGED_MISTAKES = {
    "the last elements are not read": (
        "staged[last] = reinterpret_cast<const ELEMENT&>(after)",
        "staged[last] = staged[0]",
    ),
    "the last elements are not written": ("to[last] = staged[last]", "to[0] = staged[0]"),
    "the table of another token": ("angle = token * PAIRS + i - head * PAIRS", "angle = i - head * PAIRS"),
    "the halves are next to each other": ("right = left + PAIRS", "right = left + 1"),
    "threads do not wait for the elements of others": ("    __syncthreads();\n    rotate<HQ>", "    rotate<HQ>"),
    "threads do not wait for the pairs of others": ("    __syncthreads();\n    store<", "    store<"),
    "the sine is not negated": ("SIGN * number(sine[e])", "number(sine[e])"),
    "the last token is left out": ("(int)(tokens - first) : TOKENS", "(int)(tokens - first) - 1 : TOKENS"),
    "all blocks have the first tokens": ("(long long)blockIdx.x * TOKENS", "0"),
}


@pytest.mark.parametrize("mistake", STAGED_MISTAKES)
def test_a_mistake_in_shared_memory_is_noticed(mistake: str, emulator: Emulator) -> None:
    way, change = Way(tokens=8), STAGED_MISTAKES[mistake]
    errors = [error_of(emulator, (21, 5, 2, 33), torch.bfloat16, way, mode, change, back=True) for mode in MODES]
    assert any(errors)


FLAT, TOKENS = Way(width=2), Way()
MISTAKES = {
    "keys are read from queries": (FLAT, ("of_query ? q : k", "q")),
    "keys of another token": (FLAT, ("token * HK + (head - HQ)", "head - HQ")),
    "the table of another token": (FLAT, ("of_table = token * VECTORS + vec", "of_table = vec")),
    "a thread behind the last has work": (FLAT, ("i >= count", "i >= count + 1")),
    "the sine is not negated": (FLAT, ("(SIGN * sine.x), a.y", "sine.x, a.y")),
    "the second number of two has the first one's angle": (FLAT, ("a.y * cosine.y", "a.y * cosine.x")),
    "the halves are next to each other": (FLAT, ("to + VECTORS, right", "to + 1, right")),
    "the last head is left out": (TOKENS, ("if (head < HEADS) {", "if (head < HEADS - 1) {")),
    "a head between the first and the second of a thread is left out": (
        TOKENS,
        ("first + i * ABREAST", "first + i * (ABREAST + 1)"),
    ),
}


MISTAKES_OF_WHOLE_HEADS = {
    "the second half is the first": ("z = halves.right", "z = halves.left"),
    "the halves are exchanged": ("halves = {left, right}", "halves = {right, left}"),
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_WHOLE_HEADS)
def test_a_mistake_of_whole_heads_is_noticed(mistake: str, emulator: Emulator) -> None:
    way, change = Way(width=4, whole_heads=True), MISTAKES_OF_WHOLE_HEADS[mistake]
    assert any(error_of(emulator, (3, 5, 2, 4), torch.bfloat16, way, mode, change) for mode in MODES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, emulator: Emulator) -> None:
    way, change = MISTAKES[mistake]
    errors = [error_of(emulator, (3, 5, 2, 40), torch.bfloat16, way, mode, change, back=True) for mode in MODES]
    assert any(errors)
