"""CUDA C++ kernels of `rmsnorm`, `layernorm` and `add_rmsnorm`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
VEC16_BYTES = 16
CLUSTER_WORDS = 2048
"""Of a row, that one block of a cluster takes: 32 KiB, eight words of each of 256 threads, so that an SM has four blocks, of
which one loads while another stores."""
MOST_CLUSTER = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads that share a row, 16-byte words each holds, blocks a row is spread over, rows in a block."""

    lanes: int
    words: int
    cluster: int = 1
    rows: int = 1
    blocks: int = 1

    def defines(self, *, aligned: bool) -> dict[str, str]:
        return {
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.words),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_ROWS": str(self.rows),
            "ROW_BLOCKS": str(self.blocks),
            "ROW_ALIGNED": "true" if aligned else "false",
        }


def power_of_2(n: int) -> int:
    """The smallest that is not below n."""
    return 1 << max(0, n - 1).bit_length()


def block_shape(words: int, *, centred: bool = False) -> Shape | None:
    """How one block takes rows of that many 16-byte words; None for those it cannot hold.

    Few registers a thread, so that an SM has blocks that load while others reduce and store: 32, 40 or, with six words,
    46 of 704 threads. `centred`: layernorm.

    >>> block_shape(16), block_shape(512)
    (Shape(lanes=16, words=1, cluster=1, rows=8, blocks=12), Shape(lanes=256, words=2, cluster=1, rows=1, blocks=6))
    >>> block_shape(4096), block_shape(4225)
    (Shape(lanes=704, words=6, cluster=1, rows=1, blocks=2), None)
    """
    if words <= 128:
        lanes = min(32, power_of_2(words))
        return Shape(lanes, -(-words // lanes), 1, 128 // lanes, 12)
    if words <= 256:
        each, resident = 4, 1536
    elif words <= 512:
        each, resident = 2, 2048 if centred else 1536
    elif words <= 1024:
        each, resident = 2, 2048
    elif words <= 2048:
        each, resident = 4, 1536
    else:
        each, resident = 6, 1408
    lanes = 32 * -(-words // (32 * each))
    return Shape(lanes, each, blocks=resident // lanes) if lanes <= 704 else None


def cluster_shape(words: int, *, centred: bool = False) -> Shape | None:
    """How a cluster of blocks takes rows of that many 16-byte words; None for those that 16 blocks cannot hold.

    >>> cluster_shape(16384), cluster_shape(131073)
    (Shape(lanes=256, words=8, cluster=8, rows=1, blocks=4), None)
    """
    if words <= CLUSTER_WORDS:
        return block_shape(words, centred=centred)
    cluster = min(MOST_CLUSTER, power_of_2(-(-words // CLUSTER_WORDS)))
    lanes = 32 * -(-words // (32 * 8 * cluster))
    return Shape(lanes, 8, cluster, blocks=max(1, 1024 // lanes)) if lanes <= 1024 else None


@dataclass(frozen=True, slots=True)
class Given:
    """What a kernel reads: `r_MN` of add_rmsnorm only, `b_N` of layernorm only."""

    x_MN: Tensor
    w_N: Tensor
    eps: float
    r_MN: Tensor | None = None
    b_N: Tensor | None = None

    def check(self) -> None:
        """Raises BadField naming a tensor that is not contiguous or does not start on 16 bytes."""
        given = {"x_MN": self.x_MN, "r_MN": self.r_MN, "w_N": self.w_N, "b_N": self.b_N}
        present = {name: tensor for name, tensor in given.items() if tensor is not None}
        require_contiguous(**present)
        for name, tensor in present.items():
            if tensor.data_ptr() % VEC16_BYTES:
                raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")

    @property
    def width(self) -> int:
        return VEC16_BYTES // self.x_MN.element_size()

    @property
    def aligned(self) -> bool:
        """Whether every row starts on 16 bytes."""
        return self.x_MN.shape[1] % self.width == 0

    @property
    def words(self) -> int:
        """16-byte words that a row touches, wherever it starts."""
        n = self.x_MN.shape[1]
        return n // self.width if self.aligned else (n + 2 * self.width - 2) // self.width

    def defines(self) -> dict[str, str]:
        return {
            "ELEMENT": nvrtc.element_type(self.x_MN.dtype),
            "CENTRED": str(int(self.b_N is not None)),
            "ADDS": str(int(self.r_MN is not None)),
        }


def bind_rows(given: Given) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    given.check()
    shape = block_shape(given.words, centred=given.b_N is not None)
    if shape is not None:
        return _bind_rows(given, "normalise_rows", shape)
    return _bind_rows(given, "normalise_long_rows", Shape(1024, 1))


def bind_cluster(given: Given) -> Launch:
    """A block a row of up to 16 KiB, a cluster of blocks a longer one; rows of more than 2 MiB are read twice."""
    given.check()
    shape = cluster_shape(given.words, centred=given.b_N is not None)
    if shape is not None:
        return _bind_rows(given, "normalise_rows", shape)
    return _bind_rows(given, "normalise_long_rows", Shape(1024, 1))


def _bind_rows(given: Given, name: str, shape: Shape) -> Launch:
    defines = given.defines() | shape.defines(aligned=given.aligned)
    kernel = nvrtc.kernel(SOURCE, name, defines, cluster=shape.cluster)
    blocks = shape.cluster * -(-given.x_MN.shape[0] // shape.rows)
    return _launching(given, kernel, blocks, shape.lanes * shape.rows, cluster=shape.cluster)


ASYNC_SOURCE = Path(__file__).parent / "cuda_async.cu"


@dataclass(frozen=True, slots=True)
class Async:
    """A shape of blocks that stay, and how many of a thread's words wait in registers instead of shared memory."""

    shape: Shape
    held: int = 0


def async_shape(words: int, tensors: int, *, centred: bool = False) -> Async | None:
    """How blocks that stay take rows of that many 16-byte words, `tensors` of which are read; None for short ones.

    Three blocks of 512 threads an SM, or two of 1024, share its 227 KiB of shared memory; a cluster shares longer rows.

    >>> async_shape(1024, 1), async_shape(512, 1)
    (Async(shape=Shape(lanes=256, words=4, cluster=1, rows=1, blocks=6), held=0), None)
    >>> async_shape(4096, 1), async_shape(16384, 1)
    (Async(shape=Shape(lanes=512, words=8, cluster=1, rows=1, blocks=3), held=0), \
Async(shape=Shape(lanes=1024, words=4, cluster=4, rows=1, blocks=2), held=0))
    >>> async_shape(16384, 2)
    Async(shape=Shape(lanes=1024, words=8, cluster=2, rows=1, blocks=1), held=1)
    """
    if words <= 512:
        return None
    if words <= 1024 and tensors == 1:
        return Async(Shape(256, -(-words // 256), blocks=6))
    if words * tensors <= 4096:
        return Async(Shape(512, -(-words // 512), blocks=3))
    cluster = power_of_2(-(-words // 4096))
    if tensors == 1 and cluster <= MOST_CLUSTER:
        lanes = 512 if centred else 1024
        return Async(Shape(lanes, -(-words // (lanes * cluster)), cluster, blocks=3 if centred else 2))
    most = 14 // tensors
    cluster = power_of_2(-(-words // (1024 * (most + 1))))
    each = -(-words // (1024 * cluster))
    return Async(Shape(1024, each, cluster), max(0, each - most)) if cluster <= MOST_CLUSTER else None


def bind_async(given: Given) -> Launch:
    """Blocks that stay, rows of more than 8 KiB; shorter ones, and those that 16 blocks cannot hold, as bind_cluster."""
    import torch

    given.check()
    tensors = 1 if given.r_MN is None else 2
    found = async_shape(given.words, tensors, centred=given.b_N is not None)
    if found is None:
        return bind_cluster(given)
    shape = found.shape
    defines = given.defines() | shape.defines(aligned=given.aligned) | {"ASYNC_HELD": str(found.held)}
    shared = (shape.words - found.held) * shape.lanes * VEC16_BYTES * tensors
    kernel = nvrtc.kernel(ASYNC_SOURCE, "normalise_async", defines, cluster=shape.cluster, shared_bytes=shared)
    fit = nvrtc.resident(kernel, shape.lanes, cluster=shape.cluster, shared_bytes=shared)
    blocks = min(fit, shape.cluster * given.x_MN.shape[0])
    tile_counter = torch.zeros(2, dtype=torch.int32, device=given.x_MN.device)
    return _launching(
        given, kernel, blocks, shape.lanes, cluster=shape.cluster, shared_bytes=shared, tile_counter=tile_counter
    )


def _launching(
    given: Given,
    kernel: Any,
    blocks: int,
    threads: int,
    *,
    cluster: int = 1,
    shared_bytes: int = 0,
    tile_counter: Tensor | None = None,
) -> Launch:
    import torch

    m, n = given.x_MN.shape
    y_MN = torch.empty_like(given.x_MN)
    s_MN = None if given.r_MN is None else torch.empty_like(given.x_MN)
    tensors = (given.x_MN, given.r_MN, given.w_N, given.b_N, s_MN, y_MN)
    pointers = tuple(0 if t is None else t.data_ptr() for t in tensors)
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(given.eps))
    if tile_counter is not None:
        arguments = (*arguments, tile_counter.data_ptr())
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> Tensor | tuple[Tensor, ...]:
        assert tile_counter is None or tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return outputs

    return launch
