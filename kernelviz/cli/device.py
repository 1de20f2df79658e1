"""`kernelviz device`: the devices of this machine, their measured roofs, their data sheets, and the database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict

import msgspec
from rich.table import Table
from rich.text import Text
from sqlalchemy.engine import make_url

from kernelviz.bench import Bench
from kernelviz.cli import console
from kernelviz.cli.progress import Reporter, roof_words
from kernelviz.core import units
from kernelviz.core.run import Device, Roof
from kernelviz.hardware.datasheet import DataSheet, datasheet
from kernelviz.hardware.datasheet_shares import data_sheet_shares
from kernelviz.hardware.discovery import gpu_problem
from kernelviz.metrics.calibrations import change_words, moves
from kernelviz.metrics.roofs import roof_name, roof_value, size_words
from kernelviz.store import Store

_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def show(bench: Bench, device_id: str | None, *, calibrate: bool, as_json: bool) -> None:
    """Print one device or all. Errors: UnknownName; a calibration that fails raises what the bench raises."""
    if calibrate:
        chosen = bench.device(device_id or bench.default_device())
        _calibrate(bench, chosen)
    shown = (bench.device(device_id),) if device_id else bench.devices()
    if as_json:
        console.print_json(
            {
                "database": database(),
                "default_device": bench.default_device(),
                "gpu_problem": gpu_problem(),
                "devices": [_described(bench, d) for d in shown],
            }
        )
        return
    out = console.out()
    for found in shown:
        out.print(f"{found.id}: {found.name}", style="bold")
        console.show(_facts(bench, found))
        for notice in bench.notices(found.id):
            console.show(Text(f"  ! {notice.sentence}; {notice.remedy}", style=_STYLES[notice.severity]))
    if not any(d.kind == "cuda" for d in bench.devices()):
        out.print(f"No GPU: {gpu_problem()}.")
    out.print(f"Runs and roofs are kept in {database()}")


def database() -> str:
    """Where runs and roofs are kept: a path, or an address without its password. Errors: StoreError."""
    opened = Store.open()
    try:
        url = make_url(opened.url)
    finally:
        opened.close()
    return str(url.database) if url.drivername.startswith("sqlite") else url.render_as_string(hide_password=True)


def _calibrate(bench: Bench, device: Device) -> None:
    followed = bench.calibrate(device.id, owner=f"terminal {os.getpid()}")
    with Reporter(None) as reporter:
        reporter.say(f"measuring the roofs of {device.name}")
        for _, event in bench.follow(followed):
            reporter.show(event)


def _facts(bench: Bench, device: Device) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _lines(bench, device):
        table.add_row(f"  {name}", value)
    return table


def _lines(bench: Bench, device: Device) -> list[tuple[str, str]]:
    now = bench.conditions(device.id)
    lines = [
        ("identity", device.uuid),
        ("memory", units.size_bytes(device.memory_bytes)),
        ("last-level cache", units.size_bytes(device.last_level_cache_bytes)),
    ]
    if device.kind == "cuda":
        capability = ".".join(str(n) for n in device.compute_capability or ()) or "unknown"
        lines += [
            ("multiprocessors", str(device.multiprocessors or "unknown")),
            ("compute capability", capability),
            ("driver", f"{device.driver or 'unknown'} (CUDA {device.driver_cuda or 'unknown'})"),
        ]
    else:
        lines.append(("threads", str(device.threads or "unknown")))
    if now.sm_clock_hz is not None:
        lines.append(("clock now", units.clock(now.sm_clock_hz)))
    if now.power_w is not None:
        lines.append(("power now", f"{now.power_w:.0f} W"))
    if now.other_processes is not None:
        lines.append(("other processes on it", str(now.other_processes)))
    roofs = bench.roofs(device.id)
    lines += _roof_lines(roofs)
    if not roofs:
        lines.append(("measured roofs", "not calibrated; `kernelviz device --calibrate` measures them"))
    sheet = datasheet(device.name)
    return lines + _moved_lines(bench, device) + _sheet_lines(roofs, sheet)


def _moved_lines(bench: Bench, device: Device) -> list[tuple[str, str]]:
    """The roofs that moved clearly between the newest calibration and the one before it."""
    newest, *earlier = bench.machine.calibrations(device.id)[:2] or (None,)
    if newest is None or not earlier:
        return []
    since = f"since {earlier[0].measured_at[:10]}"
    clear = [move for move in moves(newest, earlier[0]) if move.clear]
    if not clear:
        return [("roofs moved", f"none clearly {since}")]
    return [("roof moved", f"{roof_name(move.now)} {change_words(move)} {since}") for move in clear]


def _sheet_lines(roofs: Sequence[Roof], sheet: DataSheet | None) -> list[tuple[str, str]]:
    """What the data sheet promises, each figure with the best measured roof's share of it."""
    if sheet is None:
        return []
    of_roofs = data_sheet_shares(roofs, sheet)
    best = {line.roof.precision: line.share for line in of_roofs if line.share and line.roof.rate_flop_per_s}
    memory = max((line.share for line in of_roofs if line.share and line.roof.bandwidth_bytes_per_s), default=None)

    def measured(share: float | None) -> str:
        return "" if share is None else f", {units.percent(share)} measured"

    lines = [("data sheet", f"memory {units.rate(sheet.bandwidth_bytes_per_s, 'B/s')}{measured(memory)}")]
    for precision, peak in sheet.peaks.items():
        unit = "OP/s" if precision == "int8" else "FLOP/s"
        at = f" at {units.clock(peak.at_clock_hz)}" if peak.at_clock_hz else ""
        words = f"{precision} {units.rate(peak.rate_flop_per_s, unit)}{at}{measured(best.get(precision))}"
        lines.append(("data sheet", words))
    return [*lines, ("data sheet from", sheet.source)]


