"""Which measured roofs can be used. A roof that is too uncertain, or that cannot be true, is refused with a reason.

A roof is stored as it was measured. Whether it can be used is derived from it each time, so that roofs of earlier versions and
of documents are checked by the same rules:

- wide: its 95 % interval is wider than ±10 % of its value. Every share of the roof would be uncertain by as much, and the rules
  that use shares (a limiter at 60 % of a roof) would decide by chance. On a processor, the interval
  reaches up to what would have been reached if no other program had used it meanwhile.
- slower_than_memory: a stream inside the last-level cache that is more than 1 % slower than the same mix from memory. Data from
  memory pass through the cache, so the cache cannot be slower. On virtual machines the reported cache is often shared or absent.
- above_data_sheet: faster than the vendor's bandwidth, or than the vendor's peak at the measured clock. The part of the traffic
  that may stay in the cache is left out of the comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Roof
from kernelviz.core.result import half_width
from kernelviz.core.run import StreamName

RefusalKind = Literal["wide", "slower_than_memory", "above_data_sheet"]

MOST_HALF_WIDTH = 0.1
REPEATS = 0.01
"""Two calibrations of one GPU agree within this fraction. Writes into the L2 of an H200 reach 4.71 to 4.78 TB/s, and writes to
its memory 4.71, because the multiprocessors limit both; so which of the two is slower is chance."""
ROUNDING = 0.02
"""Data sheets round: 4.8 TB/s stands for anything up to 1 % more. A measured roof has an interval besides."""
WRITTEN_SHARES: dict[StreamName, float] = {
    "read": 0.0,
    "read2_write1": 1 / 3,
    "copy": 1 / 2,
    "read1_write2": 2 / 3,
    "write": 1.0,
}
"""Of the measured streams: written bytes over moved bytes."""
_WRITTEN: dict[str, float] = {str(name): share for name, share in WRITTEN_SHARES.items()}


@dataclass(frozen=True, slots=True)
class RoofRefusal:
    """A roof that cannot be used. `half_width_fraction`: of its interval, for ``wide``. `limit`: the roof that it contradicts."""

    roof: Roof
    kind: RefusalKind
    half_width_fraction: float | None = None
    limit: Roof | None = None


@dataclass(frozen=True, slots=True)
class CheckedRoofs:
    """The roofs that can be used, and those that were refused."""

    usable: tuple[Roof, ...]
    refused: tuple[RoofRefusal, ...] = ()


def value_of(roof: Roof) -> float | None:
    """The value of a roof in its own unit: flop/s, bytes/s or seconds."""
    values = (roof.rate_flop_per_s, roof.bandwidth_bytes_per_s, roof.time_s)
    return next((v for v in values if v is not None), None)


def half_width_of(roof: Roof) -> float | None:
    """Half the interval as a fraction of the value; None if there is no interval.

    >>> half_width_of(Roof(name="copy", bandwidth_bytes_per_s=2.0, low=1.0, high=3.0))
    0.5
    """
    value = value_of(roof)
    return None if not value else half_width(value, roof.low, roof.high)


def is_wide(roof: Roof) -> bool:
    """Whether the interval of a roof is too wide to use it. A roof without an interval, of an earlier version, is not."""
    return (half_width_of(roof) or 0.0) > MOST_HALF_WIDTH


def cached_fraction(roof: Roof, cache_bytes: int | None) -> float:
    """The largest share of a stream's traffic that may stay in the cache, because its last writes need not reach memory.

    Reads come from memory: the caches are flushed before each call. 0 if the size of the stream or of the cache is unknown.

    >>> round(cached_fraction(Roof(name="read2_write1", level="dram", moved_bytes=105_000_000), 50 * 2**20), 2)
    0.33
    >>> cached_fraction(Roof(name="read", level="dram", moved_bytes=105_000_000), 50 * 2**20)
    0.0
    """
    if roof.level != "dram" or not roof.moved_bytes or not cache_bytes:
        return 0.0
    return min(_WRITTEN.get(roof.name, 0.0), cache_bytes / roof.moved_bytes)


def refusal(
    roof: Roof, measured: Sequence[Roof] = (), ceilings: Sequence[Roof] = (), cache_bytes: int | None = None
) -> RoofRefusal | None:
    """Why a roof cannot be used; None if it can.

    `measured`: roofs of the same device. `ceilings`: those of its data sheet. `cache_bytes`: the size of its last-level cache.

    >>> refusal(Roof(name="matmul", precision="fp64", rate_flop_per_s=1e9, low=0.5e9, high=13e9)).kind
    'wide'
    """
    if is_wide(roof):
        return RoofRefusal(roof, "wide", half_width_fraction=half_width_of(roof))
    memory = memory_stream(roof, measured) if roof.level == "l2" else None
    if memory is not None and (value_of(roof) or 0.0) < (value_of(memory) or 0.0) * (1 - REPEATS):
        return RoofRefusal(roof, "slower_than_memory", limit=memory)
    sheet = _ceiling(roof, ceilings)
    at_most = None if sheet is None else _promised(roof, sheet, cache_bytes)
    lowest = roof.low if roof.low is not None else value_of(roof)
    if sheet is not None and at_most is not None and lowest is not None and lowest > at_most * (1 + ROUNDING):
        return RoofRefusal(roof, "above_data_sheet", limit=sheet)
    return None


def memory_stream(cached: Roof, measured: Sequence[Roof]) -> Roof | None:
    """The stream of the same mix from memory with the most bytes, of which the cache holds the least.

    Where none of that mix can be used, it is the slowest stream from memory of another mix.
    """
    known = [r for r in measured if r.level == "dram" and not is_wide(r)]
    same = [r for r in known if r.name == cached.name]
    if not same:
        return min(known, key=lambda r: r.bandwidth_bytes_per_s or 0.0, default=None)
    return max(same, key=lambda r: r.moved_bytes or 0)


def checked(roofs: Sequence[Roof], ceilings: Sequence[Roof] = (), cache_bytes: int | None = None) -> CheckedRoofs:
    """The roofs of one device in their order, without those that cannot be used."""
    refused = {id(r): reason for r in roofs if (reason := refusal(r, roofs, ceilings, cache_bytes)) is not None}
    return CheckedRoofs(tuple(r for r in roofs if id(r) not in refused), tuple(refused.values()))


def newest_of(roofs: Sequence[Roof], void: Sequence[Roof] = ()) -> tuple[Roof, ...]:
    """The newest roof of each kind (Roof.key) of roofs in the order of measuring.

    Roofs of an earlier version without level and unit are void if `roofs` or `void` has one of the same kind with them.
    """
    replaced = {(roof.name, roof.precision) for roof in (*roofs, *void) if roof.level or roof.unit}
    current = (r for r in roofs if r.level or r.unit or (r.name, r.precision) not in replaced)
    return tuple({roof.key: roof for roof in current}.values())


def checked_newest(
    roofs: Sequence[Roof], ceilings: Sequence[Roof] = (), cache_bytes: int | None = None
) -> CheckedRoofs:
    """The newest usable roof of each kind of all roofs that were measured on a device, in the order of measuring.

    Where the newest one is refused, an earlier one of the same kind is used, because the hardware is the same. The refusal is
    listed.
    """
    alone = {id(r): refusal(r, (), ceilings, cache_bytes) for r in roofs}
    now = checked(newest_of([r for r in roofs if alone[id(r)] is None], roofs), ceilings, cache_bytes)
    refused = [reason for r in newest_of(roofs) if (reason := alone[id(r)]) is not None]
    return CheckedRoofs(now.usable, (*refused, *now.refused))


def _ceiling(roof: Roof, ceilings: Sequence[Roof]) -> Roof | None:
    """The data sheet's roof for the same thing. Of the multiply-adds in registers, only those in fp32 run on the units whose peak
    a sheet states."""
    if roof.name in WRITTEN_SHARES and roof.level != "l2":
        return next((c for c in ceilings if c.bandwidth_bytes_per_s is not None), None)
    if roof.name in ("matmul", "mma") or (roof.name == "fma" and roof.precision == "fp32"):
        return next((c for c in ceilings if c.rate_flop_per_s is not None and c.precision == roof.precision), None)
    return None


def _promised(roof: Roof, sheet: Roof, cache_bytes: int | None) -> float | None:
    """The most that the data sheet allows a roof to be; None if the sheet does not state the clock of a peak."""
    if sheet.bandwidth_bytes_per_s is not None:
        in_cache = cached_fraction(roof, cache_bytes)
        # A stream that only writes and fits into the cache may reach memory not at all, so nothing can be said of it.
        return sheet.bandwidth_bytes_per_s / (1 - in_cache) if cache_bytes and in_cache < 1 else None
    if sheet.rate_flop_per_s is None or sheet.clock_hz is None or roof.clock_hz is None:
        return None
    return sheet.rate_flop_per_s * max(1.0, roof.clock_hz / sheet.clock_hz)
