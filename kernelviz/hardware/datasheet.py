"""The makers' data sheets. A GPU that is not listed has no data sheet here; no value is a guess."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

_TABLE = files("kernelviz") / "hardware" / "datasheets.toml"


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
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return tuple(_sheet(entry, table["sources"]) for entry in table["gpu"])


def _sheet(entry: Mapping[str, Any], titles: Mapping[str, str]) -> DataSheet:
    own: Mapping[str, float] = entry.get("clocks_hz", {})
    peaks = {
        precision: Peak(rate_flop_per_s=float(rate), at_clock_hz=own.get(precision, entry.get("clock_hz")))
        for precision, rate in entry["peaks_flop_per_s"].items()
    }
    sources = {what: titles[entry.get(f"{what}_source", entry["source"])] for what in ("bandwidth", "peaks")}
    if "l2_bytes" in entry:
        sources["l2"] = titles[entry.get("l2_source", entry["source"])]
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