def _roof_lines(roofs: Sequence[Roof]) -> list[tuple[str, str]]:
    """A line a roof; a stream's sizes share one, smallest first."""
    alike: dict[tuple[str, str | None], list[Roof]] = {}
    for number, roof in enumerate(roofs):
        alike.setdefault((roof.name, roof.level) if roof.level else (str(number), None), []).append(roof)
    lines: list[tuple[str, str]] = []
    for group in alike.values():
        ordered = sorted(group, key=lambda r: r.moved_bytes or 0)
        words = [roof_words(ordered[0])]
        words += [f"at {size_words(r.moved_bytes or 0)}: {roof_value(r)}" for r in ordered[1:]]
        lines.append(("measured roof", f"{', '.join(words)} ({ordered[-1].measured_at[:10]})"))
    return lines


def _described(bench: Bench, device: Device) -> dict[str, object]:
    described: dict[str, object] = msgspec.to_builtins(device)
    sheet = datasheet(device.name)
    return described | {
        "roofs": msgspec.to_builtins(bench.roofs(device.id)),
        "notices": [asdict(n) for n in bench.notices(device.id)],
        "conditions": msgspec.to_builtins(bench.conditions(device.id)),
        "data_sheet": None if sheet is None else _sheet(sheet),
        "calibrations": [
            {"measured_at": c.measured_at, "roofs": msgspec.to_builtins(c.roofs)}
            for c in bench.machine.calibrations(device.id)
        ],
    }


def _sheet(sheet: DataSheet) -> dict[str, object]:
    return {
        "bandwidth_bytes_per_s": sheet.bandwidth_bytes_per_s,
        "rate_flop_per_s": {precision: peak.rate_flop_per_s for precision, peak in sheet.peaks.items()},
        "at_clock_hz": {precision: peak.at_clock_hz for precision, peak in sheet.peaks.items()},
        "l2_bytes": sheet.l2_bytes,
        "source": sheet.source,
        "sources": dict(sheet.sources),
    }
