"""`kernelviz regress`: measure a stored plan again and compare, for use by a timer such as cron."""

from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import comparison
from kernelviz.bench.regression import again, machine_slower
from kernelviz.cli import console, options
from kernelviz.cli.compare import NOTHING, SLOWER, FailSlowerThan, format_cases, parse_percent, print_comparison
from kernelviz.cli.progress import follow_run
from kernelviz.core import Failure, Result, Stage
from kernelviz.text import describe_failure

CUT_SHORT = 1
"""Exit code if the run was cancelled or interrupted, and no case that was measured by then is slower."""
NOT_TRIED: tuple[Stage, ...] = ("unavailable", "cancelled")
"""Failure stages that mean that a case was not tried, so that the variant itself is not at fault."""


def regress(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Id of the run that is the baseline. To list the runs: `kernelviz runs`."),
    ],
    device: Annotated[
        str | None,
        typer.Option(
            metavar="cuda:0|cpu", help="Device to measure on. Default: the device of the run, if this machine has it."
        ),
    ] = None,
    l2: options.Headline = "cold",
    fail_slower_than: FailSlowerThan = None,
    as_json: options.Json = False,
) -> int:
    """Measure the cases of a stored run again by the same method, and compare the new run with the stored one.

    Both runs stay stored, so that `kernelviz trends` shows them. For a check on the first day of each month, add this line to
    crontab: `0 3 1 * *  kernelviz regress RUN`

    Exit code 0: no case is slower; 3: a case is slower (with unchanged code: by 2 % or by the given limit), or no longer has a
    correct time; 2: bad usage, or no case can run here; 1: the run was cancelled.
    """
    limit = parse_percent(fail_slower_than)
    bench = use_cases.current()
    new = again(bench, run, device=device, anywhere=False, owner=console.owner())
    follow_run(bench, new, bench.load(new).plan)
    measured, err = bench.load(new), console.err()
    finished = measured.status == "finished"
    err.print(f"measured as run {new}")
    if not any(_tried(result) for result in measured.results):
        failure = next((r.outcome for r in measured.results if isinstance(r.outcome, Failure)), None)
        why = "" if failure is None else f" ({describe_failure(failure)})"
        err.print(f"{measured.status}: no case was tried, so nothing is compared{why}")
        return NOTHING if finished else CUT_SHORT
    compared = comparison.compare(bench.load(run), measured, l2=l2)
    code = print_comparison(compared, limit, as_json=as_json, untried=NOT_TRIED)
    if unable := [pair for pair in compared.pairs if not _tried(pair.after) and pair.before.timing is not None]:
        err.print(f"not compared: {format_cases(unable)} that could not be tried here")
    if slower := machine_slower(compared, limit):
        err.print(
            f"failed: {format_cases(slower)} with unchanged code slower: the machine, its driver or its clocks changed"
        )
        return SLOWER
    return code or (0 if finished else CUT_SHORT)


def _tried(result: Result) -> bool:
    return not (isinstance(result.outcome, Failure) and result.outcome.stage in NOT_TRIED)
