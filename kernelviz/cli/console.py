"""Two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from rich.console import Console, RenderableType

WIDE = 200
"""Columns of a table that goes into a file or a pipe: rows stay whole, for grep and awk."""


def out() -> Console:
    """For results. Made anew each time, because tests and shells replace sys.stdout."""
    return _on(sys.stdout)


def err() -> Console:
    """For progress and errors."""
    return _on(sys.stderr)


def _on(stream: TextIO) -> Console:
    wide = None if stream.isatty() else WIDE
    return Console(file=stream, width=wide, highlight=False, markup=False, emoji=False)


def show(what: RenderableType) -> None:
    """A result on stdout. In a pipe, lines end where their text ends."""
    stream = out()
    if stream.is_terminal:
        stream.print(what)
        return
    with stream.capture() as captured:
        stream.print(what)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_json(value: object) -> None:
    """One JSON value and a newline; what is not finite has no place in JSON and raises ValueError."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def fail(message: str) -> int:
    """One message on stderr; returns the exit code of bad usage."""
    sys.stderr.write(f"kernelviz: {message}\n")
    return 2
