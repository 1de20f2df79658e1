"""`kernelviz selftest`: put the instrument to the test on this machine, and say by the exit code how it went."""

from __future__ import annotations

import os

import msgspec
from rich.table import Table
from rich.text import Text

from kernelviz.bench import Bench
from kernelviz.cli import console
from kernelviz.cli.progress import Reporter
from kernelviz.cli.run import follow
from kernelviz.core.selftest import Check, Selftest
from kernelviz.text.selftest import amount, limit_words, outcome_word

_STYLES = {True: "green", False: "bold red", None: "dim"}


def selftest(bench: Bench, device_id: str | None, *, only: tuple[str, ...], quick: bool, as_json: bool) -> int:
    """Make the checks, print their table or the document; the exit code: 0 none failed, 1 some did, 2 none could be made."""
    device = bench.device(device_id or bench.default_device())
    followed = bench.selftest(device.id, owner=f"terminal {os.getpid()}", only=only, quick=quick)
    with Reporter(None) as reporter:
        reporter.say(f"testing the instrument on {device.name}")
        follow(bench, followed, reporter)
    made = bench.selftest_made(followed)
    if made is None:
        return 2
    if as_json:
        console.print_json(msgspec.to_builtins(made))
    else:
        console.show(table(made))
    return exit_code(made)


def exit_code(made: Selftest) -> int:
    """2 when no check could be made: nothing is known then, which is no pass."""
    if made.failed:
        return 1
    return 0 if any(c.passed for c in made.checks) or made.timeline is not None else 2


def table(made: Selftest) -> Table:
    """A row a check, in the order in which they were made."""
    shown = Table(box=None, pad_edge=False, title_justify="left")
    for name in ("check", "result", "value", "limit", "question"):
        shown.add_column(name, overflow="fold")
    for check in made.checks:
        shown.add_row(
            Text(check.name),
            Text(outcome_word(check), style=_STYLES[check.passed]),
            Text(amount(check.value, check.unit) if check.value is not None else ""),
            Text(limit_words(check)),
            Text(_words(check)),
        )
    return shown


def _words(check: Check) -> str:
    return f"{check.question} {check.message}".rstrip() if check.passed is not True else check.question
