"""How fast this machine's processors are: limits of times that are mostly the host's work grow with it."""

from __future__ import annotations

import statistics
import time

HOST_CALL_S = 5.1e-6
"""A call of torch.add of one element on the host where the limits were chosen (a warm point took 15.6 to 16.0 ms there)."""


def host_call_s() -> float:
    """The host's time for that call on this machine. Hosts differ by half, and where other processes share the processors by
    twice (9.7 µs were seen)."""
    import torch

    x = torch.ones(1, device="cuda")
    out = torch.empty_like(x)

    def block_s() -> float:
        begun = time.perf_counter()
        for _ in range(100):
            torch.add(x, x, out=out)
        ended = time.perf_counter()
        torch.cuda.synchronize()
        return (ended - begun) / 100

    blocks = sorted(block_s() for _ in range(40))
    return statistics.median(blocks[: len(blocks) // 4])


def slowdown(call_s: float) -> float:
    """The factor by which a limit grows; at least 1.

    >>> slowdown(2 * HOST_CALL_S), slowdown(0.5 * HOST_CALL_S)
    (2.0, 1.0)
    """
    return max(1.0, call_s / HOST_CALL_S)
