"""`kernelviz runs …`, `import` and `export`: what the History page does, in a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from kernelviz import bench as use_cases
from kernelviz.bench import RunSummary
from kernelviz.cli import console, running, tables
from kernelviz.cli.progress import Reporter
from kernelviz.core.errors import BadField, KernelvizError, UnknownName
from kernelviz.formats import MAX_BYTES, decode, encode, exports
from kernelviz.metrics.summary import rows

app = typer.Typer(help="List, show, name, delete, restore and resume the runs kept on this machine.")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="id of a run; `kernelviz runs` lists them")]
Json = Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    search: Annotated[
        str, typer.Option(metavar="WORDS", help="all must occur in title, note, op, device, status, id")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="at most so many, the newest")] = 50,
    deleted: Annotated[bool, typer.Option("--deleted", help="those that were deleted and can be restored")] = False,
    shipped: Annotated[bool, typer.Option("--shipped", help="those that came with kernelviz")] = False,
    as_json: Json = False,
) -> None:
    """List the runs kept here, the newest first."""
    if context.invoked_subcommand is not None:
        return
    history = use_cases.current().history
    found = history.shipped() if shipped else history.deleted(limit) if deleted else history.find(search, limit=limit)
    if as_json:
        console.print_json([msgspec.structs.asdict(run) for run in found])
        return
    if not found:
        console.err().print("no run" + (f" matches {search!r}" if search else " here; `kernelviz run` makes one"))
        return
    console.show(_table(found))


@app.command()
def show(
    run: RunId,
    samples: Annotated[
        bool, typer.Option("--samples", help="instead: what the samples of each figure say (quantiles, drift, clocks)")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the table of a run, or its document with --json."""
    bench = use_cases.current()
    found = bench.load(run)
    if as_json:
        sys.stdout.write(encode(found).decode() + "\n")
        return
    if found.note:
        console.err().print(found.note)
    if samples:
        console.show(tables.samples(rows(found, ()), found))
        return
    console.show(tables.report(found, bench.roofs_of(found)))


@app.command()
def rename(run: RunId, title: Annotated[str, typer.Argument(metavar="TITLE")]) -> None:
    """Give a run a title."""
    use_cases.current().history.rename(run, title)


@app.command()
def note(run: RunId, text: Annotated[str, typer.Argument(metavar="TEXT")]) -> None:
    """Write a note to a run, in place of the one that it has."""
    use_cases.current().history.annotate(run, text)


@app.command()
def delete(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Delete runs; `kernelviz runs restore` brings them back for some weeks."""
    history = use_cases.current().history
    named = [history.summary(run) for run in runs]
    if not yes:
        for run in named:
            console.err().print(f"{run.id}  {run.name}, {run.cases_words}")
        typer.confirm(f"Delete {len(named)} run{'s' if len(named) != 1 else ''}?", abort=True, err=True)
    for run in named:
        history.delete(run.id)
        console.err().print(f"deleted {run.id}; `kernelviz runs restore {run.id}` brings it back")


@app.command()
def restore(runs: Annotated[list[str], typer.Argument(metavar="RUN…")]) -> None:
    """Bring deleted runs back."""
    history = use_cases.current().history
    for run in runs:
        history.restore(run)


@app.command()
def resume(run: RunId, as_json: Json = False) -> None:
    """Measure the cases of an interrupted or cancelled run that have no result."""
    bench = use_cases.current()
    try:
        found = bench.load(run)
        bench.resume(run, owner=f"terminal {os.getpid()}")
        with Reporter(found.plan) as reporter:
            running.follow(bench, run, reporter)
        code = running.print_run(bench, bench.load(run), save=None, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def take_in(files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="documents (kernelviz/1 JSON)")]) -> None:
    """Keep runs of documents from elsewhere; prints their ids. A file that is refused leaves the others taken in."""
    history = use_cases.current().history
    refused = 0
    for file in files:
        try:
            sys.stdout.write(history.take_in(_read(file)) + "\n")
        except KernelvizError as error:
            refused += 1
            console.fail(f"{file}: {error}")
    if refused:
        raise typer.Exit(2 if refused == len(files) else 1)


def give_out(
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="id of a run, or a document")],
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="default: stdout")] = None,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="json: the native document")] = "json",
) -> None:
    """Write a run as a file."""
    known = exports()
    if to not in known:
        raise UnknownName("format", to, known)
    found = decode(_read(Path(run))) if Path(run).is_file() else use_cases.current().load(run)
    data = known[to].encode(found)
    if out is None:
        sys.stdout.write(data.decode() + "\n")
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise BadField("--out", out, f"it cannot be written ({error.strerror})") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadField("file", path, f"documents of more than {MAX_BYTES / 1e6:.0f} MB are not read")
        return path.read_bytes()
    except OSError as error:
        raise BadField("file", path, f"it cannot be read ({error.strerror})") from None


def _table(found: tuple[RunSummary, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "when", "op", "device", "cases", "status", "title"):
        table.add_column(heading, overflow="fold")
    for run in found:
        table.add_row(
            run.id,
            run.created_at[:16].replace("T", " "),
            run.op,
            run.device,
            run.cases_words,
            run.status,
            run.title,
        )
    return table
