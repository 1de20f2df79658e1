"""Do lines that a call read with the priority evict_last survive the flush? Cold times of one kernel with each priority.

    python tests/gpu/evict_last_lines.py

The kernel reads n numbers in fp32 and writes a sum for each 1,024. If it is faster with evict_last behind a flush, it finds its
lines of the call before. Tried are the flush of the instrument, the same with another share of the L2 by whose lines such lines
are replaced, and one that replaces none. docs/measuring.md, "Lines that are to be kept", has the figures.
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
from kernelviz.measure.timing.kernels import LINE_BYTES, REPLACED_SHARE, Instruments
from kernelviz.measure.timing.timer import BoundLaunch

SIZES = tuple(2**exponent for exponent in (8, 12, 14, 16, 18, 20, 22, 24))
POLICIES = ("", "evict_last", "evict_first")
BLOCK, ROUNDS = 1024, 60
SHARES = (0, 1 / 16, 1 / 4, 1)


def replacing(share: float, device: torch.device) -> Instruments:
    """The flush with another REPLACED_SHARE."""
    instruments = Instruments(device)
    lines = int(share * instruments.l2_bytes) // LINE_BYTES
    instruments._replaced_lines = ctypes.c_longlong(lines)
    instruments._replaced = ctypes.c_longlong(lines * LINE_BYTES // 16)
    return instruments


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
    tried = {f"the instrument's, {REPLACED_SHARE} of the L2": timer.instruments}
    tried |= {f"{share} of the L2": replacing(share, timer.instruments.device) for share in SHARES}
    for name, instruments in tried.items():
        timer.instruments = instruments
        instruments.flush()
        timer._flush_s = timer.stamps.flush_length_s(instruments.flush)
        print(f"{name}: the flush takes {timer._flush_s * 1e6:.1f} us", flush=True)  # noqa: T201
        for n in SIZES:
            print(n, cold_us(timer, n), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
