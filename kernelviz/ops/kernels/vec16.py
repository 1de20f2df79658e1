"""Launch shapes of kernels that walk a flat tensor in 16-byte vectors: vectors a thread, threads a block, cache hints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.gpu import multiprocessors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

VEC16_BYTES = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Vectors of each input that a thread loads before it uses the first, threads a block, and whether loads are streaming
    (the L2 evicts their lines first)."""

    vectors: int
    threads: int
    streaming: bool

    @property
    def defines(self) -> dict[str, str]:
        """What the kernels are compiled with."""
        return {"VECTORS": str(self.vectors), "THREADS": str(self.threads), "STREAMING": str(int(self.streaming))}

    def blocks(self, vectors: int) -> int:
        """Blocks for that many vectors, at least one: its threads process the elements behind the last whole vector."""
        return max(1, -(-vectors // (self.vectors * self.threads)))


UNROLLED = Layout(vectors=4, threads=256, streaming=True)
"""64 bytes of each input in flight a thread."""
SMALL = Layout(vectors=1, threads=256, streaming=False)


def adaptive(
    vectors_of_input: int, written_bytes: int, device: torch.device, *, within: Layout, beyond: Layout
) -> Layout:
    """The layout for that many 16-byte vectors of an input and bytes of output.

    `within` and `beyond` are the layouts of large inputs whose output fits into the L2, or does not. Four vectors a thread are
    faster while all blocks run at once or nearly so: 2^20 fp32 sums take 3.90 us on an H200, and 4.09 with one vector a thread,
    but 2^28 take 736 and 730 us. Streaming loads are faster as long as the L2 keeps what is written instead of what was read
    (2^23 sums: 22.35 and 22.45 us), and 5 % slower beyond (769 and 730 us).
    """
    return _adaptive(vectors_of_input, written_bytes, multiprocessors(device), _l2_bytes(device), within, beyond)


def _adaptive(
    vectors_of_input: int, written_bytes: int, sms: int, l2_bytes: int, within: Layout, beyond: Layout
) -> Layout:
    """
    >>> h200 = {"sms": 132, "l2_bytes": 60 * 2**20, "within": Layout(1, 256, True), "beyond": Layout(1, 128, False)}
    >>> _adaptive(2**14, 2**18, **h200)
    Layout(vectors=1, threads=256, streaming=False)
    >>> _adaptive(2**18, 2**22, **h200)
    Layout(vectors=4, threads=256, streaming=True)
    >>> _adaptive(2**21, 2**25, **h200)
    Layout(vectors=1, threads=256, streaming=True)
    >>> _adaptive(2**26, 2**30, **h200)
    Layout(vectors=1, threads=128, streaming=False)
    """
    if written_bytes > l2_bytes:
        return beyond
    blocks = UNROLLED.blocks(vectors_of_input)
    if blocks < 0.75 * sms:
        return SMALL
    return UNROLLED if blocks <= 8 * sms else within


def _l2_bytes(device: torch.device) -> int:
    """Size of a GPU's L2. On a CPU, where nothing is timed, a small number: tests reach every layout with small inputs."""
    import torch

    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.type == "cuda" else 2**18


def aligned(*tensors: Tensor) -> bool:
    """Whether all of them start on 16 bytes. What torch allocates does: it aligns to 512 bytes."""
    return all(t.data_ptr() % VEC16_BYTES == 0 for t in tensors)


def whole_vectors(tensor: Tensor) -> int:
    """Whole 16-byte vectors of a tensor; fewer elements than a block has threads are left behind them."""
    return tensor.numel() * tensor.element_size() // VEC16_BYTES
