"""CUDA C++ kernels of `norm_activation` and `batchnorm_relu`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
VEC16_BYTES = 16
LONGEST_BLOCK_WORDS = 4096
"""The longest row that the registers of one block hold, with a second block on the SM: 512 threads with eight words, 64 KiB."""
MOST_CLUSTER = 8
DEEP = 8
"""Rows that a thread of the batchnorm kernels takes at most."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads that share a row, 16-byte words each holds, blocks a row is spread over, rows in a block, blocks an SM."""

    lanes: int = 32
    words: int = 1
    cluster: int = 1
    rows: int = 1
    blocks: int = 1


def row_shape(words: int, *, clusters: bool) -> Shape | None:
    """How blocks take rows of that many 16-byte words; None for those they cannot hold.

    Two words a thread where a block has threads enough, else four or eight: with 32, 40 and 64 registers.

    >>> row_shape(16, clusters=False), row_shape(512, clusters=False)
    (Shape(lanes=16, words=1, cluster=1, rows=8, blocks=12), Shape(lanes=256, words=2, cluster=1, rows=1, blocks=8))
    >>> row_shape(4096, clusters=False), row_shape(16384, clusters=True), row_shape(16384, clusters=False)
    (Shape(lanes=512, words=8, cluster=1, rows=1, blocks=2), Shape(lanes=256, words=8, cluster=8, rows=1, blocks=4), None)
    """
    if words <= 128:
        lanes = min(32, 1 << max(0, words - 1).bit_length())
        return Shape(lanes, -(-words // lanes), 1, 128 // lanes, 12)
    if words <= LONGEST_BLOCK_WORDS:
        each = 2 if words <= 1024 else 4 if words <= 2048 else 8
        lanes = 32 * -(-words // (32 * each))
        return Shape(lanes, each, blocks={2: 2048, 4: 1536, 8: 1024}[each] // lanes)
    if not clusters:
        return None
    lanes = 32 * -(-words // (32 * 8 * MOST_CLUSTER))
    return Shape(lanes, 8, MOST_CLUSTER, blocks=max(1, 1024 // lanes)) if lanes <= 1024 else None


def bind_rows(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    return _bind_rows(x_MN, w_N, b_N, eps, clusters=False)


def bind_cluster(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """A cluster of blocks a row of more than 64 KiB; one of more than 1 MiB is read twice. Errors as above."""
    return _bind_rows(x_MN, w_N, b_N, eps, clusters=True)


def _check(**given: Tensor) -> None:
    require_contiguous(**given)
    for name, tensor in given.items():
        if tensor.data_ptr() % VEC16_BYTES:
            raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")


def _defines(x_MN: Tensor, shape: Shape) -> dict[str, str]:
    return {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "ROW_LANES": str(shape.lanes),
        "ROW_VECTORS": str(shape.words),
        "ROW_CLUSTER": str(shape.cluster),
        "ROW_ROWS": str(shape.rows),
        "ROW_BLOCKS": str(shape.blocks),
        "ROW_ALIGNED": "true" if x_MN.shape[1] % (VEC16_BYTES // x_MN.element_size()) == 0 else "false",
    }


def _bind_rows(x_MN: Tensor, w_N: Tensor, b_N: Tensor, eps: float, *, clusters: bool) -> Launch:
    import torch

    _check(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    width = VEC16_BYTES // x_MN.element_size()
    # Where rows start anywhere in a word they touch one more.
    shape = row_shape(n // width if n % width == 0 else (n + 2 * width - 2) // width, clusters=clusters)
    name = "layernorm_gelu_rows" if shape is not None else "layernorm_gelu_long_rows"
    shape = shape or Shape(1024)
    kernel = nvrtc.kernel(SOURCE, name, _defines(x_MN, shape), cluster=shape.cluster)
    blocks, threads, cluster = shape.cluster * -(-m // shape.rows), shape.lanes * shape.rows, shape.cluster
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster)
        return y_MN

    return launch


def columns_shape(m: int, across: int, count: int) -> tuple[int, int, int]:
    """Threads of a block along a row of `across` words (or elements) and down, and rows of a thread: fewer of all where the GPU's
    `count` SMs would have less than two blocks each.

    >>> columns_shape(8192, 1024, 132), columns_shape(200704, 32, 132), columns_shape(16, 512, 132)
    ((256, 1, 8), (32, 8, 8), (64, 1, 1))
    """
    threads, deep = 256, DEEP
    while True:
        wide = min(threads, 1 << (across - 1).bit_length())
        tall = threads // wide
        if threads == 64 or -(-m // (deep * tall)) * -(-across // wide) >= 2 * count:
            return wide, tall, deep
        threads, deep = (threads, deep // 2) if deep > 1 else (threads // 2, deep)


def bind_columns(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Threads that walk down channels, 16 bytes of them each where rows are whole words, else one. Errors as above."""
    import torch

    _check(x_MN=x_MN, mean_N=mean_N, variance_N=variance_N, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    width = VEC16_BYTES // x_MN.element_size()
    words = n // width if n % width == 0 else 0
    across, down, deep = columns_shape(m, words or n, multiprocessors(x_MN.device))
    defines = _defines(x_MN, Shape(words=deep))
    kernel = nvrtc.kernel(SOURCE, "batchnorm_relu_words" if words else "batchnorm_relu_elements", defines)
    blocks = (-(-m // (deep * down)), -(-(words or n) // across))
    y_MN = torch.empty_like(x_MN)
    vectors = (mean_N.data_ptr(), variance_N.data_ptr(), w_N.data_ptr(), b_N.data_ptr())
    numbers = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps))
    arguments = (x_MN.data_ptr(), *vectors, y_MN.data_ptr(), *numbers)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, (across, down), *arguments)
        return y_MN

    return launch
