"""Do lines that a call read with the priority evict_last survive the flush? Cold times of one kernel with each priority.

    python tests/gpu/evict_last_lines.py

The kernel reads n numbers in fp32 and writes a sum for each 1,024. If it is faster with evict_last behind a flush, it finds its
lines of the call before. Several flushes are tried: that of the instrument, and the same behind two kernels that first replace
such lines by a part of its buffer or all of it, and then give these the usual priority. docs/measuring.md, "Lines that survive
the flush", has the figures.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import triton
import triton.language as tl

from kernelviz.measure.session.device_session import open_session
from kernelviz.measure.timing.kernels import Instruments, between_events_s
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).parent / "evict_last_lines.cu"
SIZES = tuple(2**exponent for exponent in (8, 12, 14, 16, 18, 20, 22, 24))
POLICIES = ("", "evict_last", "evict_first")
BLOCK, THREADS, ROUNDS = 1024, 512, 60
SHARES = (1 / 32, 1 / 8, 1 / 2, 1.0)


class Replacing(Instruments):
    """A flush behind which no line has the priority evict_last. `share`: of its buffer, twice the L2, by which they are
    replaced."""

    def __init__(self, device: torch.device, share: float) -> None:
        super().__init__(device)
        self._part = ctypes.c_longlong(int(share * self._count.value) // 8 * 8)
        self._replace = nvrtc.kernel(SOURCE, "kernelviz_replace_last")
        self._release = nvrtc.kernel(SOURCE, "kernelviz_usual_priority")

    def flush(self, cycles: torch.Tensor | None = None) -> None:
        vectors, part = self._vectors.data_ptr(), self._part
        nvrtc.launch(self._replace, self._grid, THREADS, vectors, part, self._guard, self._sink.data_ptr())
        nvrtc.launch(self._release, self._grid, THREADS, vectors, ctypes.c_longlong(part.value // 8))
        super().flush(cycles)


@triton.jit  # type: ignore[untyped-decorator]
def read_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, POLICY: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0, eviction_policy=POLICY)
    tl.store(y_ptr + program, tl.sum(x))


def reading(n: int, policy: str) -> Callable[[], torch.Tensor]:
    """A call that reads n numbers of its own with that priority."""
    x = torch.randn(n, device="cuda")
    y = torch.empty(-(-n // BLOCK), device="cuda")

    def launch() -> torch.Tensor:
        read_kernel[(y.numel(),)](x, y, n, BLOCK, policy)
        return y

    return launch


def cold_us(timer: Any, n: int) -> dict[str, float]:
    """The cold time of each priority, the calls in turn."""
    timed = {policy: timer.prepare(BoundLaunch(reading(n, policy))) for policy in POLICIES}
    blocks: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for _ in range(ROUNDS):
        (row,) = timer.collect([list(timed.values())])
        for policy, block in zip(timed, row, strict=True):
            blocks[policy].append(median(block.samples) * 1e6)
    return {policy or "usual": round(median(of), 4) for policy, of in blocks.items()}


def main() -> int:
    timer: Any = open_session("cuda:0").timer
    tried = {"the instrument's": timer.instruments}
    tried |= {f"replacing by {share} of the buffer": Replacing(timer.instruments.device, share) for share in SHARES}
    for name, instruments in tried.items():
        timer.instruments = instruments
        instruments.flush()
        timer._flush_s = min(between_events_s(instruments.flush) for _ in range(20))
        print(f"{name}: {timer._flush_s * 1e6:.1f} us between events", flush=True)  # noqa: T201
        for n in SIZES:
            print(n, cold_us(timer, n), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
