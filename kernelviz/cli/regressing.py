"""`kernelviz regress`: a stored plan measured again and compared with its run, for a timer."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import comparing
from kernelviz.bench.regressing import again, machine_slower
from kernelviz.cli import comparing as report
from kernelviz.cli import console, running
from kernelviz.cli.progress import Reporter


def regress(
    run: Annotated[str, typer.Argument(metavar="RUN", help="id of the run that is the baseline")],
    device: Annotated[
        str | None, typer.Option(metavar="ID", help="where; default: the run's own device, where it is here")
    ] = None,
    l2: Annotated[str, typer.Option("--l2", metavar="cold|warm", help="which time is compared")] = "cold",
    fail_slower_than: report.FailSlowerThan = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")] = False,
) -> None:
    """Measure a stored run's plan again, by the same method, and hold the new run against it; the worst case first.

    Both runs stay, so that `kernelviz trends` sees them. Exit code 0: nothing is slower; 3: something is (the same code by 2 %
    or the given limit), or has no correct time any more; 2: bad usage. On a timer: 0 3 1 * *  kernelviz regress RUN
    """
    limit = None if fail_slower_than is None else report.fraction(fail_slower_than)
    bench = use_cases.current()
    new = again(bench, run, device=device, owner=f"terminal {os.getpid()}")
    with Reporter(bench.load(new).plan) as reporter:
        running.follow(bench, new, reporter)
    found = comparing.compare(bench.load(run), bench.load(new), l2=l2)
    console.err().print(f"measured as run {new}")
    code = report.told(found, limit or 0.0, as_json=as_json)
    slower = machine_slower(found, limit)
    if slower:
        many = f"{len(slower)} case{'s' if len(slower) != 1 else ''}"
        console.err().print(f"failed: {many} of the same code slower: the machine, its driver or its clocks changed")
    raise typer.Exit(report.SLOWER if slower else code)
