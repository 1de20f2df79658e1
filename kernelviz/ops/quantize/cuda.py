"""CUDA C++ kernels of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.quantize.reference import SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
WORD_BYTES = 16
LONGEST_BLOCK_WORDS = 4096
"""The longest row that the registers of one block hold, with a second block on the SM: 512 threads with eight words, 64 KiB."""
MOST_CLUSTER = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads that share a row, 16-byte words each holds, blocks a row is spread over, rows in a block, blocks an SM."""

    lanes: int
    words: int
    cluster: int = 1
    rows: int = 1
    blocks: int = 1


def row_shape(words: int, *, clusters: bool) -> Shape | None:
    """How blocks take rows of that many 16-byte words; None for those they cannot hold.

    Two words a thread where a block has threads enough, else four or eight: with 32, 40 and 64 registers.

    >>> row_shape(16, clusters=False), row_shape(512, clusters=False)
    (Shape(lanes=16, words=1, cluster=1, rows=8, blocks=12), Shape(lanes=256, words=2, cluster=1, rows=1, blocks=8))
    >>> row_shape(4096, clusters=False), row_shape(16384, clusters=True), row_shape(16384, clusters=False)
    (Shape(lanes=512, words=8, cluster=1, rows=1, blocks=2), Shape(lanes=512, words=4, cluster=8, rows=1, blocks=3), None)
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
    each = 4 if words <= 32 * 1024 else 8
    lanes = 32 * -(-words // (32 * each * MOST_CLUSTER))
    resident = 1536 if each == 4 else 1024
    return Shape(lanes, each, MOST_CLUSTER, blocks=max(1, resident // lanes)) if lanes <= 1024 else None


def bind_rows(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    return _bind(x_MN, w_N, target, eps, row_shape(_words(x_MN, w_N), clusters=False))


def bind_cluster(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """A cluster of blocks a row of more than 64 KiB; one of more than 1 MiB is read twice. Errors as above."""
    return _bind(x_MN, w_N, target, eps, row_shape(_words(x_MN, w_N), clusters=True))


def _words(x_MN: Tensor, w_N: Tensor | None) -> int:
    """16-byte words that a row touches, wherever it starts. Errors: BadField."""
    given = {"x_MN": x_MN} if w_N is None else {"x_MN": x_MN, "w_N": w_N}
    require_contiguous(**given)
    for name, tensor in given.items():
        if tensor.data_ptr() % WORD_BYTES:
            raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")
    width, n = WORD_BYTES // x_MN.element_size(), x_MN.shape[1]
    return n // width if n % width == 0 else (n + 2 * width - 2) // width


def _bind(x_MN: Tensor, w_N: Tensor | None, target: str, eps: float, shape: Shape | None) -> Launch:
    import torch

    m, n = x_MN.shape
    name = "quantize_rows" if shape is not None else "quantize_long_rows"
    shape = shape or Shape(1024, 1)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "INT8": str(int(target == "int8")),
        "NORM": str(int(w_N is not None)),
        "ROW_LANES": str(shape.lanes),
        "ROW_WORDS": str(shape.words),
        "ROW_CLUSTER": str(shape.cluster),
        "ROW_ROWS": str(shape.rows),
        "ROW_BLOCKS": str(shape.blocks),
        "ROW_ALIGNED": "true" if n % (WORD_BYTES // x_MN.element_size()) == 0 else "false",
    }
    kernel = nvrtc.kernel(SOURCE, name, defines, cluster=shape.cluster)
    blocks, threads, cluster = shape.cluster * -(-m // shape.rows), shape.lanes * shape.rows, shape.cluster
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    weight = 0 if w_N is None else w_N.data_ptr()
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target)))
    arguments = (
        x_MN.data_ptr(),
        weight,
        q_MN.data_ptr(),
        scale_M.data_ptr(),
        ctypes.c_longlong(m),
        ctypes.c_int(n),
        *numbers,
    )

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster)
        return q_MN, scale_M

    return launch
