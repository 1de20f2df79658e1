"""`kernelviz roofline`: the cases of runs, their share of the roof, and what limits each."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench.roofline import Placement, first_shown, place, records
from kernelviz.cli import console, options
from kernelviz.core import units
from kernelviz.metrics.sweep import problem_words
from kernelviz.text.times import format_time


def roofline(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN…", help="Ids of runs. Default: the newest run, or some of those that come with kernelviz."
        ),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            metavar="dram|l2",
            help="dram: cold times and the roof of the memory. l2: warm times and the roof of the L2.",
        ),
    ] = "dram",
    roofs: Annotated[
        str,
        typer.Option(
            metavar="measured|datasheet", help="Roofs to compare with: measured here, or from the data sheet."
        ),
    ] = "measured",
    precision: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only problems of this precision, for example bf16 or tf32.")
    ] = None,
    variant: Annotated[str | None, typer.Option(metavar="VARIANT", help="Only this variant.")] = None,
    as_json: options.Json = False,
) -> None:
    """Compare the cases of runs with the roofs of their device, and show what limits each case.

    A roof is the highest rate of the device for the memory traffic or the arithmetic of a case. The limiter is one of launch,
    latency, bandwidth, L2, compute or unclear, and is shown with the evidence for it.
    """
    bench = use_cases.current()
    found = place(bench, runs or first_shown(bench), level=level, source=roofs, precision=precision, variant=variant)
    if as_json:
        console.print_json(records(found))
        return
    if not found.cases:
        console.err().print("no correct time to place on a roofline; `kernelviz runs` lists what was measured")
        return
    console.show(_table(found))
    for device in found.unroofed:
        missing = (
            "no data sheet is known"
            if roofs == "datasheet"
            else "roofs are not measured (`kernelviz device --calibrate`)"
        )
        console.err().print(f"{device}: {missing}, so its cases have no share of a roof")
    if found.untimed:
        console.err().print(f"{found.untimed} cases have no correct {'cold' if level == 'dram' else 'warm'} time")


def _table(found: Placement) -> Table:
    several = len({c.run_id for c in found.cases}) > 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (*(("run",) if several else ()), "case", "variant"):
        table.add_column(title, overflow="fold")
    for title in ("time", "of roof", "distance"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("limiter", no_wrap=True)
    table.add_column("because", overflow="fold")
    for case in found.cases:
        table.add_row(
            *((Text(case.run_id),) if several else ()),
            Text(problem_words(case.problem)),
            Text(case.variant),
            format_time(case.figure),
            "–" if case.share is None else units.percent(case.share),
            "–" if not case.share else f"{units.significant(1 / case.share, 3)} ×",
            case.limiter.words,
            Text(case.limiter.because),
        )
    return table
