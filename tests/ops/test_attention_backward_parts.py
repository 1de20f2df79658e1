"""Parts of tiles of keys in attention's backward pass: which steps they have, their sums, and a part that is left out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from checking import compare, inputs_of
from emulator import Argument, Emulator, Grid, needs_compiler
from interpreter_process import interpreted_lines
from test_bounds_of_attention import gradients

from kernelviz.ops import op_named
from kernelviz.ops.attention import wgmma_backward as wgmma
from kernelviz.ops.attention.backward_parts import choose_longest, divide, divided, steps_of_tiles

HERE = Path(__file__).parent
SMS = 132


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("length", "group", "copies"), [(1, 1, 1), (300, 8, 2), (1403, 4, 1), (2311, 1, 4), (4096, 16, 1)]
)
@pytest.mark.parametrize("longest", [1, 5, 1000])
def test_each_step_has_one_part(length: int, group: int, copies: int, longest: int, causal: bool) -> None:
    steps = steps_of_tiles(length, group, 64, 128, causal=causal)
    division = divide(steps, copies, longest)
    assert division.firsts[-1] == len(division.parts)
    for tile, count in enumerate(steps * copies):
        parts = division.parts[division.firsts[tile] : division.firsts[tile + 1]]
        assert [part[0] for part in parts] == [tile] * len(parts)
        assert [step for _, first, end in parts for step in range(first, end)] == list(range(count))
        assert all(0 < end - first <= longest for _, first, end in parts)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "key_heads"), [(16, 16), (32, 8)])
@pytest.mark.parametrize("length", [1024, 4096, 16384])
@pytest.mark.parametrize("keys", [64, 128])
def test_large_problems_are_not_divided(length: int, heads: int, key_heads: int, keys: int, causal: bool) -> None:
    steps = steps_of_tiles(length, heads // key_heads, 64, keys, causal=causal)
    assert divided(steps, 16384 // length * key_heads, 2 * SMS) is None


def test_most_multiprocessors_have_a_part_where_few_have_a_tile() -> None:
    for causal in (False, True):
        steps = steps_of_tiles(1403, 4, 64, 128, causal=causal)
        division = divided(steps, 1, SMS)
        assert division is not None
        assert 0.7 * SMS < len(division.parts) <= SMS
        assert choose_longest(steps, SMS, SMS) is None


def in_order_of_threads(sums: torch.Tensor) -> torch.Tensor:
    """(…, 128 keys, D) as `attention_backward` stores them: fours of a thread, (…, D / 8, 256 threads, 4)."""
    threads, numbers = torch.arange(256), torch.arange(sums.shape[-1] // 2)
    row = threads // 128 * 64 + threads % 128 // 32 * 16 + threads % 32 // 4
    rows = row[:, None] + 8 * (numbers // 2 % 2)
    columns = numbers // 4 * 8 + 2 * (threads % 4)[:, None] + numbers % 2
    fours = sums[..., rows, columns].reshape(*sums.shape[:-2], 256, -1, 4)
    return fours.transpose(-3, -2).contiguous()


@needs_compiler
@pytest.mark.parametrize("dimension", wgmma.HEAD_DIMENSIONS)
@pytest.mark.parametrize("left_out", [False, True])
def test_the_last_kernel_adds_all_parts(dimension: int, left_out: bool, emulator: Emulator) -> None:
    """Small integers: exact in every order of additions. The planted fault leaves the last part of each tile out."""
    batches, length, heads, key_heads = 2, 140, 4, 2
    steps = steps_of_tiles(length, heads // key_heads, wgmma.QUERIES, wgmma.KEYS, causal=True)
    tiles = len(steps) * batches * key_heads
    division = divide(steps, batches * key_heads, 3)
    _, firsts = division.tables(torch.device("cpu"))
    torch.manual_seed(dimension)
    sums = torch.randint(-3, 4, (len(division.parts), 2, wgmma.KEYS, dimension)).float()
    dq_tiles = -(-length // wgmma.QUERIES) * batches * heads
    dq_sums = torch.ones((dq_tiles, wgmma.QUERIES, dimension))
    text = wgmma.ROW_SOURCE.read_text()
    if left_out:
        assert text.count("part < end;") == 1
        text = text.replace("part < end;", "part < end - 1;")
    macros = wgmma.defines("__half", dimension, causal=True, parts=True)
    del macros["ELEMENT_PTX"]
    program = emulator.program(wgmma.ROW_SOURCE, ("attention_delta", "attention_query"), macros, text=text)
    dq = torch.full((batches, length, heads, dimension), float("nan"), dtype=torch.float16)
    dk, dv = (torch.full((batches, length, key_heads, dimension), float("nan"), dtype=torch.float16) for _ in range(2))
    add_blocks = tiles * 2 * (dimension // wgmma.ADDED_COLUMNS)
    arguments: list[Argument] = [
        dq_sums,
        dq,
        1,
        length,
        heads,
        key_heads,
        add_blocks,
        in_order_of_threads(sums),
        firsts,
        dk,
        dv,
    ]
    grid = Grid(blocks=add_blocks + dq_tiles, threads=wgmma.ROW_THREADS)
    assert program.run(arguments, grid, kernel="attention_query") == ""
    edges = firsts.tolist()
    added = torch.stack([sums[first:end].sum(0) for first, end in pairwise(edges)])
    # (batch, key head, tile, gradient, key of the tile, D) → (gradient, batch, position, key head, D)
    expected = added.view(batches, key_heads, len(steps), 2, wgmma.KEYS, dimension).permute(3, 0, 2, 4, 1, 5)
    expected = expected.reshape(2, batches, -1, key_heads, dimension)[:, :, :length].half()
    assert torch.equal(dq, torch.ones_like(dq))
    assert torch.equal(torch.stack((dk, dv)), expected) != left_out


@pytest.mark.parametrize("name", ["attention", "causal_attention"])
def test_a_part_that_is_left_out_is_refused(name: str) -> None:
    """dk and dv without 64 queries of one head: the shortest part that there is, and its gradient of o as if it were 0."""
    op, causal = op_named(name), name.startswith("causal")
    problem = op.problem({"b": 1, "s": 700, "hq": 4, "hk": 1, "d": 64}, "bf16", direction="backward")
    q, k, v, do = inputs_of(op, problem, 2)
    dq, dk, dv = gradients(q, k, v, do, causal=causal)
    assert compare(op, problem, (q, k, v, do), (dq, dk, dv)).passed
    do_without = do.clone()
    do_without[:, 320:384, 2] = 0
    _, dk_without, dv_without = gradients(q, k, v, do_without, causal=causal)
    assert not compare(op, problem, (q, k, v, do), (dq, dk_without, dv)).passed
    assert not compare(op, problem, (q, k, v, do), (dq, dk, dv_without)).passed


def test_triton_programs_that_share_a_tile_of_keys_agree_with_the_reference() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(HERE / "interpreted_parts.py")
    assert len(lines) == 6
    for line in lines:
        assert line["programs"] > 3, line
        assert line["passed"], line
        assert not line["left_out_passed"], line
