"""How long this machine's processors take to launch a call, in proportion to which limits of the host's time grow."""

from __future__ import annotations

import statistics
import time

CALL_S = 5.1e-6
"""A call of torch.add of one element on the host (of an H200) where limits of the host's time were chosen."""
MOST = 4.0
"""The most that limits grow."""
_BLOCKS, _CALLS = 40, 100


def host_call_s() -> float:
    """The host's time for that call on this machine: the median of the fastest quarter of 40 blocks. It takes 20 to 40 ms.

    Hosts of one GPU differ by up to 50 %; those of several took twice as long (9.7 and 10.1 µs on hosts of four and two H200).
    """
    import torch

    x = torch.ones(1, device="cuda")
    out = torch.empty_like(x)

    def block_s() -> float:
        begun = time.perf_counter()
        for _ in range(_CALLS):
            torch.add(x, x, out=out)
        ended = time.perf_counter()
        torch.cuda.synchronize()
        return (ended - begun) / _CALLS

    blocks = sorted(block_s() for _ in range(_BLOCKS))
    return statistics.median(blocks[: _BLOCKS // 4])


def slowdown(call_s: float) -> float:
    """The factor by which limits of the host's time grow, from 1 to `MOST`.

    >>> slowdown(2 * CALL_S), slowdown(0.5 * CALL_S), slowdown(1.0)
    (2.0, 1.0, 4.0)
    """
    return min(MOST, max(1.0, call_s / CALL_S))
