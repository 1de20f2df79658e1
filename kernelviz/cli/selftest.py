"""`kernelviz selftest`: check on this machine that kernelviz measures correctly, and report it by the exit code."""

from contextlib import closing
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.core import Check, Selftest
from kernelviz.text import format_limit, format_outcome
from kernelviz.text.selftest import amount

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
) -> int:
    """Check on this machine that kernelviz measures correctly.

    It measures work of known duration, finds slow-downs that were added on purpose, refuses kernels that cheat, and compares
    its times with those of other timers.

    Exit code 0: no check failed; 1: some checks failed; 2: no check could be made.
    """
    with closing(use_cases.current()) as bench:
        measured = bench.device(device or bench.default_device())
        selftest_id = bench.selftest(measured.id, owner=console.owner(), only=tuple(only or ()), quick=quick)
        console.err().print(f"checking how well kernelviz measures on {measured.name}")
        follow_run(bench, selftest_id)
        result = bench.selftest_result(selftest_id)
    if result is None:
        return 2
    if as_json:
        console.print_json(msgspec.to_builtins(result))
    else:
        console.show(console.text_table(("check", "result", "value", "limit", "question"), map(_row, result.checks)))
    return exit_code(result)


def exit_code(result: Selftest) -> int:
    """1 if a check failed, 2 if no check could be made, otherwise 0."""
    if result.failed:
        return 1
    return 0 if any(c.passed for c in result.checks) or result.timeline is not None else 2


def _row(check: Check) -> list[Text]:
    """The cells of a check: name, result, value, limit, and what was asked."""
    message = "" if check.passed is True else check.message
    return [
        Text(check.name),
        Text(str(format_outcome(check)), style=_STYLES[check.passed]),
        Text(str(amount(check.value, check.unit)) if check.value is not None else ""),
        Text(str(format_limit(check))),
        Text(f"{check.question} {message}".rstrip()),
    ]
