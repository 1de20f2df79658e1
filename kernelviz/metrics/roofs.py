"""Roofs in words, for every page, chart and terminal alike."""

from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core import LaunchCost, Roof, RoofName, units

STREAMS: Mapping[RoofName, str] = MappingProxyType(
    {
        "read": "read",
        "read2_write1": "read:write 2:1",
        "copy": "copy",
        "read1_write2": "read:write 1:2",
        "write": "write",
    }
)
_TRANSFERS: Mapping[RoofName, str] = MappingProxyType({"h2d": "host to device", "d2h": "device to host"})
_LAUNCHES: Mapping[LaunchCost, str] = MappingProxyType(
    {
        "empty_kernel": "empty kernel on the device",
        "torch_call": "one torch call",
        "kernel_launch": "one kernel of our own",
        "graph_launch": "one graph",
    }
)


def roof_name(roof: Roof) -> str:
    """What a roof is of, in words.

    >>> roof_name(Roof(name="read2_write1", level="dram", moved_bytes=402_653_184)), roof_name(Roof(name="copy"))
    ('read:write 2:1 at 403 MB', 'copy')
    >>> roof_name(Roof(name="read", level="l2", moved_bytes=2**24))
    'read in cache at 16.8 MB'
    >>> roof_name(Roof(name="fma", precision="bf16", unit="vector")), roof_name(Roof(name="launch", what="torch_call"))
    ('fma bf16', 'launch, one torch call')
    """
    if roof.name == "launch":
        return f"launch, {_LAUNCHES[roof.what]}" if roof.what else "launch"
    if roof.name in _TRANSFERS:
        return _TRANSFERS[roof.name]
    if roof.name not in STREAMS:
        return f"{roof.name} {roof.precision or ''}".strip()
    where = " in cache" if roof.level == "l2" else ""
    size = f" at {size_words(roof.moved_bytes)}" if roof.level and roof.moved_bytes else ""
    return f"{STREAMS[roof.name]}{where}{size}"


def roof_value(roof: Roof) -> str:
    """Its rate or time, with unit.

    >>> roof_value(Roof(name="copy", bandwidth_bytes_per_s=4.28e12)), roof_value(Roof(name="launch", time_s=4.2e-6))
    ('4280 GB/s', '4.200 µs')
    """
    if roof.rate_flop_per_s is not None:
        return units.rate(roof.rate_flop_per_s, "OP/s" if roof.precision == "int8" else "FLOP/s")
    if roof.time_s is not None:
        return units.seconds(roof.time_s)
    return units.gigabytes_per_s(roof.bandwidth_bytes_per_s)


def size_words(value_bytes: float) -> str:
    """A number of bytes by powers of ten, as bandwidths count them.

    >>> size_words(402_653_184)
    '403 MB'
    """
    return units.rate(value_bytes, "B", 3)
