"""Roofs in text, the same for every page, chart and terminal."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from kernelviz.core import DataSheetRoof, Device, LaunchCost, Roof, RoofName, units
from kernelviz.metrics.calibrations import Move
from kernelviz.metrics.compute_ceilings import CeilingKind, ComputeCeiling
from kernelviz.metrics.issue_rate import roof_share
from kernelviz.metrics.placement import Placed
from kernelviz.metrics.roof_checks import MOST_HALF_WIDTH, RoofRefusal, cached_fraction, value_of

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


CEILINGS: Mapping[CeilingKind, str] = MappingProxyType(
    {
        "data_sheet": "data sheet",
        "issue_rate": "issue rate at the measured clock",
        "tensor_loop": "tensor-core loop without memory",
    }
)
_AT: Mapping[CeilingKind, str] = MappingProxyType(
    {"data_sheet": ", stated for", "issue_rate": " at", "tensor_loop": " at"}
)


def format_ceiling(ceiling: ComputeCeiling) -> str:
    """A ceiling with its rate and clock.

    >>> format_ceiling(ComputeCeiling("issue_rate", "bf16", 859e12, 0.92, 1.588e9))
    'issue rate at the measured clock, bf16: 859 TFLOP/s at 1588 MHz'
    """
    clock = f"{_AT[ceiling.kind]} {units.clock(ceiling.clock_hz)}" if ceiling.clock_hz else ""
    rate = units.rate(ceiling.rate_flop_per_s, "FLOP/s", 3)
    return f"{CEILINGS[ceiling.kind]}, {ceiling.precision}: {rate}{clock}"


def describe_ceiling(ceiling: ComputeCeiling) -> str:
    """The share of a ceiling that a case reaches, and the ceiling.

    >>> describe_ceiling(ComputeCeiling("data_sheet", "bf16", 989.4e12, 0.797, 1.83e9))
    '79.7 % of the data sheet, bf16: 989 TFLOP/s, stated for 1830 MHz'
    """
    return f"{units.percent(ceiling.share_fraction)} of the {format_ceiling(ceiling)}"


def describe_issue_share(roof: Roof, device: Device) -> str:
    """The share of the issue rate at its own clock that a measured arithmetic roof reaches; empty if it is unknown.

    >>> h200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="", multiprocessors=132, compute_capability=(9, 0))
    >>> describe_issue_share(Roof(name="mma", precision="bf16", rate_flop_per_s=800e12, clock_hz=1.5e9), h200)
    '98.6 % of the issue rate at 1500 MHz'
    """
    share = roof_share(roof, device)
    return "" if share is None else f"{units.percent(share)} of the issue rate at {units.clock(roof.clock_hz)}"


def format_roof_name(roof: Roof) -> str:
    """What a roof was measured with: the stream, the matrix product, the transfer or the launch.

    >>> format_roof_name(Roof(name="read2_write1", level="dram", moved_bytes=402_653_184)), format_roof_name(Roof(name="copy"))
    ('read:write 2:1 at 403 MB', 'copy')
    >>> format_roof_name(Roof(name="read", level="l2", moved_bytes=2**24))
    'read in cache at 16.8 MB'
    >>> format_roof_name(Roof(name="fma", precision="bf16", unit="vector"))
    'fma bf16'
    >>> format_roof_name(Roof(name="mma", precision="bf16", unit="tensor"))
    'tensor-core loop bf16'
    >>> format_roof_name(Roof(name="launch", what="torch_call"))
    'launch, one torch call'
    """
    if roof.name == "launch":
        return f"launch, {_LAUNCHES[roof.what]}" if roof.what else "launch"
    if roof.name in _TRANSFERS:
        return _TRANSFERS[roof.name]
    if roof.name == "mma":
        return f"tensor-core loop {roof.precision or ''}".strip()
    if roof.name not in STREAMS:
        return f"{roof.name} {roof.precision or ''}".strip()
    level = " in cache" if roof.level == "l2" else ""
    size = f" at {format_bytes(roof.moved_bytes)}" if roof.level and roof.moved_bytes else ""
    return f"{STREAMS[roof.name]}{level}{size}"


def format_roof_value(roof: Roof) -> str:
    """Its rate or time, with unit.

    >>> format_roof_value(Roof(name="copy", bandwidth_bytes_per_s=4.28e12)), format_roof_value(Roof(name="launch", time_s=4.2e-6))
    ('4280 GB/s', '4.200 µs')
    """
    if roof.rate_flop_per_s is not None:
        return units.rate(roof.rate_flop_per_s, "OP/s" if roof.precision == "int8" else "FLOP/s")
    if roof.time_s is not None:
        return units.seconds(roof.time_s)
    return units.gigabytes_per_s(roof.bandwidth_bytes_per_s)


def format_bytes(value_bytes: float) -> str:
    """A number of bytes with decimal prefixes, as bandwidths use them.

    >>> format_bytes(402_653_184)
    '403 MB'
    """
    return units.rate(value_bytes, "B", 3)


def format_move(move: Move) -> str:
    """The change of a roof with its sign; ≈ if the two intervals overlap.

    >>> format_move(Move(now=Roof(name="copy"), then=Roof(name="copy"), change=-0.021, clear=True))
    '▼ −2.1 %'
    >>> format_move(Move(now=Roof(name="copy"), then=Roof(name="copy"), change=0.0004, clear=False))
    '≈ +0.04 %'
    >>> format_move(Move(now=Roof(name="copy"), then=Roof(name="copy"), refused=True))
    'cannot be used'
    """
    if move.refused:
        return "cannot be used"
    if move.change is None:
        return "–"
    mark = "≈" if move.clear is False else "▲" if move.change > 0 else "▼"
    return f"{mark} {'+' if move.change >= 0 else '−'}{units.width(abs(move.change))}"


def describe_refusal(refusal: RoofRefusal) -> str:
    """Which roof was refused, and why.

    >>> wide = Roof(name="matmul", precision="fp64", rate_flop_per_s=1e9, low=0.5e9, high=13.02e9)
    >>> describe_refusal(RoofRefusal(wide, "wide", half_width_fraction=6.26))
    'matmul fp64: its 95 % interval, ±626 %, is wider than ±10 %'
    """
    limit = "" if refusal.limit is None else f" ({format_roof_value(refusal.limit)})"
    match refusal.kind:
        case "wide":
            width = units.percent(refusal.half_width_fraction, 0)
            reason = f"its 95 % interval, ±{width}, is wider than ±{units.percent(MOST_HALF_WIDTH, 0)}"
        case "slower_than_memory":
            mix = refusal.limit
            other = "" if mix is None or mix.name == refusal.roof.name else f"{format_roof_name(mix)} "
            memory = "" if mix is None else f" ({other}{format_roof_value(mix)})"
            reason = (
                f"{format_roof_value(refusal.roof)} in the cache is slower than from memory{memory}, which cannot be"
            )
        case "above_data_sheet":
            reason = f"{format_roof_value(refusal.roof)} is above the data sheet{limit}, which cannot be"
        case _:
            assert_never(refusal.kind)
    return f"{format_roof_name(refusal.roof)}: {reason}"


REFUSED_REMEDY = (
    "Each was measured up to three times. It is left out, or an earlier measurement is used. Calibrate again when no other "
    "program uses the machine."
)


def describe_cached_part(roof: Roof, cache_bytes: int | None) -> str:
    """The part of a stream's traffic that may stay in the cache; empty if it is less than 2 %.

    >>> describe_cached_part(Roof(name="read2_write1", level="dram", moved_bytes=105_000_000), 50 * 2**20)
    'up to 33 % of its bytes may stay in the cache'
    """
    part = cached_fraction(roof, cache_bytes)
    return f"up to {units.percent(part, 0)} of its bytes may stay in the cache" if part >= 0.02 else ""


def describe_above_sheet(roof: Roof, promised: float, promised_at_hz: float | None, cache_bytes: int | None) -> str:
    """Why a measured roof is above the data sheet's value.

    >>> fast = Roof(name="matmul", precision="fp8", rate_flop_per_s=2.0e15, clock_hz=1.98e9)
    >>> describe_above_sheet(fast, 1.98e15, 1.83e9, None)
    'matmul fp8 is 101.0 % of the data sheet: it ran at 1980 MHz, and the data sheet states its value for 1830 MHz'
    """
    share = units.percent((value_of(roof) or 0.0) / promised)
    in_cache = describe_cached_part(roof, cache_bytes)
    if roof.clock_hz and promised_at_hz and roof.clock_hz > promised_at_hz:
        clocks = f"{units.clock(roof.clock_hz)}, and the data sheet states its value for {units.clock(promised_at_hz)}"
        reason = f"it ran at {clocks}"
    elif in_cache:
        reason = in_cache
    else:
        reason = "data sheets round their values, and the measured value has an interval"
    return f"{format_roof_name(roof)} is {share} of the data sheet: {reason}"


def format_share(fraction: float) -> str:
    """A share of the roof in whole percent; below one percent with one more digit, so that it does not read as zero.

    >>> format_share(0.694), format_share(0.0037), format_share(0.0001)
    ('69 %', '0.4 %', '<0.1 %')
    """
    return "<0.1 %" if fraction < 0.0005 else units.percent(fraction, 0 if fraction >= 0.0095 else 1)


def format_origin(roof: Roof) -> str:
    return ", data sheet" if isinstance(roof, DataSheetRoof) else ", measured"


def format_rates(placed: Placed) -> str:
    """Arithmetic rate, bandwidth and intensity, as far as the cost is known."""
    if placed.cost is None:
        return "cost unknown"
    intensity = units.significant(placed.intensity or 0.0, 3)
    if placed.levels.unstable:
        return f"{intensity} FLOP per byte"
    digits = units.digits_of(placed.figure.half_width)
    flop = units.rate(placed.rate_flop_per_s, "FLOP/s", digits) if placed.cost.work_flop else "no arithmetic"
    return f"{flop} · {units.gigabytes_per_s(placed.bandwidth_bytes_per_s, digits)} · {intensity} FLOP per byte"


def describe_distance(placed: Placed) -> str:
    """The share of the roof, which roof that is, and the factor between both times.

    A case above its roof has a share over 100 %.
    """
    if placed.levels.unstable:
        return "share of the roof unknown: the time is not stable"
    if placed.light is None or placed.share is None:
        return "roof unknown: it was not measured, or there is no data sheet"
    roof, least = placed.light.roof, units.seconds(placed.light.time_s)
    flops = roof.rate_flop_per_s
    rate = units.rate(flops, "FLOP/s", 3) if flops else units.rate(roof.bandwidth_bytes_per_s, "B/s", 3)
    distance = (
        f"as fast as the roof allows, {least}"
        if placed.share >= 1
        else f"{1 / placed.share:.3g}× the {least} that the roof allows"
    )
    return (
        f"{format_share(placed.share)} of the roof ({format_roof_name(roof)}, {rate}{format_origin(roof)}): {distance}"
    )
