"""The roofs of this device, measured by the same method as everything else: streams by read:write mix, matrix products.

The roof of a mix is the fastest of the candidates tried (own 16-byte streaming kernels and torch's own kernel of that mix, at
two sizes: what a kernel wrote last may still lie in the L2 when it ends, which flatters the smaller one), so it is a ceiling
that was reached, never a constant.
"""

from __future__ import annotations

import ctypes
import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kernelviz.core.events import RoofDone
from kernelviz.core.problem import Method
from kernelviz.core.run import Device, Roof, RoofName
from kernelviz.measure.contract import Emit, Stop
from kernelviz.measure.rounds import Rounds, Series
from kernelviz.measure.timer import DeviceTimer, Place
from kernelviz.ops import Launch

STREAMS: dict[RoofName, tuple[int, int]] = {
    "read": (1, 0),
    "copy": (1, 1),
    "read2_write1": (2, 1),
    "read1_write2": (1, 2),
    "write": (0, 1),
}
"""Arrays read and written by each mix."""
CUDA_BYTES = (2**29, 2**31)
_THREADS = 512
CPU_CACHES = 4
CUDA_MATRIX, CPU_MATRIX = (4096, 8192), (1024, 2048)
_BUDGET = Method(budget_s=0.3)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to reach a roof: what it does in one call."""

    name: RoofName
    precision: str | None
    how: str
    amount: float
    moved_bytes: int | None
    launch: Launch


def calibrate(device: Device, timer: DeviceTimer, emit: Emit, stop: Stop) -> None:
    """Measure every roof of the device and emit each as soon as its last candidate is done."""
    streams = _cuda_streams if device.kind == "cuda" else _cpu_streams
    for mix in STREAMS:
        best(streams(device, mix), timer, emit, stop)
    for precision in ("fp32", "tf32", "fp16", "bf16") if device.kind == "cuda" else ("fp32", "bf16"):
        best(_matmuls(device, precision), timer, emit, stop)


def best(candidates: Iterator[Candidate], timer: DeviceTimer, emit: Emit, stop: Stop) -> None:
    """Time the candidates one after another and emit the fastest as the roof."""
    found: Roof | None = None
    for candidate in candidates:
        if stop():
            return
        roof = _measured(candidate, timer, stop)
        if roof is not None and (found is None or _rate(roof) > _rate(found)):
            found = roof
    if found is not None:
        emit(RoofDone(roof=found))


def _rate(roof: Roof) -> float:
    return roof.bandwidth_bytes_per_s or roof.rate_flop_per_s or 0.0


def _measured(candidate: Candidate, timer: DeviceTimer, stop: Stop) -> Roof | None:
    candidate.launch()
    series = Series(candidate.how, timer.prepare(Place(candidate.launch)))
    if not Rounds(timer, _BUDGET, stop).take([series], None, None, lambda _: None):
        return None
    figure = series.figure(timer)
    clocks = sorted(b.clock_hz for b in series.blocks if b.clock_hz)
    rate = candidate.amount / figure.estimate
    stream = candidate.name != "matmul"
    return Roof(
        name=candidate.name,
        precision=candidate.precision,
        bandwidth_bytes_per_s=rate if stream else None,
        rate_flop_per_s=None if stream else rate,
        low=candidate.amount / figure.high if figure.high else None,
        high=candidate.amount / figure.low if figure.low else None,
        moved_bytes=candidate.moved_bytes,
        clock_hz=clocks[len(clocks) // 2] if clocks else None,
        timer=timer.name,
        how=candidate.how,
        measured_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def _cuda_streams(device: Device, mix: RoofName) -> Iterator[Candidate]:
    reads, writes = STREAMS[mix]
    for total in CUDA_BYTES:
        count = min(total, (device.memory_bytes or total) // 8) // 16 // (reads + writes)
        where = torch.device(device.id)
        source = torch.randint(0, 2**30, (max(reads, 1) * count * 4,), dtype=torch.int32, device=where)
        target = torch.empty(max(writes, 1) * count * 4, dtype=torch.int32, device=where)
        moved = (reads + writes) * count * 16
        for words in (1, 4):
            for hint in ("cached", "streaming"):
                launch = _own_stream(f"kernelviz_stream_{reads}_{writes}_{words}_{hint}", source, target, count, words)
                yield Candidate(mix, None, f"own {hint} stream, {words} x 16 bytes a thread", moved, moved, launch)
        library = _library_stream(mix, source, target, count)
        if library is not None:
            yield Candidate(mix, None, library[0], moved, moved, library[1])


def _own_stream(name: str, source: torch.Tensor, target: torch.Tensor, count: int, words: int) -> Launch:
    from kernelviz.measure.instruments import SOURCE
    from kernelviz.ops import nvrtc

    kernel = nvrtc.kernel(SOURCE, name)
    blocks = -(-count // (_THREADS * words))
    pointers = (source.data_ptr(), target.data_ptr())

    def launch() -> torch.Tensor:
        nvrtc.launch(kernel, blocks, _THREADS, *pointers, ctypes.c_longlong(count), ctypes.c_uint(7))
        return target

    return launch


def _library_stream(
    mix: RoofName, source: torch.Tensor, target: torch.Tensor, count: int
) -> tuple[str, Callable[[], torch.Tensor]] | None:
    """torch's own kernel of a mix over the same bytes, as float32."""
    read, written = source.view(torch.float32), target.view(torch.float32)
    elements = count * 4
    if mix == "copy":
        return "torch copy_", lambda: written[:elements].copy_(read[:elements])
    if mix == "read":
        out = torch.empty((), dtype=torch.float32, device=read.device)
        return "torch sum", lambda: torch.sum(read[:elements], dim=0, out=out)
    if mix == "read2_write1":
        return "torch add", lambda: torch.add(read[:elements], read[elements : 2 * elements], out=written[:elements])
    if mix == "write":
        return "torch fill_", lambda: written[:elements].fill_(1.0)
    return None


def _cpu_streams(device: Device, mix: RoofName) -> Iterator[Candidate]:
    reads, writes = STREAMS[mix]
    cache = device.last_level_cache_bytes or 32 * 2**20
    count = CPU_CACHES * cache // 16
    source = torch.randint(0, 2**30, (max(reads, 1) * count * 4,), dtype=torch.int32)
    target = torch.zeros(max(writes, 1) * count * 4, dtype=torch.int32)
    moved = (reads + writes) * count * 16
    library = _library_stream(mix, source, target, count)
    if library is not None:
        yield Candidate(mix, None, library[0], moved, moved, library[1])


def _matmuls(device: Device, precision: str) -> Iterator[Candidate]:
    from kernelviz.measure.tensors import torch_dtype
    from kernelviz.ops import op_named

    op = op_named("matmul")
    dtype, compute = ("fp32", precision.replace("fp32", "ieee")) if precision in ("fp32", "tf32") else (precision, None)
    for n in CUDA_MATRIX if device.kind == "cuda" else CPU_MATRIX:
        a, b = (torch.randn((n, n), device=device.id).to(torch_dtype(dtype)) for _ in range(2))
        launch = op.variant_named("torch_eager").bind(a, b, compute=compute)
        how = f"torch matmul {n}x{n}x{n}, random data"
        yield Candidate("matmul", precision, how, 2.0 * n**3, 3 * n * n * a.element_size(), launch)
