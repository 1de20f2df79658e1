"""`kernelviz device`: the devices of this machine, their measured roofs, their data sheets, and the database."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated

import msgspec
import typer
from rich.table import Column, Table
from rich.text import Text
from sqlalchemy.engine import make_url

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.data_sheets import ORDERS
from kernelviz.cli import console, data_sheets, device_watch, options
from kernelviz.cli.progress import Reporter, format_roof
from kernelviz.core import BadField, Device, Roof, units
from kernelviz.core.notices import Notice
from kernelviz.hardware.datasheet import DataSheet, data_sheet_shares, datasheet
from kernelviz.hardware.discovery import gpu_problem
from kernelviz.metrics.alerts import Thresholds
from kernelviz.metrics.issue_rate import roof_share
from kernelviz.store import Store
from kernelviz.text import (
    describe_cached_part,
    describe_notice,
    describe_refusal,
    format_bytes,
    format_cache_size,
    format_move,
    format_notice,
    format_roof_name,
    format_roof_value,
)
from kernelviz.text.roofs import REFUSED_REMEDY, describe_above_sheet, describe_issue_share

_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def device(
    context: typer.Context,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the roofs of the device first (about 27 s on an H200).")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Print clock, power, temperature, memory and load of one device once a second, until Ctrl-C.",
        ),
    ] = False,
    busy_below: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=100.0,
            metavar="PERCENT",
            help="With --watch: warn if the device is busy for less than this share of the time during a run, in percent.",
        ),
    ] = Thresholds().least_busy_fraction * 100,
    grown_above: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="GIB",
            help="With --watch: warn if the memory in use grows by more than this within 10 minutes, in GiB.",
        ),
    ] = Thresholds().most_growth_bytes / 2**30,
    device_id: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="cuda:0|cpu",
            help="Only this device. Default: all; with --calibrate and --watch the first usable GPU, otherwise the CPU.",
        ),
    ] = None,
    as_json: options.Json = False,
    sheets: Annotated[
        bool,
        typer.Option(
            "--sheets",
            help="Print the data sheets of all GPUs that kernelviz knows, with what was measured on such a card.",
        ),
    ] = False,
    search: Annotated[
        str,
        typer.Option(
            metavar="WORDS",
            help="With --sheets: only those that match all words in name, architecture, source or device.",
        ),
    ] = "",
    sort: Annotated[
        str,
        typer.Option(
            metavar="|".join(ORDERS), help="With --sheets: what they are sorted by; cards of this machine come first."
        ),
    ] = "bandwidth",
) -> None:
    """Show the devices of this machine: properties, measured roofs, data sheets, and where results are stored.

    A roof is the highest rate that was measured on the device. --calibrate measures the roofs; results are then shown as a share
    of them. If something hampers measuring (an old driver, other programs on the GPU), it is named together with a remedy.
    """
    if watch and calibrate:
        raise BadField("--watch", "yes", "it shows what a device reports and measures nothing; leave out --calibrate")
    for option, value in (("--busy-below", busy_below), ("--grown-above", grown_above)):
        if not watch and option in options.options_on_command_line(context):
            raise BadField(option, f"{value:g}", "it is a limit of --watch, which is missing")
    for option, text in (("--search", search), ("--sort", sort)):
        if not sheets and option in options.options_on_command_line(context):
            raise BadField(option, text, "it chooses among the data sheets of --sheets, which is missing")
    if sheets and (watch or calibrate or device_id):
        other = "--watch" if watch else "--calibrate" if calibrate else "--device"
        raise BadField(
            "--sheets", "yes", f"it prints the data sheets of all GPUs and measures nothing; leave out {other}"
        )
    with closing(use_cases.current()) as bench:
        if sheets:
            data_sheets.show(bench, search, sort, as_json=as_json)
            return
        if watch:
            device_watch.watch(bench, device_id, Thresholds(busy_below / 100, grown_above * 2**30), as_json=as_json)
            return
        if calibrate:
            _calibrate(bench, bench.device(device_id or bench.default_device()))
        devices = (bench.device(device_id),) if device_id else bench.devices()
        if as_json:
            console.print_json(
                {
                    "database": database(),
                    "default_device": bench.default_device(),
                    "gpu_problem": gpu_problem(),
                    "devices": [_described(bench, d) for d in devices],
                }
            )
        else:
            _print_devices(bench, devices)


def _print_devices(bench: Bench, devices: Sequence[Device]) -> None:
    out = console.out()
    for device in devices:
        out.print(f"{device.id}: {device.name}", style="bold")
        table = Table(Column(style="dim"), Column(overflow="fold"), box=None, pad_edge=False, show_header=False)
        for name, value in _lines(bench, device):
            table.add_row(f"  {name}", value)
        console.show(table)
        for notice in bench.notices(device.id):
            console.show(Text(f"  ! {format_notice(notice)}", style=_STYLES[notice.severity]))
    if not any(d.kind == "cuda" for d in bench.devices()):
        out.print(f"No GPU: {gpu_problem()}.")
    out.print(f"Runs and roofs are stored in {database()}")


def database() -> str:
    """Where runs and roofs are stored: a path, or the address of a server without its password. Errors: StoreError."""
    with closing(Store.open()) as store:
        url = make_url(store.url)
    return str(url.database) if url.drivername.startswith("sqlite") else url.render_as_string(hide_password=True)


def _calibrate(bench: Bench, device: Device) -> None:
    calibration_id = bench.calibrate(device.id, owner=console.owner())
    with Reporter(None) as reporter:
        reporter.say(f"measuring the roofs of {device.name}")
        for _, event in bench.follow(calibration_id):
            reporter.show(event)


def _lines(bench: Bench, device: Device) -> Iterator[tuple[str, str]]:
    """The name and the value of each property that is known."""
    now, roofs = bench.conditions(device.id), bench.roofs(device.id)
    cache = bench.machine.last_level_cache(device)
    gpu = {
        "multiprocessors": str(device.multiprocessors or "unknown"),
        "compute capability": ".".join(map(str, device.compute_capability or ())) or "unknown",
        "driver": f"{device.driver or 'unknown'} (CUDA {device.driver_cuda or 'unknown'})",
    }
    properties = {
        "identity": device.uuid,
        "memory": units.size_bytes(device.memory_bytes),
        "last-level cache": format_cache_size(cache),
        **(gpu if device.kind == "cuda" else {"threads": str(device.threads or "unknown")}),
        "clock now": None if now.sm_clock_hz is None else units.clock(now.sm_clock_hz),
        "power now": None if now.power_w is None else f"{now.power_w:.0f} W",
        "other processes on it": None if now.other_processes is None else str(now.other_processes),
    }
    yield from ((name, value) for name, value in properties.items() if value is not None)
    yield from _roof_lines(device, roofs, cache.size_bytes if cache else None)
    refused = bench.machine.refused_roofs(device.id)
    yield from (("refused roof", describe_refusal(r)) for r in refused)
    if refused:
        yield "", REFUSED_REMEDY
    yield from _change_lines(bench, device)
    if sheet := datasheet(device.name):
        yield from _sheet_lines(roofs, sheet)


def _roof_lines(device: Device, roofs: Sequence[Roof], cache_bytes: int | None) -> Iterator[tuple[str, str]]:
    """One line for each roof. The sizes of one stream share a line, the smallest first, of which the cache may hold a part."""
    if not roofs:
        yield "measured roofs", "not calibrated; `kernelviz device --calibrate` measures them"
    groups: dict[tuple[str, str | None], list[Roof]] = {}
    for number, roof in enumerate(roofs):
        groups.setdefault((roof.name, roof.level) if roof.level else (str(number), None), []).append(roof)
    for group in groups.values():
        group.sort(key=lambda r: r.moved_bytes or 0)
        values = [
            format_roof(group[0]),
            *(f"at {format_bytes(r.moved_bytes or 0)}: {format_roof_value(r)}" for r in group[1:]),
            *filter(None, (describe_cached_part(group[0], cache_bytes), describe_issue_share(group[0], device))),
        ]
        yield "measured roof", f"{', '.join(values)} ({group[-1].measured_at[:10]})"


def _change_lines(bench: Bench, device: Device) -> Iterator[tuple[str, str]]:
    """The roofs that changed clearly between the previous calibration and the newest one."""
    calibrations = bench.machine.calibrations(device.id)
    if len(calibrations) < 2:
        return
    newest, previous = calibrations[:2]
    since = f"since {previous.measured_at[:10]}"
    clear = [move for move in bench.machine.roof_changes(device.id, newest, previous) if move.clear]
    if not clear:
        yield "roof changes", f"none that is clear {since}"
    for move in clear:
        yield "roof changed", f"{format_roof_name(move.now)} {format_move(move)} {since}"


def _sheet_lines(roofs: Sequence[Roof], sheet: DataSheet) -> Iterator[tuple[str, str]]:
    """The figures of the data sheet, each with the share of it that the best measured roof reaches."""
    shares = data_sheet_shares(roofs, sheet)
    best: dict[str | None, float] = {}
    for line in shares:
        if line.share and line.roof.rate_flop_per_s:
            best[line.roof.precision] = max(line.share, best.get(line.roof.precision, 0.0))
    memory = max((line.share for line in shares if line.share and line.roof.bandwidth_bytes_per_s), default=None)

    def measured(share: float | None) -> str:
        return "" if share is None else f", {units.percent(share)} measured"

    yield "data sheet", f"memory {units.rate(sheet.bandwidth_bytes_per_s, 'B/s')}{measured(memory)}"
    for precision, peak in sheet.peaks.items():
        rate = units.rate(peak.rate_flop_per_s, "OP/s" if precision == "int8" else "FLOP/s")
        at = f" at {units.clock(peak.at_clock_hz)}" if peak.at_clock_hz else ""
        yield "data sheet", f"{precision} {rate}{at}{measured(best.get(precision))}"
    for line in shares:
        if line.promised is not None and (line.share or 0.0) > 1:
            yield "above 100 %", describe_above_sheet(line.roof, line.promised, line.promised_at_hz, sheet.l2_bytes)
    yield "data sheet from", sheet.source


def _described(bench: Bench, device: Device) -> dict[str, object]:
    """A device as JSON."""
    described: dict[str, object] = msgspec.to_builtins(device)
    sheet, cache = datasheet(device.name), bench.machine.last_level_cache(device)
    return described | {
        "last_level_cache": cache and msgspec.to_builtins(cache),
        "roofs": [
            msgspec.to_builtins(roof) | {"issue_rate_fraction": roof_share(roof, device)}
            for roof in bench.roofs(device.id)
        ],
        "refused_roofs": [
            {
                "roof": msgspec.to_builtins(r.roof),
                "reason": r.kind,
                "half_width_fraction": r.half_width_fraction,
                "limit": msgspec.to_builtins(r.limit),
                "sentence": describe_refusal(r),
            }
            for r in bench.machine.refused_roofs(device.id)
        ],
        "notices": [_notice(n) for n in bench.notices(device.id)],
        "conditions": msgspec.to_builtins(bench.conditions(device.id)),
        "data_sheet": sheet
        and {
            "bandwidth_bytes_per_s": sheet.bandwidth_bytes_per_s,
            "rate_flop_per_s": {precision: peak.rate_flop_per_s for precision, peak in sheet.peaks.items()},
            "at_clock_hz": {precision: peak.at_clock_hz for precision, peak in sheet.peaks.items()},
            "l2_bytes": sheet.l2_bytes,
            "source": sheet.source,
            "sources": dict(sheet.sources),
        },
        "calibrations": [
            {"measured_at": c.measured_at, "roofs": msgspec.to_builtins(c.roofs)}
            for c in bench.machine.calibrations(device.id)
        ],
    }


def _notice(notice: Notice) -> dict[str, object]:
    sentence, remedy = map(str, describe_notice(notice))
    return {"subject": notice.subject, "sentence": sentence, "remedy": remedy, "severity": notice.severity}
