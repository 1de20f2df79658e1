"""How many queries a tile has, which tiles each of some persistent programs computes, and in which order."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def rows_of_program(
    queries: int, warps: int, dimension: int, *, rows: int, heads: int, multiprocessors: int
) -> tuple[int, int]:
    """Queries and warps of a program for `heads` heads of all batches with `rows` queries: half of both where SMs are idle.

    That is where each of the smaller programs still has an SM of its own. They have at least 64 queries and 4 warps, as many as a
    tensor core instruction of Hopper takes. Only for heads of 64: Triton spills registers of half a tile of larger heads.

    >>> rows_of_program(128, 8, 64, rows=1403, heads=4, multiprocessors=132)
    (64, 4)
    >>> rows_of_program(128, 8, 64, rows=1403, heads=8, multiprocessors=132)
    (128, 8)
    """
    half = queries // 2
    if dimension != 64 or half < 64 or -(-rows // half) * heads > multiprocessors:
        return queries, warps
    return half, max(4, warps // 2)


def causal_schedule(tiles: int, heads: int, programs: int) -> list[list[int]]:
    """For each program, the numbers of its tiles: tile t of a head h of all batches is number h * tiles + t.

    The tiles are given out head by head, so that programs which compute at the same time read the same keys, each to the program
    that is free first. A tile t costs t + 1 for its keys, and 1. The tiles with most keys of a head come first, and so do those
    of the last heads, which are as many as two tiles for each program: thus all programs end at about the same time.

    >>> causal_schedule(tiles=2, heads=2, programs=2)
    [[1, 0], [3, 2]]
    """
    last = min(heads, -(-2 * programs // tiles))
    numbers = [head * tiles + tile for head in range(heads - last) for tile in reversed(range(tiles))]
    numbers += [head * tiles + tile for tile in reversed(range(tiles)) for head in range(heads - last, heads)]
    free = [(0, program) for program in range(programs)]
    schedule: list[list[int]] = [[] for _ in range(programs)]
    for number in numbers:
        time, program = free[0]
        schedule[program].append(number)
        heapq.heapreplace(free, (time + number % tiles + 2, program))
    return schedule


def schedule_table(tiles: int, heads: int, programs: int, device: torch.device, *, causal: bool) -> torch.Tensor:
    """Numbers of tiles as int32 (R, P): what each of P programs computes in each of R rounds, or -1 for nothing.

    `causal`: by `causal_schedule`; otherwise all tiles have as many keys, and are given out one after the other.
    """
    import torch

    if not causal:
        numbers = torch.full((-(-tiles * heads // programs) * programs,), -1, dtype=torch.int32)
        numbers[: tiles * heads] = torch.arange(tiles * heads, dtype=torch.int32)
        return numbers.view(-1, programs).to(device)
    schedule = causal_schedule(tiles, heads, programs)
    rounds = max(map(len, schedule))
    rows = [numbers + [-1] * (rounds - len(numbers)) for numbers in schedule]
    return torch.tensor(rows, dtype=torch.int32).T.contiguous().to(device)
