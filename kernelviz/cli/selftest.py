"""`kernelviz selftest`: check on this machine that kernelviz measures correctly, and report it by the exit code."""

import os
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import console, options
from kernelviz.cli.progress import Reporter, follow_run
from kernelviz.core import Check, Selftest
from kernelviz.text.selftest import amount, format_limit, format_outcome

_STYLES = {True: "green", False: "bold red", None: "dim"}


def selftest(
    device: options.DeviceId = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this check, or all checks whose names begin with this text, for example cheat. Repeat the option.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Repeat each comparison less often.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check on this machine that kernelviz measures correctly.

    It measures work of known duration, finds slow-downs that were added on purpose, refuses kernels that cheat, and compares
    its times with those of other timers.

    Exit code 0: no check failed; 1: some checks failed; 2: no check could be made.
    """
    bench = use_cases.current()
    try:
        code = make_selftest(bench, device, only=tuple(only or ()), quick=quick, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def make_selftest(bench: Bench, device_id: str | None, *, only: tuple[str, ...], quick: bool, as_json: bool) -> int:
    """Make the checks, print their table or the document, and return the exit code."""
    device = bench.device(device_id or bench.default_device())
    selftest_id = bench.selftest(device.id, owner=f"terminal {os.getpid()}", only=only, quick=quick)
    with Reporter(None) as reporter:
        reporter.say(f"checking how well kernelviz measures on {device.name}")
        follow_run(bench, selftest_id, reporter)
    done = bench.selftest_result(selftest_id)
    if done is None:
        return 2
    if as_json:
        console.print_json(msgspec.to_builtins(done))
    else:
        console.show(table(done))
    return exit_code(done)


def exit_code(done: Selftest) -> int:
    """1 if a check failed, 2 if no check could be made, otherwise 0."""
    if done.failed:
        return 1
    return 0 if any(c.passed for c in done.checks) or done.timeline is not None else 2


def table(done: Selftest) -> Table:
    """One row for each check, in the order in which they were made."""
    checks = Table(box=None, pad_edge=False, title_justify="left")
    for name in ("check", "result", "value", "limit", "question"):
        checks.add_column(name, overflow="fold")
    for check in done.checks:
        checks.add_row(
            Text(check.name),
            Text(str(format_outcome(check)), style=_STYLES[check.passed]),
            Text(str(amount(check.value, check.unit)) if check.value is not None else ""),
            Text(str(format_limit(check))),
            Text(_question_and_message(check)),
        )
    return checks


def _question_and_message(check: Check) -> str:
    return f"{check.question} {check.message}".rstrip() if check.passed is not True else check.question
