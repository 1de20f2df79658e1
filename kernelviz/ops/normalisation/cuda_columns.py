"""Long rows by clusters that stay on their columns, and the few short ones that leave SMs idle, bound to tensors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.normalisation.cuda import VEC16_BYTES, Given, Shape, _launching, bind_async, power_of_2

SOURCE = Path(__file__).parent / "cuda_columns.cu"
FEW_SOURCE = Path(__file__).parent / "cuda_few_rows.cu"
SHORT_WORDS = 1024
"""16 KiB: rows of up to as many words are left to blocks of their own."""
FEW_ROWS = 128
"""Rows up to which a block each leaves SMs of an H200 idle."""
LANES = 512
"""With 128 registers each: weight and bias of four words of a 16-bit format take 64 of them."""
MOST_WORDS = 8
MOST_WORDS_CENTRED = 6
"""Of a 16-bit format, where the bias is kept beside the weight: of seven the compiler spills."""
MOST_CLUSTER = 8
"""Without asking for more than every GPU with clusters grants."""
PLACES_BYTES = 224 * 1024
"""Of an SM's 227 KiB; the rest is for the sums that blocks exchange."""
MOST_STAGES = 3
"""More are no faster: layernorm of rows of 131,072 in bf16 took 79.1 us with three, 80.1 with four, 81.9 with six."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A shape of blocks that stay, the rows of x that a block has places for, and whether every thread's words are all there."""

    shape: Shape
    stages: int
    full: bool

    def defines(self) -> dict[str, str]:
        more = {"COLUMNS_STAGES": str(self.stages), "COLUMNS_FULL": "true" if self.full else "false"}
        return self.shape.defines(aligned=True) | more

    def shared_bytes(self, tensors: int) -> int:
        """A second tensor has a place less: it is free as soon as the row is added up."""
        return (tensors * self.stages - tensors + 1) * self.shape.lanes * self.shape.words * VEC16_BYTES


def columns_shape(words: int, tensors: int, *, most_words: int = MOST_WORDS) -> Columns | None:
    """How clusters take rows of that many 16-byte words, `tensors` of which are read; None for rows too short or too long.

    Up to 32 KiB of a row a block, four words a thread; longer ones with more words a thread once eight blocks share a row.

    >>> columns_shape(16384, 1)
    Columns(shape=Shape(lanes=512, words=4, cluster=8, rows=1, blocks=1), stages=3, full=True)
    >>> columns_shape(16384, 2).stages, columns_shape(32768, 1).stages, columns_shape(4096, 1).shape.cluster
    (4, 3, 2)
    >>> columns_shape(1024, 1), columns_shape(32769, 1), columns_shape(16385, 2)
    (None, None, None)
    """
    if words <= SHORT_WORDS:
        return None
    cluster = min(MOST_CLUSTER, power_of_2(-(-words // (4 * LANES))))
    each = -(-words // (LANES * cluster))
    # A second tensor has half the places: of more than four words too few rows would be on their way.
    if each > (most_words if tensors == 1 else 4):
        return None
    lanes = 32 * -(-words // (32 * each * cluster))
    places = PLACES_BYTES // (lanes * each * VEC16_BYTES)
    stages = min(MOST_STAGES + tensors - 1, (places + tensors - 1) // tensors)
    return Columns(Shape(lanes, each, cluster), stages, words == lanes * each * cluster)


def bind_columns(given: Given) -> Launch:
    """Aligned rows of more than 16 KiB, and a few of less; others as `bind_async`.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    import torch

    given.check()
    m = given.x_MN.shape[0]
    if given.words <= SHORT_WORDS and m <= FEW_ROWS:
        return _bind_few(given)
    tensors = 1 if given.r_MN is None else 2
    wide = given.b_N is not None and given.x_MN.element_size() == 2
    found = columns_shape(given.words, tensors, most_words=MOST_WORDS_CENTRED if wide else MOST_WORDS)
    if found is None or not given.aligned:
        return bind_async(given)
    shape, shared = found.shape, found.shared_bytes(tensors)
    defines = given.defines() | found.defines()
    kernel = nvrtc.kernel(SOURCE, "normalise_columns", defines, cluster=shape.cluster, shared_bytes=shared)
    fit = nvrtc.resident(kernel, shape.lanes, cluster=shape.cluster, shared_bytes=shared)
    blocks = min(fit, shape.cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=given.x_MN.device)
    return _launching(
        given, kernel, blocks, shape.lanes, cluster=shape.cluster, shared_bytes=shared, tile_counter=tile_counter
    )


def _bind_few(given: Given) -> Launch:
    shape = Shape(32 * -(-given.words // 32), 1)
    kernel = nvrtc.kernel(FEW_SOURCE, "normalise_few_rows", given.defines() | shape.defines(aligned=given.aligned))
    return _launching(given, kernel, given.x_MN.shape[0], shape.lanes)
