"""Checks of the hardware counters in a document from elsewhere: every number is possible, and their count is bounded."""

import msgspec

from kernelviz.core import Counters, DocumentError, KernelCounters
from kernelviz.core.counters import MOST_KERNELS

MOST_TEXT = 2_000
"""Characters of a kernel's name, of a version and of a metric's name."""
MOST_NOT_READ = 200
_MOST_DIMENSION = 2**31
_BOUNDS: tuple[tuple[str, float], ...] = (
    ("_bytes", 1e18),
    ("_requests", 1e18),
    ("_sectors", 1e18),
    ("_per_thread", 1e6),
    ("_hz", 1e12),
    ("_s", 1e9),
    # Two passes read a hit rate, so that it may exceed 1 a little.
    ("_fraction", 2.0),
    ("_warps", 1e6),
)
"""The largest value of a field, by the end of its name."""


def check_counters(counters: Counters, path: str) -> None:
    """Errors: DocumentError with the path of the first field that cannot be used."""
    _at_most(len(counters.kernels), MOST_KERNELS, "kernels", f"{path}.kernels")
    _at_most(len(counters.not_read), MOST_NOT_READ, "metrics", f"{path}.not_read")
    texts = (counters.version or "", counters.measured_at or "", *counters.not_read)
    _at_most(max(map(len, texts)), MOST_TEXT, "characters in a text", path)
    _check(counters.launches, 1, 1e12, f"{path}.launches")
    for i, kernel in enumerate(counters.kernels):
        _check_kernel(kernel, f"{path}.kernels[{i}]")


def _check_kernel(kernel: KernelCounters, path: str) -> None:
    _at_most(len(kernel.kernel), MOST_TEXT, "characters in a text", f"{path}.kernel")
    for name in ("grid", "block"):
        for size in getattr(kernel, name) or ():
            _check(size, 1, _MOST_DIMENSION, f"{path}.{name}")
    for name, value in msgspec.structs.asdict(kernel).items():
        if isinstance(value, int | float):
            _check(value, 0, next(most for end, most in _BOUNDS if name.endswith(end)), f"{path}.{name}")
    for reason, warps in kernel.stalls.items():
        _check(warps, 0, 1e6, f"{path}.stalls.{reason}")


def _check(value: float, low: float, high: float, path: str) -> None:
    """The bounds are finite, so NaN and infinity are outside them."""
    if not low <= value <= high:
        raise DocumentError(f"{str(value)[:40]} is outside {low:g} to {high:g}", path=path)


def _at_most(count: int, most: int, what: str, path: str) -> None:
    if count > most:
        raise DocumentError(f"{count:,} {what}; at most {most:,} are read", path=path)
