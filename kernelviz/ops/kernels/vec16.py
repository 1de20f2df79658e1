"""How kernels of 16-byte words are laid over a vector: words a thread, threads a block, what is asked of the caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.gpu import multiprocessors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

WORD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Words of each input that a thread loads before it uses the first, threads a block, and whether loads are streaming: their
    lines are the first that the L2 gives up."""

    words: int
    threads: int
    streaming: bool

    @property
    def defines(self) -> dict[str, str]:
        """What the kernels are compiled with."""
        return {"WORDS": str(self.words), "THREADS": str(self.threads), "STREAMING": str(int(self.streaming))}

    def blocks(self, whole: int) -> int:
        """Blocks for so many words, at least one: its threads do the elements behind the last whole word."""
        return max(1, -(-whole // (self.words * self.threads)))


UNROLLED = Layout(words=4, threads=256, streaming=True)
"""64 bytes of each input in flight a thread."""
SMALL = Layout(words=1, threads=256, streaming=False)


def adaptive(whole: int, written_bytes: int, device: torch.device, *, within: Layout, beyond: Layout) -> Layout:
    """The layout for so many words of an input and so many bytes of output.

    `within` and `beyond` are those of vectors of many blocks whose output the L2 can hold, and cannot. Four words a thread pay
    while all blocks run at once or nearly so: 2^20 fp32 sums take 3.90 us on an H200 and 4.09 one word a thread, but 2^28 take
    736 and 730. Streaming loads pay as long as the L2 can keep what is written instead of them (2^23 sums 22.35 and 22.45 us),
    and cost 5 % beyond (769 and 730 us).
    """
    return _adaptive(whole, written_bytes, multiprocessors(device), _l2_bytes(device), within, beyond)


def _adaptive(whole: int, written_bytes: int, sms: int, l2_bytes: int, within: Layout, beyond: Layout) -> Layout:
    """
    >>> h200 = {"sms": 132, "l2_bytes": 60 * 2**20, "within": Layout(1, 256, True), "beyond": Layout(1, 128, False)}
    >>> _adaptive(2**14, 2**18, **h200)
    Layout(words=1, threads=256, streaming=False)
    >>> _adaptive(2**18, 2**22, **h200)
    Layout(words=4, threads=256, streaming=True)
    >>> _adaptive(2**21, 2**25, **h200)
    Layout(words=1, threads=256, streaming=True)
    >>> _adaptive(2**26, 2**30, **h200)
    Layout(words=1, threads=128, streaming=False)
    """
    if written_bytes > l2_bytes:
        return beyond
    blocks = UNROLLED.blocks(whole)
    if blocks < 0.75 * sms:
        return SMALL
    return UNROLLED if blocks <= 8 * sms else within


def _l2_bytes(device: torch.device) -> int:
    """Of a GPU; elsewhere, where nothing is timed, so little that tests reach every layout with small vectors."""
    import torch

    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.type == "cuda" else 2**18


def aligned(*tensors: Tensor) -> bool:
    """Whether 16-byte accesses of all of them are allowed. Of what torch allocates they are: it aligns to 512 bytes."""
    return all(t.data_ptr() % WORD_BYTES == 0 for t in tensors)


def whole_words(tensor: Tensor) -> int:
    """Whole 16-byte words; the elements behind them are fewer than one block has threads."""
    return tensor.numel() * tensor.element_size() // WORD_BYTES
