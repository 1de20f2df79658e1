"""CUDA C++ kernel of `matmul` for Hopper's tensor cores (wgmma, TMA), bound to tensors."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import PTX_NAMES
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "wgmma.cu"
DEPTH, BOX = 64, 64
ALIGNMENT_BYTES = 1024
Function = Literal["identity", "relu", "gelu", "silu"]
"""What the kernel applies to the sum of the product and the bias; with the identity there is no bias."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of wgmma.cu, which explains them."""

    columns: int = 128
    consumers: int = 1
    stages: int = 2
    specialised: int = 0
    persistent: int = 0
    cluster: int = 1
    c_boxes: int = 0
    hilbert: int = 0
    group: int = 8
    split_k: int = 0

    @property
    def rows(self) -> int:
        """Of a tile of C."""
        return 64 * self.consumers

    @property
    def boxes(self) -> int:
        """Of a tile's columns, in B and in C; the last one is narrower if the columns are no multiple of 64."""
        return -(-self.columns // BOX)

    @property
    def rows_of_b(self) -> int:
        """Of a box of B whose columns are contiguous: fewer if its boxes cannot be divided among the blocks of a cluster."""
        return DEPTH if self.boxes % self.cluster == 0 else DEPTH // self.cluster

    def maps(self, a: Tensor, b: Tensor, c: Tensor, *, a_k_contiguous: bool, b_k_contiguous: bool) -> list[Boxes]:
        """Of the parameter `maps` of wgmma.cu and wgmma_layouts.cu, for factors and a product as they lie in memory."""
        of_b = self.columns // self.cluster if b_k_contiguous else self.rows_of_b
        maps = [Boxes(a, self.rows if a_k_contiguous else BOX), Boxes(b, of_b), Boxes(c, BOX)]
        if rest := self.columns % BOX:
            maps += [Boxes(c, BOX, columns=rest), Boxes(b, DEPTH, columns=rest)]
        return maps

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + self.specialised)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: the stages, C, the barriers, a bias, words of split-K, and what aligns them to 1024 bytes."""
        stage = 2 * DEPTH * (self.rows + BOX * self.boxes)
        c = 2 * BOX * BOX * self.consumers * self.c_boxes
        bias = 2 * self.columns * self.consumers if self.c_boxes else 0
        return ALIGNMENT_BYTES + self.stages * (stage + 16) + c + bias + 16 * self.split_k

    def defines(self, element: str, *, function: Function = "identity", b_k_contiguous: bool = False) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "COLUMNS": str(self.columns),
            "CONSUMERS": str(self.consumers),
            "STAGES": str(self.stages),
            "SPECIALISED": str(self.specialised),
            "PERSISTENT": str(self.persistent),
            "CLUSTER": str(self.cluster),
            "C_BOXES": str(self.c_boxes),
            "HILBERT": str(self.hilbert),
            "GROUP": str(self.group),
            "SPLIT_K": str(self.split_k),
            "FUNCTION": function.upper(),
            "B_K_CONTIGUOUS": str(int(b_k_contiguous)),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Division:
    """Tiles after the first `whole` have `parts` parts of K each. Tiles are counted by cluster."""

    whole: int
    parts: int

    def amount(self, tiles: int) -> int:
        """Whole tiles and parts of tiles.

        >>> Division(whole=66, parts=2).amount(96)
        126
        """
        return self.whole + (tiles - self.whole) * self.parts


MOST_PARTS = {128: 4, 64: 8}
"""Of a tile with so many rows: more would take longer to add up than they save."""
LEAST_SAVED_STEPS = {128: 24, 64: 20}
"""Steps of K that a division must save: on an H200, sums of parts of a tile of 128 × 256 take 10 to 15 us, those of 64 × 128 and
64 × 64 take 3 to 5, as long as they."""


def divided(tiles: int, depths: int, clusters: int, options: Options) -> Division:
    """Divides the tiles of the last round into as many parts as there are clusters for, if that saves enough.

    `depths`: steps of K of a tile. `clusters`: that are resident at once.

    >>> wide, small = Options(consumers=2, columns=256), Options()
    >>> divided(32, 224, 66, wide), divided(224, 64, 66, wide), divided(112, 64, 66, wide)
    (Division(whole=0, parts=2), Division(whole=198, parts=2), Division(whole=112, parts=1))
    >>> divided(32, 64, 132, small), divided(32, 12, 132, small)
    (Division(whole=0, parts=4), Division(whole=32, parts=1))
    """
    rest = tiles % clusters
    parts = min(clusters // rest, MOST_PARTS[options.rows], depths) if rest else 1
    if depths - depths // parts < LEAST_SAVED_STEPS[options.rows]:
        return Division(whole=tiles, parts=1)
    return Division(whole=tiles - rest, parts=parts)


@functools.lru_cache(maxsize=32)
def hilbert_order(rows: int, columns: int) -> tuple[int, ...]:
    """The tiles of a grid along Hilbert's curve, which passes through a square before it leaves it: row + 65536 · column of each.

    The curve of the smallest square of a power of two around the grid, without the tiles outside of it.

    >>> hilbert_order(2, 2)
    (0, 1, 65537, 65536)
    """
    side = 1 << (max(rows, columns) - 1).bit_length()
    left = np.arange(side * side, dtype=np.int64)
    x, y = np.zeros_like(left), np.zeros_like(left)
    step = 1
    while step < side:
        right = 1 & (left // 2)
        up = 1 & (left ^ right)
        # Turn the square of this size that has been walked through so far.
        flipped = (up == 0) & (right == 1)
        x, y = np.where(flipped, step - 1 - x, x), np.where(flipped, step - 1 - y, y)
        x, y = np.where(up == 0, y, x), np.where(up == 0, x, y)
        x, y = x + step * right, y + step * up
        left //= 4
        step *= 2
    inside = (y < rows) & (x < columns)
    return tuple((y[inside] + 65536 * x[inside]).tolist())


def bind(a_MK: Tensor, b_KN: Tensor, options: Options) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of bf16 or fp16.

    Raises BadField for matrices that are not contiguous, or whose rows are no multiples of 16 bytes.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    require_pitch("k", a_MK.shape[1], a_MK.element_size())
    require_pitch("n", b_KN.shape[1], b_KN.element_size())
    return _bind(a_MK, b_KN, None, options, b_KN.shape[1], "identity", b_k_contiguous=False)


def bind_linear(x_MK: Tensor, w_NK: Tensor, bias_N: Tensor | None, options: Options, function: Function) -> Launch:
    """f(x wᵀ + bias) of contiguous x (M, K) and w (N, K) of bf16 or fp16 and bias (N,).

    Raises BadField for tensors that are not contiguous, or where rows of x, w or the result are no multiples of 16 bytes.
    """
    require_contiguous(x_MK=x_MK, w_NK=w_NK, **({} if bias_N is None else {"b_N": bias_N}))
    require_pitch("k", x_MK.shape[1], x_MK.element_size())
    require_pitch("n", w_NK.shape[0], w_NK.element_size())
    return _bind(x_MK, w_NK, bias_N, options, w_NK.shape[0], function, b_k_contiguous=True)


def _bind(
    a_MK: Tensor,
    b: Tensor,
    bias_N: Tensor | None,
    options: Options,
    n: int,
    function: Function,
    *,
    b_k_contiguous: bool,
) -> Launch:
    """`b`: (K, N), or (N, K) if `b_k_contiguous`."""
    import torch

    m, k = a_MK.shape
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    element = nvrtc.element_type(a_MK.dtype)
    whole = replace(options, split_k=0)
    kernel = _kernel(whole, element, function, b_k_contiguous=b_k_contiguous)
    maps = tensor_maps(options.maps(a_MK, b, c_MN, a_k_contiguous=True, b_k_contiguous=b_k_contiguous))
    tiles = -(-m // (options.rows * options.cluster)), -(-n // options.columns)
    order = torch.tensor(hilbert_order(*tiles) if options.hilbert else [0], dtype=torch.uint32).to(a_MK.device)
    count = tiles[0] * tiles[1]
    clusters = count
    if options.persistent:
        resident = nvrtc.resident(kernel, options.threads, cluster=options.cluster, shared_bytes=whole.shared_bytes)
        clusters = max(1, resident // options.cluster)
    division = divided(count, -(-k // DEPTH), clusters, options) if options.split_k else Division(whole=count, parts=1)
    if division.parts == 1:
        options = whole  # the kernel without parts takes 0.2 us less
    else:
        kernel = _kernel(options, element, function, b_k_contiguous=b_k_contiguous)
    blocks = min(clusters, division.amount(count)) * options.cluster
    bias = order if bias_N is None else bias_N
    sizes = tuple(map(ctypes.c_int, (m, n, k)))
    shared_work: tuple[Tensor, ...] = ()
    if options.split_k:
        counters = (count - division.whole) * options.cluster * options.consumers
        sums = counters * division.parts * BOX * options.columns
        shared_work = (
            torch.empty(max(4, sums), dtype=torch.float32, device=a_MK.device),
            torch.zeros(max(1, counters), dtype=torch.int32, device=a_MK.device),
        )
        sizes += tuple(map(ctypes.c_int, (division.whole, division.parts)))

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in (order, bias, c_MN))
        nvrtc.launch(
            kernel,
            blocks,
            options.threads,
            maps,
            *pointers,
            *sizes[:3],
            *(t.data_ptr() for t in shared_work),
            *sizes[3:],
            cluster=options.cluster,
            shared_bytes=options.shared_bytes,
        )
        return c_MN

    return launch


def _kernel(options: Options, element: str, function: Function, *, b_k_contiguous: bool) -> Any:
    return nvrtc.kernel(
        SOURCE,
        "matmul_wgmma",
        options.defines(element, function=function, b_k_contiguous=b_k_contiguous),
        shared_bytes=options.shared_bytes,
        cluster=options.cluster,
        specific=True,
    )
