"""Do lines that a call read with the priority evict_last survive the flush? Cold times of one kernel with each priority.

    python tests/gpu/evict_last_lines.py

The kernel reads n numbers in fp32 and writes a sum for each 1,024. If it is faster with evict_last behind a flush, it finds its
lines of the call before. The script compares flushes that replace 1/2 (the instrument's), 0, 1/16, 1/4 and all of the L2 before
they read twice the L2. Then a call reads an array twice: its second read finds fewer lines in the L2 if the flush leaves lines
there that have the priority evict_last, as one without its second kernel does. docs/measuring.md, "Lines with the priority
evict_last", has the figures.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import triton
import triton.language as tl

from kernelviz.measure.session.device_session import open_session
from kernelviz.measure.timing.kernels import REPLACED_SHARE, Instruments
from kernelviz.measure.timing.timer import BoundLaunch

SIZES = tuple(2**exponent for exponent in (8, 12, 14, 16, 18, 20, 22, 24))
POLICIES = ("", "evict_last", "evict_first")
BLOCK, ROUNDS = 1024, 60
SHARES = (0, 1 / 16, 1 / 4, 1)
READ_TWICE_BYTES = (8 * 2**20, 24 * 2**20, 40 * 2**20)


class WithoutReset(Instruments):
    """A flush that replaces all of the L2 and leaves the priority evict_last to the lines by which it does so."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device, replaced_share=1.0)
        self._replaced_lines = ctypes.c_longlong(0)


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


def cold_us(timer: Any, calls: dict[str, Callable[[], torch.Tensor]]) -> dict[str, float]:
    """The cold time of each call, the calls in turn."""
    timed = {name: timer.prepare(BoundLaunch(call)) for name, call in calls.items()}
    blocks: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        (row,) = timer.collect([list(timed.values())])
        for name, block in zip(timed, row, strict=True):
            blocks[name].append(median(block.samples) * 1e6)
    return {name: round(median(of), 4) for name, of in blocks.items()}


def once_and_twice(size_bytes: int) -> dict[str, Callable[[], torch.Tensor]]:
    """A call that reads an array once, and one that reads it twice, one read after the other."""
    once = reading(size_bytes // 4, "")

    def twice() -> torch.Tensor:
        once()
        return once()

    return {"once": once, "twice": twice}


def main() -> int:
    timer: Any = open_session("cuda:0").timer
    device = timer.instruments.device
    tried = {f"the instrument's, {REPLACED_SHARE} of the L2": timer.instruments}
    tried |= {f"{share} of the L2": Instruments(device, replaced_share=share) for share in SHARES}
    for name, instruments in [*tried.items(), *reversed(tried.items())]:
        timer.instruments = instruments
        instruments.flush()
        timer._flush_s = timer.stamps.flush_length_s(instruments.flush)
        print(f"{name}: the flush takes {timer._flush_s * 1e6:.1f} us", flush=True)  # noqa: T201
        for n in SIZES:
            calls = {policy or "usual": reading(n, policy) for policy in POLICIES}
            print(n, cold_us(timer, calls), flush=True)  # noqa: T201
    for name, instruments in (tried | {"all of the L2, priority not set back": WithoutReset(device)}).items():
        timer.instruments = instruments
        for size_bytes in READ_TWICE_BYTES:
            print(f"{name}: {size_bytes} bytes", cold_us(timer, once_and_twice(size_bytes)), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
