"""Streams on a CPU through torch with its current threads: McCalpin's STREAM, from memory and inside the last-level cache.

McCalpin: Memory bandwidth and machine balance in current high performance computers (IEEE TCCA Newsletter, 1995). As in STREAM,
only the program's bytes are counted; a cache's read of a line before it is written is not.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from kernelviz.core import Device, Level, Roof, StreamName
from kernelviz.measure.roofs.candidate import Candidate, Contest
from kernelviz.measure.roofs.streams import MIXES, library_stream
from kernelviz.measure.timing.host import DEFAULT_CACHE_BYTES
from kernelviz.ops import Launch

MEMORY_CACHES = 4
"""STREAM's rule: arrays of at least four times the caches."""
CACHED_SHARE = 2
_CHUNK = 4096
"""Elements that the mix 1:2 writes twice: 16 KiB, which are still in the first-level cache the second time."""


def roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    cache_bytes = device.last_level_cache_bytes or DEFAULT_CACHE_BYTES
    largest = MEMORY_CACHES * cache_bytes
    source = torch.rand(largest // 4)
    target = torch.zeros(largest // 4)
    levels: tuple[tuple[Level, int], ...] = (("dram", largest), ("l2", cache_bytes // CACHED_SHARE))
    for level, total_bytes in levels:
        for mix, (reads, writes) in MIXES.items():
            elements = total_bytes // 4 // (reads + writes) // _CHUNK * _CHUNK
            moved = (reads + writes) * elements * 4
            how, launch = _stream(mix, source, target, elements)
            roof = Roof(name=mix, level=level, moved_bytes=moved, how=f"{how}, {torch.get_num_threads()} threads")
            yield contest.best([Candidate(roof, launch, moved)], warm=level == "l2")


def _stream(mix: StreamName, source: Tensor, target: Tensor, elements: int) -> tuple[str, Launch]:
    library = library_stream(mix, source, target, elements)
    if library is not None:
        return library
    chunks = elements // _CHUNK
    read = source[:elements].view(chunks, 1, _CHUNK).expand(chunks, 2, _CHUNK)
    written = target[: 2 * elements].view(chunks, 2, _CHUNK)
    seen = target[:4]
    return "torch copy_ of each 16 KiB to two places", lambda: (written.copy_(read), seen)[1]
