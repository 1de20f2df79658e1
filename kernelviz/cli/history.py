"""`kernelviz runs …`, `import` and `export`: what the History page does, in a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz import formats
from kernelviz.bench import RunSummary, backup
from kernelviz.bench.snapshots import at_sizes, selected
from kernelviz.cli import console, tables, tune
from kernelviz.cli import run as running
from kernelviz.cli.progress import Reporter
from kernelviz.core.errors import BadField, KernelvizError
from kernelviz.formats.integrity import WORDS as SEALS
from kernelviz.formats.integrity import sealed
from kernelviz.metrics.summary import rows

FORMATS = "json, parquet, csv, md, html, gbench, nvbench"
"""What `--to` takes; asking the formats themselves would import all of them at each start."""

EVERY = 1_000_000
"""More deleted runs than any store has: those that match are picked from all of them."""

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
    if shipped and deleted:
        raise BadField("--shipped", "yes", "what came with kernelviz is never deleted; leave out --deleted")
    history = use_cases.current().history
    if shipped or deleted:
        listed = history.shipped() if shipped else history.deleted(EVERY if search else limit)
        found = tuple(run for run in listed if _matches(run, search))[:limit]
    else:
        found = history.find(search, limit=limit)
    if as_json:
        console.print_json([msgspec.structs.asdict(run) for run in found])
        return
    if not found:
        console.err().print("no run" + (f" matches {search!r}" if search else " here; `kernelviz run` makes one"))
        return
    console.show(_table(found))


def _matches(run: RunSummary, search: str) -> bool:
    """As the store finds runs: every word somewhere in them, in capitals or not."""
    texts = [t.casefold() for t in (run.id, run.title, run.note, run.op, run.device, run.status)]
    return all(any(word in text for text in texts) for word in search.casefold().split())


@app.command()
def show(
    run: RunId,
    samples: Annotated[
        bool, typer.Option("--samples", help="instead: what the samples of each figure say (quantiles, drift, clocks)")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the table of a run, or its document with --json."""
    if samples and as_json:
        raise BadField(
            "--samples", "yes", "--json prints the whole document, which holds the samples; leave one of them out"
        )
    bench = use_cases.current()
    found = bench.load(run)
    if as_json:
        console.write(formats.encode(found) + b"\n")
        return
    if found.note:
        console.err().print("\n".join(map(console.plain, found.note.splitlines())))
    if samples:
        console.show(tables.samples(rows(found, ()), found))
        return
    console.show(tables.report(found, bench.roofs_of(found)))
    if found.plan.search is not None:
        console.show(tune.report(bench.tunings.report(run)))


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
    named = [history.summary(run) for run in dict.fromkeys(runs)]
    if not yes:
        for run in named:
            console.err().print(f"{run.id}  {console.plain(run.name)}, {run.cases_words}")
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
        if run in (known.id for known in bench.history.shipped()):
            raise BadField(
                "RUN", run, f"it came with kernelviz and is {found.status}; `kernelviz regress {run}` measures it again"
            )
        bench.resume(run, owner=f"terminal {os.getpid()}")
        with Reporter(found.plan) as reporter:
            running.follow(bench, run, reporter)
        if found.plan.search is not None:
            code = tune.print_report(bench, run, as_json=as_json)
        else:
            code = running.print_run(bench, bench.load(run), save=None, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def take_in(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…", help="kernelviz JSON or Parquet, nvbench or google-benchmark JSON, or a backup"
        ),
    ],
) -> None:
    """Keep runs from elsewhere, or restore a backup; prints their ids. What a file is, its content tells.

    All of a file is kept or nothing. One that is refused leaves the others taken in.
    """
    history = use_cases.current().history
    refused = 0
    for file in files:
        try:
            if backup.recognised(file):
                restored = history.take_in_backup(file)
                console.err().print(f"{file}: a backup of {restored.words}")
                ids = restored.ids
            else:
                data = formats.file_bytes(file)
                ids = history.take_in_all(data)
                said = sealed(data)
                if said is not None:
                    console.err().print(f"{file}: {SEALS[said]}")
            sys.stdout.write("".join(f"{run_id}\n" for run_id in ids))
        except KernelvizError as error:
            refused += 1
            console.fail(f"{file}: {error}")
    if refused:
        raise typer.Exit(2 if refused == len(files) else 1)


def give_out(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="id of a run, or a file")] = "",
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="default: stdout")] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help=f"{FORMATS}; default: as OUT ends, else json, the native document"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="a backup of all that is kept here, as one file")] = False,
    variants: Annotated[str | None, typer.Option(metavar="A,B", help="only these, and the baseline")] = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="AXIS=SIZES", help="only these sizes, as n=2^10..2^14; repeat")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="instead of the run's own")] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="instead of the run's own")] = None,
) -> None:
    """Write a run, or a selection of its cases, as a file."""
    if everything:
        of_one = [o for o in running.given(context) if o in ("--variants", "--size", "--title", "--note")]
        if of_one:
            raise BadField(
                "--all", "yes", f"it writes everything that is kept here as it is; leave out {', '.join(of_one)}"
            )
        _back_up(run, out, to)
        return
    if not run:
        raise BadField("RUN", "", "name a run (`kernelviz runs` lists them) or a file, or give --all")
    form = formats.export_named(to or ("json" if out is None else formats.format_of(out.name)))
    found = formats.one_of(formats.read_file(Path(run))) if Path(run).is_file() else use_cases.current().load(run)
    found = selected(
        found,
        variants=running.names(variants),
        problems=at_sizes(found, running.sizes(size, ())) if size else None,
        title=title,
        note=note,
    )
    data = form.encode(found)
    if out is None:
        _to_stdout(data, form.name)
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise BadField("--out", out, f"it cannot be written ({error.strerror})") from None


def _back_up(run: str, out: Path | None, to: str | None) -> None:
    if run or to:
        raise BadField("--all", run or to, "it writes everything that is kept here, in a format of its own")
    if out is None:
        raise BadField("--out", "", "name a file; one that ends with .gz is packed")
    written = use_cases.current().history.back_up(out)
    console.err().print(f"{out}: {written.words}; `kernelviz import` restores it")


def _to_stdout(data: bytes, form: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        if sys.stdout.isatty():
            raise BadField("--out", "", f"{form} is no text for a terminal; name a file") from None
        console.write(data)
    else:
        console.write(data + b"\n")


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
            Text(console.plain(run.title)),
        )
    return table
