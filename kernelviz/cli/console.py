"""Output to the terminal: results on stdout, everything else on stderr."""

import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from kernelviz.core import BadField
from kernelviz.tables.column import Column, Row

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that control a terminal, reverse the direction of text, end a line, or are no text."""
WIDE = 200
"""Width of a table that goes into a file or a pipe, in characters. Rows are not wrapped, so that grep and awk can be used."""


def out() -> Console:
    """A console for results. It is made at each call, because tests and shells replace sys.stdout."""
    return _on(sys.stdout)


def err() -> Console:
    """A console for progress and errors."""
    return _on(sys.stderr)


class _PlainConsole(Console):
    """A console whose texts cannot control the terminal, whatever file, plug-in or other program they come from."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # Rich's own control codes, for example those that redraw a progress bar, are no text.
            yield segment if segment.control else Segment(plain_lines(segment.text), segment.style)


def _on(stream: TextIO) -> Console:
    return _PlainConsole(
        file=stream, width=None if stream.isatty() else WIDE, highlight=False, markup=False, emoji=False
    )


def owner() -> str:
    """The name under which runs of this process wait in the queue of a device."""
    return f"terminal {os.getpid()}"


def show(what: RenderableType) -> None:
    """Print a result on stdout. In a pipe, lines have no trailing blanks."""
    stream = out()
    if stream.is_terminal:
        stream.print(what)
        return
    with stream.capture() as captured:
        stream.print(what)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    style: Callable[[Row], str] = lambda row: "",
    missing: Callable[[Row], str] = lambda row: "–",
) -> Table:
    """A table with these columns. `missing`: the text of an unknown value."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.unit.right
        result.add_column(
            Text(plain(column.heading)), justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    for row in rows:
        result.add_row(*(Text(plain(c.single(row, missing(row)))) for c in columns), style=style(row))
    return result


def text_table(headings: Iterable[str], rows: Iterable[Iterable[str | Text]], left: int = sys.maxsize) -> Table:
    """A table of texts. Columns from number `left` on are aligned to the right."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        result.add_column(heading, justify="left" if number < left else "right", overflow="fold")
    for row in rows:
        result.add_row(*row)
    return result


def show_rows(
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    record: Callable[[Row], object],
    *,
    as_json: bool,
    nothing: str,
    style: Callable[[Row], str] = lambda row: "",
) -> None:
    """Print rows on stdout, as a table or as a JSON list of their records. Without rows, a table is replaced by `nothing` on
    stderr."""
    if as_json:
        print_json([record(row) for row in rows])
    elif rows:
        show(table(columns, rows, style=style))
    else:
        err().print(nothing)


def print_json(value: object) -> None:
    """Print one JSON value and a newline. Raises ValueError for NaN and infinity, which JSON does not have.

    Characters that could control a terminal are escaped, as JSON allows.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
    escaped = text if text.isascii() else "".join(_escaped(c) if _steers(c) and c != "\n" else c for c in text)
    write(escaped.encode() + b"\n")


def echo(text: str, *, to_stderr: bool = False) -> None:
    """Print text as it is, without wrapping, for example a command or a table in Markdown."""
    (sys.stderr if to_stderr else sys.stdout).write(f"{plain_lines(text)}\n")


def print_code(text: str) -> None:
    """Print code that may come from a file of somebody else: line by line with its tabs, without other control characters."""
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    _write("".join("\t".join(map(plain, line.split("\t"))) + "\n" for line in lines).encode(errors="replace"))


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def write(data: bytes) -> None:
    """Write bytes to stdout: unchanged into a file or a pipe, without control characters to a terminal. The encoding of the
    terminal is not applied."""
    if sys.stdout.isatty():
        data = plain_lines(data.decode(errors="replace")).encode(errors="replace")
    _write(data)


def _write(data: bytes) -> None:
    stream: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if stream is None:  # stdout of a notebook accepts text only
        sys.stdout.write(data.decode())
        return
    sys.stdout.flush()
    remaining = memoryview(data)
    while remaining:  # With PYTHONUNBUFFERED, a pipe whose reader has left accepts only a part and raises no error.
        remaining = remaining[stream.write(remaining) :]


@contextmanager
def writable(option: str, path: Path, remedy: str = "") -> Iterator[None]:
    """Turn an error of writing the file of an option into a BadField."""
    try:
        yield
    except OSError as error:
        raise BadField(option, path, f"it cannot be written ({error.strerror}){remedy}") from None


def fail(message: str) -> int:
    """Print one message on stderr and return the exit code for bad usage."""
    with suppress(OSError):  # stderr is closed
        echo(f"kernelviz: {message}", to_stderr=True)
    return 2


def warn(message: str) -> None:
    """Print one message on stderr, where the command itself has succeeded."""
    with suppress(OSError):  # stderr is closed, or a file on a full disk
        echo(f"kernelviz: {message}", to_stderr=True)


def prepare_streams() -> None:
    """Prepare stdout and stderr: a stream that the shell closed discards its output, and characters outside the encoding are
    escaped."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            _discard(number)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False))
        elif isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_stdout() -> None:
    """Discard the rest of stdout, which cannot be written, so that the interpreter does not try again at exit."""
    with suppress(OSError, ValueError):
        _discard(sys.stdout.fileno())


def _discard(number: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    if null == number:
        os.set_inheritable(number, True)  # like the streams that a shell opens: child processes write to it, too
        return
    os.dup2(null, number)
    os.close(null)


def plain(text: str) -> str:
    """Text without characters that control a terminal or the direction of text, because a title in a file from somebody else
    must not.

    >>> plain("a\\x1b[31mb\\n\\x9bc é \\u202edlrow")
    'a [31mb  c é  dlrow'
    """
    return text if text.isprintable() else "".join(" " if _steers(c) else c for c in text)


def plain_lines(text: str) -> str:
    """The same for text of several lines."""
    return text if text.isprintable() else "\n".join(map(plain, text.split("\n")))


def _steers(character: str) -> bool:
    return unicodedata.category(character) in _STEERING
