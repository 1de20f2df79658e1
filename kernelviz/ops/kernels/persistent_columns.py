"""How clusters that stay (`headers/columns.cuh`, `headers/powers.cuh`) take the columns of a row: threads, words, blocks, places.

Chosen on an H200 of all that were tried there (docs/kernels.md, "What was tried").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_tiles import CLUSTER, LONGEST_ROW_WORDS, words_of

if TYPE_CHECKING:
    from torch import Tensor

WORD_BYTES = 16
LANES = 512
"""Of a block that has its SM alone. Rows of 131,072 in bf16: softmax 71.6 us by 512 threads, 74.4 by 1024."""
MOST_WORDS = 8
"""Of a thread and row."""
MOST_CLUSTER = 16
"""Blocks of a cluster, on GPUs that grant more than CLUSTER."""
SHORTEST_WORDS = 128
"""Shorter rows share a block in other kernels."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Threads of a block, 16-byte words each has of a row, blocks that share a row, rows that have places, blocks an SM."""

    lanes: int
    words: int
    cluster: int
    stages: int
    blocks: int = 1

    @property
    def shared_bytes(self) -> int:
        return self.lanes * self.words * self.stages * WORD_BYTES

    def defines(self, row_words: int) -> dict[str, str]:
        """What the kernels of `headers/columns.cuh` are compiled with for rows of that many words."""
        return {
            "ROW_LANES": str(self.lanes),
            "ROW_WORDS": str(self.words),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_STAGES": str(self.stages),
            "ROW_BLOCKS": str(self.blocks),
            "ROW_FULL": "true" if row_words == self.lanes * self.words * self.cluster else "false",
        }


def columns_shape(row_words: int, *, weighted: bool) -> Columns | None:
    """How clusters that stay take rows of that many words; None for short ones, and those that 16 blocks cannot hold.

    About 192 KiB of an SM are places. `weighted`: a weight stays in registers beside each word.

    >>> columns_shape(256, weighted=True), columns_shape(1024, weighted=True)
    (Columns(lanes=128, words=2, cluster=1, stages=4, blocks=6), Columns(lanes=128, words=8, cluster=1, stages=3, blocks=4))
    >>> columns_shape(4096, weighted=True), columns_shape(4096, weighted=False)
    (Columns(lanes=256, words=8, cluster=2, stages=3, blocks=2), Columns(lanes=256, words=4, cluster=4, stages=4, blocks=3))
    >>> columns_shape(16384, weighted=True), columns_shape(65537, weighted=True), columns_shape(64, weighted=True)
    (Columns(lanes=512, words=8, cluster=4, stages=3, blocks=1), None, None)
    """
    if row_words < SHORTEST_WORDS:
        return None
    if row_words <= 1024:
        words = -(-row_words // 128)
        return Columns(128, words, 1, 4, 6) if words <= 4 else Columns(128, words, 1, 3, 4)
    for cluster in (1, 2, 4, CLUSTER):
        if weighted and cluster < CLUSTER and row_words <= 2048 * cluster:
            return Columns(_lanes(row_words, 8, cluster), 8, cluster, 3, 2)
        if not weighted and row_words <= 1024 * cluster:
            return Columns(_lanes(row_words, 4, cluster), 4, cluster, 4, 3)
    for cluster in (2, 4, CLUSTER, MOST_CLUSTER):
        if row_words <= LANES * MOST_WORDS * cluster:
            return Columns(_lanes(row_words, MOST_WORDS, cluster), MOST_WORDS, cluster, 3)
    return None


def _lanes(row_words: int, words: int, cluster: int) -> int:
    return 32 * -(-row_words // (32 * words * cluster))


@dataclass(frozen=True, slots=True)
class Powers:
    """Threads of a block, words a thread and row, blocks of a cluster, words that wait in registers; two rows have places."""

    lanes: int
    words: int
    cluster: int
    held: int = 0

    @property
    def shared_bytes(self) -> int:
        return 2 * WORD_BYTES * self.lanes * (self.words - self.held)

    def defines(self, element: str, *, aligned: bool) -> dict[str, str]:
        """What the kernels of `headers/powers.cuh` are compiled with for rows of such elements; `aligned`: of whole words."""
        return {
            "ELEMENT": element,
            "ROW_LANES": str(self.lanes),
            "ROW_WORDS": str(self.words),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_BLOCKS": "1",
            "ROW_ALIGNED": "true" if aligned else "false",
            "COLUMNS_HELD": str(self.held),
        }


def powers_shapes(row_words: int) -> tuple[Powers, ...]:
    """How clusters of one block an SM may take rows of that many words; none for those of up to 64 KiB or beyond 1 MiB.

    The first is the fastest where as many SMs have a block of it as of the others: an H200 has room for 30 to 33 of four.
    Of 1024 threads one word in eight waits in registers: places for two rows of the others are 224 of an SM's 227 KiB. Clusters
    of eight have two there, since the sums of their warps take 4 KiB.

    >>> powers_shapes(4096), powers_shapes(65537)
    ((), ())
    >>> powers_shapes(16384)
    (Powers(lanes=512, words=8, cluster=4, held=0), Powers(lanes=1024, words=8, cluster=2, held=1))
    >>> powers_shapes(65536)
    (Powers(lanes=1024, words=8, cluster=8, held=2),)
    """
    if row_words <= LONGEST_ROW_WORDS:
        return ()
    found = []
    for most in (LANES, 2 * LANES):
        cluster = next((c for c in (1, 2, 4, CLUSTER) if row_words <= c * MOST_WORDS * most), 0)
        if cluster:
            lanes = _lanes(row_words, MOST_WORDS, cluster)
            held = 0 if lanes <= 800 else 2 if cluster == CLUSTER else 1
            found.append(Powers(lanes, MOST_WORDS, cluster, held))
    return tuple(found)


def covering(resident: Sequence[int]) -> int:
    """Which of several shapes to take, of which so many blocks have a place at once: the first of which no other has 5 % more.

    >>> covering((120, 132)), covering((128, 132))
    (1, 0)
    """
    return next(i for i, blocks in enumerate(resident) if 1.05 * blocks >= max(resident))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A kernel of `headers/powers.cuh` as compiled for a matrix, and how many blocks of it have a place at once."""

    kernel: Any
    shape: Powers
    resident: int


def fitted(source: Path, name: str, x_MN: Tensor) -> Fitted | None:
    """The kernel for the rows of this matrix; None where they are short or too long, or fewer than the SMs have clusters."""
    m, n = x_MN.shape
    size = x_MN.element_size()
    found = []
    for shape in powers_shapes(words_of(n, size)):
        if m * shape.cluster > multiprocessors(x_MN.device):
            defines = shape.defines(nvrtc.element_type(x_MN.dtype), aligned=n * size % WORD_BYTES == 0)
            needs = {"cluster": shape.cluster, "shared_bytes": shape.shared_bytes}
            kernel = nvrtc.kernel(source, name, defines, **needs)
            found.append(Fitted(kernel, shape, nvrtc.resident(kernel, shape.lanes, **needs)))
    if not found:
        return None
    return found[covering([f.resident for f in found])]
