"""`kernelviz roofline`: what the page Roofline shows, in a terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.roofline import first_shown, place, records
from kernelviz.cli import console
from kernelviz.tables.column import View
from kernelviz.tables.roofline import placed_columns


def roofline(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN…", help="ids of runs; default: the newest, else some shipped ones"),
    ] = None,
    level: Annotated[str, typer.Option(metavar="dram|l2", help="cold times, or warm ones against the L2")] = "dram",
    roofs: Annotated[str, typer.Option(metavar="measured|datasheet", help="what the share is of")] = "measured",
    precision: Annotated[str | None, typer.Option(metavar="NAME", help="only problems of this one, as bf16")] = None,
    variant: Annotated[str | None, typer.Option(metavar="VARIANT", help="only this one")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")] = False,
) -> None:
    """Place the cases of runs under their roofs: share, distance, and what limits each, with its evidence."""
    bench = use_cases.current()
    found = place(bench, runs or first_shown(bench), level=level, source=roofs, precision=precision, variant=variant)
    if as_json:
        console.print_json(records(found))
        return
    if not found.cases:
        console.err().print("no correct time to place; `kernelviz runs` lists what was measured")
        return
    console.show(console.table(placed_columns(found.cases, View.TERMINAL), found.cases))
    for device in found.unroofed:
        missing = (
            "no data sheet is known"
            if roofs == "datasheet"
            else "roofs are not measured (`kernelviz device --calibrate`)"
        )
        console.err().print(f"{device}: {missing}, so nothing there has a share")
    if found.untimed:
        console.err().print(f"{found.untimed} cases have no correct {'cold' if level == 'dram' else 'warm'} time")
