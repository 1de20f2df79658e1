"""How kernels of `headers/streamed_rows.cuh` lay threads over rows: threads a row, vectors a thread, rows a block."""

from __future__ import annotations

from dataclasses import dataclass

VEC16_BYTES = 16
LONGEST_ROW_OF_A_WARP_WORDS = 256
"""4 KiB, eight words a thread; row_sum reads longer ones faster by blocks (4510 against 4356 GB/s at 16 KiB)."""
SHORTEST_SPLIT_BYTES = 64 * 1024
"""1024 threads have so much of a row on their way at once, so that a second block would save less than the merge costs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads that share a row, 16-byte words that a thread works on while it waits for as many, rows a block, blocks an SM."""

    lanes: int
    group: int
    rows: int = 1
    resident: int = 1

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    def defines(self, element: str, *, aligned: bool) -> dict[str, str]:
        return {
            "ELEMENT": element,
            "ROW_LANES": str(self.lanes),
            "ROW_GROUP": str(self.group),
            "ROW_ROWS": str(self.rows),
            "ROW_RESIDENT": str(self.resident),
            "ROW_ALIGNED": "true" if aligned else "false",
        }


def power_of_2(n: int) -> int:
    """The smallest that is not below n.

    >>> [power_of_2(n) for n in (0, 1, 3, 64)]
    [1, 1, 4, 64]
    """
    return 1 << max(0, n - 1).bit_length()


def shape_of(m: int, words: int, count: int) -> Shape:
    """Of m rows of so many words on a GPU of `count` SMs: a warp a row where short rows are many, else a block.

    A block has as many threads as leave each SM 1024 in all and each thread a word at least.

    Eight words of 1024 threads are 128 KiB of an SM under way at most, 64 KiB at least.

    >>> shape_of(32768, 256, 132), shape_of(16384, 512, 132)
    (Shape(lanes=32, group=4, rows=4, resident=8), Shape(lanes=128, group=2, rows=1, resident=12))
    >>> shape_of(2048, 4096, 132), shape_of(512, 16384, 132)
    (Shape(lanes=256, group=4, rows=1, resident=4), Shape(lanes=256, group=4, rows=1, resident=4))
    >>> shape_of(16, 512, 132), shape_of(1, 1, 132)
    (Shape(lanes=512, group=1, rows=1, resident=3), Shape(lanes=32, group=1, rows=1, resident=32))
    """
    if words <= LONGEST_ROW_OF_A_WARP_WORDS and m >= 8 * count:
        return with_residents(32, words, rows=4)
    # 2048 rows of 32,768: 4134 GB/s by 256 threads a row, 4024 by 128.
    threads = 1024 // max(1, min(4 if words > 2048 else 8, -(-m // count)))
    return with_residents(max(32, min(1 << threads.bit_length() - 1, power_of_2(words))), words)


def with_residents(lanes: int, words: int, *, rows: int = 1) -> Shape:
    """Up to four words a group; 64 registers a thread for them, 40 for fewer. An SM has room for 32 blocks.

    >>> with_residents(128, 1024), with_residents(1024, 1024)
    (Shape(lanes=128, group=4, rows=1, resident=8), Shape(lanes=1024, group=1, rows=1, resident=1))
    """
    group = min(4, power_of_2(-(-words // (2 * lanes))))
    return Shape(lanes, group, rows, min(32, (1024 if group == 4 else 1536) // (lanes * rows)))


def parts_for(m: int, row_bytes: int, count: int, shortest_part_bytes: int) -> int:
    """Parts of a row: two blocks an SM in all where rows are long and fewer than that.

    >>> [parts_for(m, b, 132, 8192) for m, b in ((1, 2**21), (64, 2**21), (512, 2**18), (16, 2**13))]
    [256, 5, 1, 1]
    """
    if row_bytes <= SHORTEST_SPLIT_BYTES or m >= 2 * count:
        return 1
    return max(1, min(-(-2 * count // m), -(-row_bytes // shortest_part_bytes)))
