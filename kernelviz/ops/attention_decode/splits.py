"""How the tokens of the cache are divided among programs or blocks. Imports neither torch nor triton."""

from __future__ import annotations

MOST_SPLITS = 128
"""Of a sequence and a key/value head."""
BUSY = 0.9
"""Of the best share of busy programs in the last wave that the choice may fall short of, to have fewer splits to combine."""


def split_count(rows: int, tiles: int, resident: int) -> int:
    """Programs that share the `tiles` of each of `rows`: the fewest with which nearly all of the `resident` programs have work.

    `resident`: programs that are on the device at once.

    >>> split_count(8, 1024, 264), split_count(512, 1024, 264), split_count(128, 1024, 264), split_count(8, 3, 264)
    (30, 1, 2, 3)
    """
    most = max(1, min(tiles, MOST_SPLITS))

    def busy(splits: int) -> float:
        waves = rows * splits / resident
        return waves / -(-rows * splits // resident)

    enough = BUSY * max(busy(splits) for splits in range(1, most + 1))
    return next(splits for splits in range(1, most + 1) if busy(splits) >= enough)


def share_of(tile: int, tiles: int, shares: int) -> int:
    """The share that a tile is in, where share i has tiles i·tiles // shares to (i + 1)·tiles // shares.

    >>> [share_of(tile, 5, 3) for tile in range(5)]
    [0, 1, 1, 2, 2]
    """
    return ((tile + 1) * shares - 1) // tiles


def most_shares_of_row(rows: int, tiles_of_row: int, shares: int) -> int:
    """The most shares that tiles of one row are in.

    >>> most_shares_of_row(4, 10, 2), most_shares_of_row(3, 10, 2), most_shares_of_row(1, 10, 4)
    (1, 2, 4)
    """
    tiles = rows * tiles_of_row
    firsts = range(0, tiles, tiles_of_row)
    return max(share_of(t + tiles_of_row - 1, tiles, shares) - share_of(t, tiles, shares) + 1 for t in firsts)
