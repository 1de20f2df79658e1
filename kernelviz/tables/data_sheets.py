"""The columns of the data sheets of GPUs, with what was measured on such a card beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelviz.core import units
from kernelviz.tables.column import Column, View, select

PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
"""The precisions of the table, from the widest to the narrowest."""


@dataclass(frozen=True, slots=True)
class SheetValue:
    """A figure of a data sheet, and the highest value that was measured for the same; None is unknown. `at_clock_hz`: the clock
    for which the sheet states it."""

    promised: float
    measured: float | None = None
    at_clock_hz: float | None = None

    @property
    def share(self) -> float | None:
        """The measured value as a fraction of the sheet's."""
        return None if self.measured is None else self.measured / self.promised


@dataclass(frozen=True, slots=True)
class MeasuredOn:
    """Where the measured values come from: a device of this machine (its id), or a run that comes with kernelviz (its id)."""

    kind: Literal["device", "recorded_run"]
    id: str
    measured_at: str


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A data sheet: bytes/s, flop/s and bytes. `here`: the ids of the devices of this machine that are such a card."""

    names: tuple[str, ...]
    architecture: str
    bandwidth: SheetValue
    rates: Mapping[str, SheetValue]
    l2_bytes: int | None
    multiprocessors: int | None
    source: str
    here: tuple[str, ...] = ()
    measured_on: MeasuredOn | None = None

    @property
    def name(self) -> str:
        return ", ".join(self.names)

    def rate(self, precision: str) -> float | None:
        """The sheet's dense rate in this precision; None if no document states it."""
        value = self.rates.get(precision)
        return None if value is None else value.promised

    def measured_rate(self, precision: str) -> float | None:
        value = self.rates.get(precision)
        return None if value is None else value.measured

    @property
    def clocks_hz(self) -> tuple[float, ...]:
        """The clocks for which the sheet states its rates, each once, the lowest first."""
        return tuple(sorted({value.at_clock_hz for value in self.rates.values() if value.at_clock_hz}))


def _clocks(row: SheetRow) -> str | None:
    if not row.clocks_hz:
        return None
    low, high = row.clocks_hz[0], row.clocks_hz[-1]
    return units.clock(low) if low == high else f"{low / 1e6:.0f}–{units.clock(high)}"


def _here(row: SheetRow) -> str | None:
    return f"● {', '.join(row.here)}" if row.here else None


def _marked_name(row: SheetRow) -> str:
    """The name, marked if the card is in this machine."""
    return f"● {row.name}" if row.here else row.name


def _measured_on(row: SheetRow) -> str | None:
    if row.measured_on is None:
        return None
    where = "recorded run " if row.measured_on.kind == "recorded_run" else ""
    return f"{where}{row.measured_on.id}, {row.measured_on.measured_at[:10] or 'date unknown'}"


_OP_PER_S = replace(units.FLOP_PER_S, name="TOP/s", single=lambda value, digits=4: units.rate(value, "OP/s", digits))
_NAME_HELP = "Exactly as the driver spells its name. A dot marks a card of this machine."
_RATE_HELP = "Dense rate in {}, without sparsity, with the fastest accumulation that the hardware offers, as the maker states it."
_MEASURED_HELP = "Highest rate that was measured in {}: a matrix product or a loop of multiply-adds without memory."
_NARROW = ("fp32", "tf32", "bf16", "fp8")
"""The precisions that fit into a terminal."""


def _rate_columns(precision: str) -> tuple[Column[SheetRow], ...]:
    unit = _OP_PER_S if precision == "int8" else units.FLOP_PER_S
    view = View.WIDE | (View.TERMINAL if precision in _NARROW else View(0))

    def promised(row: SheetRow, of: str = precision) -> float | None:
        return row.rate(of)

    def measured(row: SheetRow, of: str = precision) -> float | None:
        return row.measured_rate(of)

    return (
        Column("", precision, _RATE_HELP.format(precision), unit, promised, view),
        Column("", f"{precision} measured", _MEASURED_HELP.format(precision), unit, measured, View.WIDE, optional=True),
    )


SHEETS: tuple[Column[SheetRow], ...] = (
    Column("", "GPU", _NAME_HELP, units.OWN_TEXT, _marked_name, View.WIDE, width="medium"),
    Column("", "GPU", _NAME_HELP, units.OWN_TEXT, lambda row: row.name, View.TERMINAL),
    Column("", "In this machine", "Devices of this machine that are such a card, marked with a dot.", units.OWN_TEXT, _here),
    Column("", "GPU architecture", "", units.OWN_TEXT, lambda row: row.architecture),
    Column("", "Bandwidth", "Bandwidth of the memory, as the maker states it.", units.BYTES_PER_S,
           lambda row: row.bandwidth.promised),
    Column("", "Bandwidth measured", "Highest bandwidth that was measured for a stream from memory.", units.BYTES_PER_S,
           lambda row: row.bandwidth.measured, optional=True),
    Column("", "Of bandwidth", "The measured bandwidth as a share of the data sheet's.", units.SHARE,
           lambda row: row.bandwidth.share, optional=True),
    *(column for precision in PRECISIONS for column in _rate_columns(precision)),
    Column("", "Rates at", "The clock for which the data sheet states the rates; several if they differ.", units.OWN_NUMBER,
           _clocks, View.WIDE, order=lambda row: row.clocks_hz[-1] if row.clocks_hz else None),
    Column("", "L2", "Size of the L2 cache.", units.MEMORY, lambda row: row.l2_bytes),
    Column("", "SMs", "Number of streaming multiprocessors.", units.COUNT, lambda row: row.multiprocessors),
    Column("", "Measured on", "The device of this machine, or the recorded run, on which the measured values were taken.",
           units.OWN_TEXT, _measured_on, optional=True),
    Column("", "Source", "The documents of the maker that state these figures.", units.OWN_TEXT, lambda row: row.source,
           View.WIDE, width="large"),
)  # fmt: skip


def sheet_columns(rows: Sequence[SheetRow], view: View) -> list[Column[SheetRow]]:
    """The columns that a view shows of these data sheets; measured ones only if something was measured."""
    return select(SHEETS, rows, view)
