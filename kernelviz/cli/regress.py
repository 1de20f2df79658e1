"""`kernelviz regress`: a stored plan measured again and compared with its run, for a timer."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import comparison
from kernelviz.bench.regression import again, machine_slower
from kernelviz.cli import compare as report
from kernelviz.cli import console
from kernelviz.cli import run as running
from kernelviz.cli.progress import Reporter
from kernelviz.core.result import Failure, Result, Stage
from kernelviz.text.failures import describe_failure

CUT_SHORT = 1
"""The exit code when the run was cancelled or interrupted, and what was measured by then is not slower."""
NOT_TRIED: tuple[Stage, ...] = ("unavailable", "cancelled")
"""Stages at which a case was not measured for a reason that is none of its own: it is not broken."""


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
    or the given limit), or has no correct time any more; 2: bad usage, or no case could be tried here; 1: it was cancelled. On
    a timer: 0 3 1 * *  kernelviz regress RUN
    """
    limit = None if fail_slower_than is None else report.fraction(fail_slower_than)
    bench = use_cases.current()
    new = again(bench, run, device=device, anywhere=False, owner=f"terminal {os.getpid()}")
    with Reporter(bench.load(new).plan) as reporter:
        running.follow(bench, new, reporter)
    measured = bench.load(new)
    console.err().print(f"measured as run {new}")
    if not any(_tried(result) for result in measured.results):
        failed = next((r.outcome for r in measured.results if isinstance(r.outcome, Failure)), None)
        why = "" if failed is None else str(describe_failure(failed))
        console.err().print(f"{measured.status}: no case was tried, so nothing is compared{f' ({why})' if why else ''}")
        raise typer.Exit(report.NOTHING if measured.status == "finished" else CUT_SHORT)
    found = comparison.compare(bench.load(run), measured, l2=l2)
    code = report.told(found, limit, as_json=as_json, untried=NOT_TRIED)
    unable = sum(not _tried(pair.after) and pair.before.timing is not None for pair in found.pairs)
    if unable:
        console.err().print(f"not compared: {unable} case{'s' if unable != 1 else ''} that could not be tried here")
    slower = machine_slower(found, limit)
    if slower:
        many = f"{len(slower)} case{'s' if len(slower) != 1 else ''}"
        console.err().print(f"failed: {many} of the same code slower: the machine, its driver or its clocks changed")
    if measured.status != "finished" and code == 0:
        code = CUT_SHORT
    raise typer.Exit(report.SLOWER if slower else code)


def _tried(result: Result) -> bool:
    return not (isinstance(result.outcome, Failure) and result.outcome.stage in NOT_TRIED)
