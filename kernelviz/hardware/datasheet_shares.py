"""Measured roofs compared with the data sheet."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Roof
from kernelviz.hardware.datasheet import DataSheet, Peak


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSheetShare:
    """A roof, and the sheet's figure for the same (None: it has none). `share` is of the sheet's figure as stated,
    `share_at_clock` of that figure at the clock at which the roof was measured (None: one of the clocks is unknown)."""

    roof: Roof
    promised: float | None = None
    promised_at_hz: float | None = None
    share: float | None = None
    share_at_clock: float | None = None


def data_sheet_shares(roofs: Sequence[Roof], sheet: DataSheet | None) -> tuple[DataSheetShare, ...]:
    """The best of each kind of roof compared with the sheet, in the order of the roofs, without launches, which no sheet states.

    Streams from memory are compared with the bandwidth; matrix products, and multiply-adds in fp32, with the peak of their
    precision (other multiply-adds do not run on the units whose peak a sheet states).

    >>> sheet = DataSheet(names=("x",), architecture="x", bandwidth_bytes_per_s=2e12, peaks={}, sources={})
    >>> data_sheet_shares([Roof(name="read", level="dram", bandwidth_bytes_per_s=1.5e12)], sheet)[0].share
    0.75
    """
    best: dict[tuple[object, ...], Roof] = {}
    for roof in roofs:
        value = _value(roof)
        key = (roof.name, roof.level, roof.precision, roof.unit)
        if value is not None and value > (_value(best[key]) or 0.0 if key in best else 0.0):
            best[key] = roof
    return tuple(_share(roof, sheet) for roof in best.values())


def _value(roof: Roof) -> float | None:
    return roof.rate_flop_per_s if roof.rate_flop_per_s is not None else roof.bandwidth_bytes_per_s


def _share(roof: Roof, sheet: DataSheet | None) -> DataSheetShare:
    value = _value(roof)
    if sheet is None or value is None:
        return DataSheetShare(roof=roof)
    if roof.rate_flop_per_s is None:
        # A stream of an earlier version has no level: it was from memory.
        of_memory = roof.name not in ("h2d", "d2h") and roof.level != "l2"
        promised = sheet.bandwidth_bytes_per_s if of_memory else None
        return DataSheetShare(roof=roof, promised=promised, share=None if promised is None else value / promised)
    peak = sheet.peaks.get(roof.precision or "")
    if peak is None or (roof.name == "fma" and roof.precision != "fp32"):
        return DataSheetShare(roof=roof)
    return DataSheetShare(
        roof=roof,
        promised=peak.rate_flop_per_s,
        promised_at_hz=peak.at_clock_hz,
        share=value / peak.rate_flop_per_s,
        share_at_clock=_at_clock(value, peak, roof.clock_hz),
    )


def _at_clock(value: float, peak: Peak, clock_hz: float | None) -> float | None:
    if peak.at_clock_hz is None or not clock_hz:
        return None
    return value / (peak.rate_flop_per_s * clock_hz / peak.at_clock_hz)
