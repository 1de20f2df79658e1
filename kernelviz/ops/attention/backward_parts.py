"""How attention's backward pass divides the queries of a tile of keys among blocks. Imports no torch at its top.

dk and dv of a tile of keys of a key head are sums over steps: a step is a tile of queries of one of the query heads that share
the key head. Usually a block computes all steps of its tile of keys. Where that leaves SMs idle, several blocks have a part of
the steps each; they write partial sums in fp32, which another kernel adds in the order of the parts, so that dk and dv are the
same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LEAST_STEPS = 2
"""Of a part. A block with fewer steps spends more time on loading its keys and on writing partial sums."""
WORTHWHILE = 0.75
"""The longest part is at most this fraction of the longest tile of keys; otherwise the partial sums cost more than they save."""


@dataclass(frozen=True, slots=True)
class Division:
    """Parts of the tiles of keys of all batches and key heads.

    `parts`: tile of keys, first step, and the step after the last one. The parts of a tile follow each other. `firsts`: for each
    tile the number of its first part, and after the last tile the number of parts.
    """

    parts: tuple[tuple[int, int, int], ...]
    firsts: tuple[int, ...]

    def tables(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Int32 (parts, 4), the last column unused so that a row is 16 bytes, and int32 (tiles + 1)."""
        import torch

        rows = torch.tensor([(*part, 0) for part in self.parts], dtype=torch.int32)
        return rows.to(device), torch.tensor(self.firsts, dtype=torch.int32).to(device)


def steps_of_tiles(length: int, group: int, queries: int, keys: int, *, causal: bool) -> list[int]:
    """Steps of each tile of `keys` keys of a key head that `group` query heads share, with `queries` queries a step.

    >>> steps_of_tiles(300, 2, queries=64, keys=128, causal=True)
    [10, 6, 2]
    """
    tiles = -(-length // queries)
    return [group * (tiles - (key // queries if causal else 0)) for key in range(0, length, keys)]


def divide(steps: Sequence[int], copies: int, longest: int) -> Division:
    """Each tile of keys in as few parts of nearly equal length as have at most `longest` steps.

    `copies`: batches times key heads.

    >>> divide([5, 2], copies=2, longest=3).parts
    ((0, 0, 2), (0, 2, 5), (1, 0, 2), (2, 0, 2), (2, 2, 5), (3, 0, 2))
    >>> divide([5, 2], copies=2, longest=3).firsts
    (0, 2, 3, 5, 6)
    """
    counts = [-(-count // longest) for count in steps]
    parts = tuple(
        (copy * len(steps) + tile, count * part // number, count * (part + 1) // number)
        for copy in range(copies)
        for tile, (count, number) in enumerate(zip(steps, counts, strict=True))
        for part in range(number)
    )
    return Division(parts, (0, *accumulate(counts * copies)))


def choose_longest(steps: Sequence[int], copies: int, blocks: int) -> int | None:
    """Steps of the longest part with which at most `blocks` blocks, which run at the same time, have a part each.

    None if each tile of keys stays whole: there are enough of them, or dividing them would not make the longest much shorter.

    >>> choose_longest([88] * 11, copies=1, blocks=132), choose_longest([88] * 11, copies=8, blocks=132)
    (8, None)
    >>> causal = steps_of_tiles(1403, 4, queries=64, keys=128, causal=True)
    >>> choose_longest(causal, copies=1, blocks=132), choose_longest([2], copies=1, blocks=132)
    (4, None)
    """
    low, high = LEAST_STEPS, int(WORTHWHILE * max(steps))

    def fits(longest: int) -> bool:
        return copies * sum(-(-count // longest) for count in steps) <= blocks

    if high < low or not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def divided(steps: Sequence[int], copies: int, blocks: int, longest: int | None = None) -> Division | None:
    """By `longest`, or else by `choose_longest`; None if each tile of keys stays whole."""
    longest = longest or choose_longest(steps, copies, blocks)
    return divide(steps, copies, longest) if longest else None
