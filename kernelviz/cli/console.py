"""Two streams: results on stdout, everything else on stderr."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from contextlib import suppress
from typing import Annotated, BinaryIO, TextIO

import typer
from rich.console import Console, RenderableType

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
"""The option `--json` of every command that has it."""

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
    write(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n")


def write(data: bytes) -> None:
    """A document on stdout as it is: UTF-8 whatever the terminal's own encoding, or no text at all."""
    stream: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a notebook's stdout takes text only
        sys.stdout.write(data.decode())
        return
    sys.stdout.flush()
    left = memoryview(data)
    while left:  # unbuffered (PYTHONUNBUFFERED), a pipe whose reader leaves takes a part and says nothing
        left = left[stream.write(left) :]


def fail(message: str) -> int:
    """One message on stderr; returns the exit code of bad usage."""
    with suppress(OSError):  # nobody can be told
        sys.stderr.write("\n".join(map(plain, f"kernelviz: {message}".splitlines())) + "\n")
    return 2


def settle() -> None:
    """Before anything is printed: a stream that the shell closed discards, and no character is too much for an encoding."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            _discard(number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False))
        elif isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up() -> None:
    """What stdout still holds cannot be written: let it go, so that the interpreter's end does not try again."""
    with suppress(OSError, ValueError):
        _discard(sys.stdout.fileno())


def _discard(number: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    if null == number:
        os.set_inheritable(number, True)  # as what the shell opens is; what is started here writes there too
        return
    os.dup2(null, number)
    os.close(null)


def plain(text: str) -> str:
    """Text without control characters: a title that somebody sent must not steer the terminal that shows it.

    >>> plain("a\\x1b[31mb\\n\\x9bc é")
    'a [31mb  c é'
    """
    return "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
