"""The data sheets of all GPUs, with what was measured on such a card: on a device of this machine, or in a recorded run."""

from collections.abc import Sequence
from functools import lru_cache

from kernelviz.bench.bench import Bench
from kernelviz.core import Device, Roof, check_name
from kernelviz.formats import shipped_runs
from kernelviz.hardware.datasheet import DataSheet, data_sheet_shares, datasheet, sheets
from kernelviz.tables.data_sheets import PRECISIONS, MeasuredOn, SheetRow, SheetValue

ORDERS = ("name", "bandwidth", "l2", *PRECISIONS)
"""What the rows can be sorted by. Names in alphabetical order; of numbers, the largest first and unknown ones last."""


def data_sheets(bench: Bench, search: str = "", *, order: str = "bandwidth") -> tuple[SheetRow, ...]:
    """The data sheets that match all words of `search` (in name, architecture, source and ids of the devices here), cards of
    this machine first.

    The measured values are those of the device of this machine that is such a card, or else of a run that comes with kernelviz.
    Errors: UnknownName for an order that is not in ORDERS.
    """
    check_name("order", order, ORDERS)
    devices = [device for device in bench.devices() if device.kind == "cuda"]
    rows = [_row(bench, sheet, devices) for sheet in sheets()]
    terms = search.lower().split()
    matching = [row for row in rows if all(term in _searched(row) for term in terms)]
    return tuple(sorted(matching, key=lambda row: (not row.here, *_sort_key(row, order))))


def without_sheet(bench: Bench) -> tuple[Device, ...]:
    """The GPUs of this machine whose exact name has no data sheet."""
    return tuple(device for device in bench.devices() if device.kind == "cuda" and datasheet(device.name) is None)


def records(rows: Sequence[SheetRow]) -> list[dict[str, object]]:
    """One record for each data sheet, in SI base units as the names say; None is unknown."""
    return [
        {
            "name": row.name,
            "architecture": row.architecture,
            "here": ", ".join(row.here) or None,
            "bandwidth_bytes_per_s": row.bandwidth.promised,
            "measured_bandwidth_bytes_per_s": row.bandwidth.measured,
            **{
                f"{prefix}{precision}_flop_per_s": value(row, precision)
                for precision in PRECISIONS
                for prefix, value in (("", SheetRow.rate), ("measured_", SheetRow.measured_rate))
            },
            **{f"{precision}_at_clock_hz": _clock_hz(row, precision) for precision in PRECISIONS},
            "l2_bytes": row.l2_bytes,
            "multiprocessors": row.multiprocessors,
            "measured_on": row.measured_on.id if row.measured_on else None,
            "measured_at": (row.measured_on.measured_at or None) if row.measured_on else None,
            "source": row.source,
        }
        for row in rows
    ]


def _clock_hz(row: SheetRow, precision: str) -> float | None:
    value = row.rates.get(precision)
    return None if value is None else value.at_clock_hz


def _searched(row: SheetRow) -> str:
    return " ".join((row.name, row.architecture, row.source, *row.here)).lower()


def _sort_key(row: SheetRow, order: str) -> tuple[float, str]:
    value = {"name": 0.0, "bandwidth": row.bandwidth.promised, "l2": row.l2_bytes}.get(order, row.rate(order))
    return -(value or 0.0), row.name.lower()


def _row(bench: Bench, sheet: DataSheet, devices: Sequence[Device]) -> SheetRow:
    here = [device for device in devices if device.name in sheet.names]
    roofs, measured_on, cache_bytes = _measured(bench, sheet, here)
    bandwidths, rates = [], dict[str, float]()
    for line in data_sheet_shares(roofs, sheet, cache_bytes):
        roof = line.roof
        if line.promised is None:
            continue
        if roof.bandwidth_bytes_per_s is not None:
            bandwidths.append(roof.bandwidth_bytes_per_s)
        elif roof.rate_flop_per_s is not None and roof.precision is not None:
            rates[roof.precision] = max(roof.rate_flop_per_s, rates.get(roof.precision, 0.0))
    return SheetRow(
        names=sheet.names,
        architecture=sheet.architecture,
        bandwidth=SheetValue(sheet.bandwidth_bytes_per_s, max(bandwidths, default=None)),
        rates={
            precision: SheetValue(peak.rate_flop_per_s, rates.get(precision), peak.at_clock_hz)
            for precision, peak in sheet.peaks.items()
        },
        l2_bytes=sheet.l2_bytes,
        multiprocessors=sheet.multiprocessors,
        source=sheet.source,
        here=tuple(device.id for device in here),
        measured_on=measured_on,
    )


def _measured(
    bench: Bench, sheet: DataSheet, here: Sequence[Device]
) -> tuple[Sequence[Roof], MeasuredOn | None, int | None]:
    """The roofs of a device of this machine that is such a card, else those of a recorded run, where they come from, and the
    last-level cache of the device, so that the values are those of the table of roofs."""
    for device in here:
        if roofs := bench.roofs(device.id):
            cache = bench.machine.last_level_cache(device)
            on = MeasuredOn("device", device.id, max(roof.measured_at for roof in roofs))
            return roofs, on, cache.size_bytes if cache else None
    for name in sheet.names:
        run_id, roofs = _recorded(name)
        if roofs:
            return roofs, MeasuredOn("recorded_run", run_id, max(roof.measured_at for roof in roofs)), None
    return (), None, None


@lru_cache(maxsize=64)
def _recorded(device: str) -> tuple[str, tuple[Roof, ...]]:
    """The id and the roofs of the recorded run of that GPU with the fewest cases, which takes the least time to read."""
    lines = [line for line in shipped_runs.lines().values() if line.device == device]
    for line in sorted(lines, key=lambda line: (line.cases, line.id)):
        roofs = shipped_runs.load(line.id).environment.roofs
        if roofs:
            return line.id, roofs
    return "", ()
