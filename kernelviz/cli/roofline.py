"""`kernelviz roofline`: the cases of runs, their share of the roof, and what limits each."""

from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.roofline import default_runs, place, records
from kernelviz.cli import console, options
from kernelviz.tables.column import View
from kernelviz.tables.roofline import placed_columns
from kernelviz.text.above_roof import describe_above_roofs
from kernelviz.text.limiter import MEANINGS


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
    variant: options.OnlyVariant = None,
    as_json: options.Json = False,
) -> None:
    """Compare the cases of runs with the roofs of their device, and show what limits each case.

    A roof is the highest rate of the device for the memory traffic or the arithmetic of a case. The limiter is one of launch,
    latency, bandwidth, L2, compute or unclear, and is shown with the evidence for it.
    """
    bench = use_cases.current()
    placed = place(bench, runs or default_runs(bench), level=level, source=roofs, precision=precision, variant=variant)
    if as_json:
        console.print_json(records(placed))
        return
    if not placed.cases:
        console.err().print("no correct time to place on a roofline; `kernelviz runs` lists what was measured")
        return
    console.show(console.table(placed_columns(placed.cases, View.TERMINAL), placed.cases))
    for line in describe_above_roofs([c.above_roof for c in placed.cases if c.above_roof is not None]):
        console.err().print(line)
    unclear = [c.commands for c in placed.cases if c.limiter.kind == "unclear"]
    commands = [one.ncu for one in unclear if one is not None]
    if commands:
        more = f" (and {len(commands) - 1} more: see --json)" if len(commands) > 1 else ""
        console.err().print(f"Unclear: {MEANINGS['unclear']}{more}:")
        console.echo(commands[0], to_stderr=True)
    missing = (
        "no data sheet is known" if roofs == "datasheet" else "roofs are not measured (`kernelviz device --calibrate`)"
    )
    for device in placed.unroofed:
        console.err().print(f"{device}: {missing}, so its cases have no share of a roof")
    if placed.untimed:
        console.err().print(f"{placed.untimed} cases have no correct {'cold' if level == 'dram' else 'warm'} time")
