"""The makers' data sheets, and measured roofs compared with them. A GPU that is not listed has no data sheet here; no value is a
guess."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from kernelviz.core import DataSheetRoof, Roof
from kernelviz.metrics.roof_checks import cached_fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """A dense peak rate and the clock for which the sheet states it; a GPU with a higher clock can exceed it."""

    rate_flop_per_s: float
    at_clock_hz: float | None

    def at(self, clock_hz: float | None) -> float | None:
        """The peak at a clock, never below the sheet's; None when the sheet does not state its clock.

        Without the sheet's clock no rate is impossible: an H100 NVL may run at 1785 MHz, its sheet's bf16 rate needs 1545 MHz.

        >>> round(Peak(rate_flop_per_s=989.4e12, at_clock_hz=1.83e9).at(1.98e9) / 1e12)
        1070
        """
        if self.at_clock_hz is None:
            return None
        return self.rate_flop_per_s * max(1.0, (clock_hz or 0.0) / self.at_clock_hz)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSheet:
    """Theoretical ceilings of a GPU. `peaks` by precision, without sparsity, with the fastest accumulation that the
    hardware offers; ``fp32`` is IEEE arithmetic on CUDA cores, ``fp64`` and ``int8`` use tensor cores where they exist.

    `sources`: the document of each value, for ``bandwidth``, ``peaks`` and ``l2``. A value without a document is None or absent.
    """

    names: tuple[str, ...]
    architecture: str
    bandwidth_bytes_per_s: float
    peaks: Mapping[str, Peak]
    sources: Mapping[str, str]
    l2_bytes: int | None = None
    multiprocessors: int | None = None
    bus_bits: int | None = None
    bits_per_s_of_a_pin: float | None = None

    @property
    def source(self) -> str:
        """Every document that a value comes from, each once."""
        return "; ".join(dict.fromkeys(self.sources.values()))


def datasheet(name: str) -> DataSheet | None:
    """The sheet of the GPU with exactly that name, as its driver spells it; None for a slice of one or an unknown GPU.

    >>> datasheet("NVIDIA H200").bandwidth_bytes_per_s
    4800000000000.0
    >>> datasheet("NVIDIA H200 MIG 1g.18gb") is None
    True
    """
    return next((sheet for sheet in sheets() if name in sheet.names), None)


@lru_cache(maxsize=1)
def sheets() -> tuple[DataSheet, ...]:
    """Every sheet of ``datasheets.toml``, which documents its values. The first call takes 8 ms."""
    table = tomllib.loads((files("kernelviz") / "hardware" / "datasheets.toml").read_text(encoding="utf-8"))
    return tuple(_sheet(entry, table["sources"]) for entry in table["gpu"])


def _sheet(entry: Mapping[str, Any], titles: Mapping[str, str]) -> DataSheet:
    own: Mapping[str, float] = entry.get("clocks_hz", {})
    peaks = {
        precision: Peak(rate_flop_per_s=float(rate), at_clock_hz=own.get(precision, entry.get("clock_hz")))
        for precision, rate in entry["peaks_flop_per_s"].items()
    }
    documented = ("bandwidth", "peaks", "l2") if "l2_bytes" in entry else ("bandwidth", "peaks")
    sources = {what: titles[entry.get(f"{what}_source", entry["source"])] for what in documented}
    return DataSheet(
        names=tuple(entry["names"]),
        architecture=entry["architecture"],
        bandwidth_bytes_per_s=float(entry["bandwidth_bytes_per_s"]),
        peaks=MappingProxyType(peaks),
        sources=MappingProxyType(sources),
        l2_bytes=entry.get("l2_bytes"),
        multiprocessors=entry.get("multiprocessors"),
        bus_bits=entry.get("bus_bits"),
        bits_per_s_of_a_pin=entry.get("bits_per_s_of_a_pin"),
    )


def ceilings(name: str) -> tuple[Roof, ...]:
    """Bandwidth of memory and peak rates of the GPU with that name as roofs, so that the arithmetic and charts of measured roofs
    can use them; empty for one without a data sheet here.

    A sheet states one bandwidth for every mix, dense peaks, and nothing about the L2. These roofs have no date, because they
    were not measured; `how` names the sheet.

    >>> [round(r.bandwidth_bytes_per_s / 1e12, 1) for r in ceilings("NVIDIA H200") if r.name == "copy"], ceilings("EPYC")
    ([4.8], ())
    """
    sheet = datasheet(name)
    if sheet is None:
        return ()
    how = f"data sheet: {sheet.source}"
    memory = DataSheetRoof(name="copy", level="dram", bandwidth_bytes_per_s=sheet.bandwidth_bytes_per_s, how=how)
    peaks = [
        DataSheetRoof(
            name="matmul", precision=precision, rate_flop_per_s=peak.rate_flop_per_s, clock_hz=peak.at_clock_hz, how=how
        )
        for precision, peak in sheet.peaks.items()
    ]
    return (memory, *peaks)


def ceilings_by_device(names: Iterable[str]) -> dict[str, tuple[Roof, ...]]:
    """The `ceilings` of each of the devices that has a data sheet here, by its name."""
    return {name: roofs for name in names if (roofs := ceilings(name))}


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSheetShare:
    """A roof, and the sheet's figure for the same (None: it has none). `share` is of the sheet's figure as stated,
    `share_at_clock` of that figure at the clock at which the roof was measured (None: one of the clocks is unknown)."""

    roof: Roof
    promised: float | None = None
    promised_at_hz: float | None = None
    share: float | None = None
    share_at_clock: float | None = None


NEGLIGIBLE_IN_CACHE = 0.05
"""A stream of which the cache can hold less than this is one from memory. On an H100 a stream of 105 MB that writes a third of it
reached 105.6 % of the data sheet, because 35 MB of it stayed in the L2 of 50 MB."""


def data_sheet_shares(
    roofs: Sequence[Roof], sheet: DataSheet | None, cache_bytes: int | None = None
) -> tuple[DataSheetShare, ...]:
    """The best of each kind of roof compared with the sheet, in the order of the roofs, without launches, which no sheet states.

    Streams from memory are compared with the bandwidth; matrix products, and multiply-adds in fp32, with the peak of their
    precision (other multiply-adds do not run on the units whose peak a sheet states). Of the streams from memory only those count
    of which the last-level cache (`cache_bytes`; None: that of the sheet) can hold next to nothing; if there is none, the one of
    which it can hold the least.

    >>> sheet = DataSheet(names=("x",), architecture="x", bandwidth_bytes_per_s=2e12, peaks={}, sources={})
    >>> data_sheet_shares([Roof(name="read", level="dram", bandwidth_bytes_per_s=1.5e12)], sheet)[0].share
    0.75
    """
    cache = cache_bytes or (sheet.l2_bytes if sheet else None)
    kinds: dict[tuple[object, ...], list[Roof]] = {}
    for roof in roofs:
        if _value(roof) is not None:
            kinds.setdefault((roof.name, roof.level, roof.precision, roof.unit), []).append(roof)
    return tuple(_share(_best(of_kind, cache), sheet) for of_kind in kinds.values())


def _best(roofs: Sequence[Roof], cache_bytes: int | None) -> Roof:
    """The highest roof of a kind, of the sizes of which the cache can hold the least."""
    least = max(min(cached_fraction(r, cache_bytes) for r in roofs), NEGLIGIBLE_IN_CACHE)
    return max((r for r in roofs if cached_fraction(r, cache_bytes) <= least), key=lambda r: _value(r) or 0.0)


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
    at_hz, measured_hz = peak.at_clock_hz, roof.clock_hz
    return DataSheetShare(
        roof=roof,
        promised=peak.rate_flop_per_s,
        promised_at_hz=at_hz,
        share=value / peak.rate_flop_per_s,
        share_at_clock=value / (peak.rate_flop_per_s * measured_hz / at_hz) if at_hz and measured_hz else None,
    )
