"""Streams from memory and inside the last-level cache: by this project's kernels on a GPU, by torch on a CPU.

On a GPU, streams from memory have several sizes. Smaller streams are faster, because the last writes of a kernel may still be in
the L2 when it ends. On a CPU, streams follow McCalpin's STREAM: Memory bandwidth and machine balance in current high performance
computers (IEEE TCCA Newsletter, 1995). As in STREAM, only the bytes of the program are counted. The read of a cache line before
it is written is not counted.
"""

import ctypes
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import torch
from torch import Tensor

from kernelviz.core import Device, Level, Roof, StreamName
from kernelviz.measure.roofs.candidate import Candidate, Contest
from kernelviz.measure.timing.host import DEFAULT_CACHE_BYTES
from kernelviz.ops import Launch
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).parent / "roofs.cu"
MIXES: dict[StreamName, tuple[int, int]] = {
    "read": (1, 0),
    "read2_write1": (2, 1),
    "copy": (1, 1),
    "read1_write2": (1, 2),
    "write": (0, 1),
}
"""Arrays read and written by each mix."""
LARGEST_BYTES = 2**32
MEMORY_SHARE = 8
"""A stream takes at most 1 / MEMORY_SHARE of the memory; its two buffers together take twice that."""
STEP = 4
CACHED_SHARES = (8, 4, 2)
"""Working sets inside the L2 are the size of the L2 divided by these numbers."""
CACHED_TRAFFIC = 32
"""A cached stream moves this many times the size of the L2, which takes about 300 us. Launch and tail are 1 % of that."""
OFFSETS, _PAGE_BYTES = 5, 2**21
"""Successive blocks of a stream rotate over this many offsets in the buffers: as many as the timer has graphs."""
HOST_MEMORY_CACHES = 4
"""On a CPU, arrays are at least four times as large as the caches, which is the rule of STREAM."""
HOST_CACHED_SHARE = 2
_THREADS = 512
_GUARD = ctypes.c_uint(7)
_CHUNK = 4096
"""Elements that the mix 1:2 writes twice on a CPU: 16 KiB, which are still in the first-level cache the second time."""


def roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    """Every mix from memory at every size, then inside the L2."""
    tools = _Buffers(device)
    for mix in MIXES:
        for total_bytes in memory_sizes(tools.l2_bytes, tools.largest_bytes):
            yield contest.best(_from_memory(tools, mix, total_bytes))
    for mix in MIXES:
        for share in CACHED_SHARES:
            yield contest.best(_inside_l2(tools, mix, tools.l2_bytes // share), warm=True)


def memory_sizes(l2_bytes: int, largest_bytes: int) -> tuple[int, ...]:
    """Bytes moved by a stream: from twice the L2 in steps of four, the last one the largest.

    >>> [n // 2**20 for n in memory_sizes(60 * 2**20, 2**32)]
    [120, 480, 1920, 4096]
    >>> [n // 2**20 for n in memory_sizes(50 * 2**20, 1600 * 2**20)]
    [100, 400, 1600]
    """
    sizes = [min(2 * l2_bytes, largest_bytes)]
    while sizes[-1] * STEP <= largest_bytes:
        sizes.append(sizes[-1] * STEP)
    # A last step of less than 1.5 times would add no information.
    return (*sizes, largest_bytes) if largest_bytes >= sizes[-1] * 1.5 else tuple(sizes)


class _Buffers:
    """The memory that all streams share, so that all mixes and sizes use the same addresses."""

    def __init__(self, device: Device) -> None:
        where = torch.device(device.id)
        properties = torch.cuda.get_device_properties(where)
        self.l2_bytes: int = properties.L2_cache_size
        self.largest_bytes: int = min(LARGEST_BYTES, properties.total_memory // MEMORY_SHARE)
        # Values are below 2^30, so that no AND of them has all bits set. A reading stream would write if one had.
        self.source = torch.randint(0, 2**30, (self.largest_bytes // 4,), dtype=torch.int32, device=where)
        self.target = torch.empty_like(self.source)
        resident = properties.max_threads_per_multi_processor // _THREADS
        self.resident_blocks: int = properties.multi_processor_count * resident

    def offsets(self, used_bytes: int) -> list[int]:
        """Offsets in bytes into both buffers, for a stream that uses `used_bytes` of each. The first offset is 0."""
        step = (self.largest_bytes - used_bytes) // OFFSETS // _PAGE_BYTES * _PAGE_BYTES
        return [i * step for i in range(OFFSETS)] if step > 0 else [0]

    def at(self, offset_bytes: int) -> tuple[Tensor, Tensor]:
        """Source and target from this offset on, as float32."""
        there = slice(offset_bytes // 4, None)
        return self.source[there].view(torch.float32), self.target[there].view(torch.float32)


def _from_memory(tools: _Buffers, mix: StreamName, total_bytes: int) -> Iterator[Candidate]:
    reads, writes = MIXES[mix]
    count = total_bytes // 16 // (reads + writes)
    roof = Roof(name=mix, level="dram", moved_bytes=(reads + writes) * count * 16)
    offsets = tools.offsets(max(reads, writes) * count * 16)
    for vectors, hint in itertools.product((1, 4), ("cached", "streaming")):
        kernel = nvrtc.kernel(SOURCE, f"kernelviz_stream_{reads}_{writes}_{vectors}_{hint}")
        blocks = -(-count // (_THREADS * vectors))
        launches = [_launch(kernel, blocks, tools, o, ctypes.c_longlong(count), _GUARD) for o in offsets]
        yield _candidate(roof, f"own {hint} stream, {vectors} x 16 bytes a thread", launches)
    calls = [library_stream(mix, *tools.at(o), count * 4) for o in offsets]
    library = [c for c in calls if c is not None]
    if library:
        yield _candidate(roof, library[0][0], [call for _, call in library])


def _inside_l2(tools: _Buffers, mix: StreamName, total_bytes: int) -> Iterator[Candidate]:
    reads, writes = MIXES[mix]
    count = total_bytes // 16 // (reads + writes)
    working_set_bytes = (reads + writes) * count * 16
    roof = Roof(name=mix, level="l2", moved_bytes=working_set_bytes)
    for vectors, waves in itertools.product((1, 4), (1, 16)):
        kernel = nvrtc.kernel(SOURCE, f"kernelviz_cached_stream_{reads}_{writes}_{vectors}")
        blocks = waves * tools.resident_blocks
        a_round = blocks * _THREADS * vectors * (reads + writes) * 16
        rounds = max(1, round(CACHED_TRAFFIC * tools.l2_bytes / a_round))
        sizes = (ctypes.c_uint(count), ctypes.c_int(rounds), _GUARD)
        how = (
            f"own stream inside the L2, {vectors} x 16 bytes a thread, {waves} x the blocks that fit, "
            f"{rounds * a_round / working_set_bytes:.0f} passes over the working set"
        )
        launches = [_launch(kernel, blocks, tools, o, *sizes) for o in tools.offsets(working_set_bytes)]
        yield _candidate(roof, how, launches, rounds * a_round)


def _candidate(roof: Roof, how: str, launches: Sequence[Launch], moved_bytes: int | None = None) -> Candidate:
    """A candidate for `roof` that makes the same call at several offsets.

    Without `moved_bytes`, the call moves the bytes of the roof.
    """
    moved = roof.moved_bytes if moved_bytes is None else moved_bytes
    return Candidate(msgspec.structs.replace(roof, how=how), launches[0], moved, tuple(launches[1:]))


def _launch(kernel: object, blocks: int, tools: _Buffers, offset_bytes: int, *sizes: object) -> Launch:
    pointers = [t.data_ptr() + offset_bytes for t in (tools.source, tools.target)]
    seen = tools.target[:4]  # A launch's outputs are poisoned, so it returns as few bytes as possible.

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, _THREADS, *pointers, *sizes)
        return seen

    return launch


def library_stream(
    mix: StreamName, source: Tensor, target: Tensor, elements: int
) -> tuple[str, Callable[[], Tensor]] | None:
    """torch's own kernel for a mix over float32 arrays of `elements`, or None if torch has none."""
    first, second, written = source[:elements], source[elements : 2 * elements], target[:elements]
    seen = target[:4]
    match mix:
        case "copy":
            return "torch copy_", lambda: (written.copy_(first), seen)[1]
        case "read":
            total = torch.empty((), dtype=torch.float32, device=source.device)
            return "torch sum", lambda: torch.sum(first, dim=0, out=total)
        case "read2_write1":
            return "torch add", lambda: (torch.add(first, second, out=written), seen)[1]
        case "write":
            return "torch fill_", lambda: (written.fill_(1.0), seen)[1]
        case "read1_write2":
            return None


def host_roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    """On a CPU: every mix from memory, then inside the last-level cache."""
    cache_bytes = device.last_level_cache_bytes or DEFAULT_CACHE_BYTES
    largest = HOST_MEMORY_CACHES * cache_bytes
    source, target = torch.rand(largest // 4), torch.zeros(largest // 4)
    levels: tuple[tuple[Level, int], ...] = (("dram", largest), ("l2", cache_bytes // HOST_CACHED_SHARE))
    for (level, total_bytes), (mix, (reads, writes)) in itertools.product(levels, MIXES.items()):
        elements = total_bytes // 4 // (reads + writes) // _CHUNK * _CHUNK
        how, launch = host_stream(mix, source, target, elements)
        moved = (reads + writes) * elements * 4
        roof = Roof(name=mix, level=level, moved_bytes=moved, how=f"{how}, {torch.get_num_threads()} threads")
        yield contest.best([Candidate(roof, launch, moved)], warm=level == "l2")


def host_stream(mix: StreamName, source: Tensor, target: Tensor, elements: int) -> tuple[str, Launch]:
    """A mix over float32 arrays of `elements` on a CPU: torch's own kernel, or copies for the mix 1:2."""
    library = library_stream(mix, source, target, elements)
    if library is not None:
        return library
    chunks = elements // _CHUNK
    read = source[:elements].view(chunks, 1, _CHUNK).expand(chunks, 2, _CHUNK)
    written = target[: 2 * elements].view(chunks, 2, _CHUNK)
    seen = target[:4]
    return "torch copy_ of each 16 KiB to two places", lambda: (written.copy_(read), seen)[1]
