"""`kernelviz runs …`, `import` and `export`: find, manage, read and write stored runs."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from kernelviz import bench as use_cases
from kernelviz import formats
from kernelviz.bench import RunSummary, backup, run_files
from kernelviz.bench.card import card as draw_card
from kernelviz.bench.code import describe_left_out
from kernelviz.bench.exported import encoded
from kernelviz.bench.snapshots import at_sizes, selected
from kernelviz.bench.summaries import matches
from kernelviz.cli import console, options, tables, tune
from kernelviz.cli.progress import follow_run
from kernelviz.cli.run import print_run
from kernelviz.core import BadField, KernelvizError, Run, units
from kernelviz.formats import integrity, workload_document
from kernelviz.metrics.rows import rows
from kernelviz.metrics.tuning import is_tuning
from kernelviz.tables.column import Column

FORMATS = "json, parquet, csv, md, html, gbench, nvbench, kernel-tuner, t4"
"""The values of `--to`. They are written out because asking the formats would import all of them at each start."""

app = typer.Typer(
    help="List the runs that are stored on this machine, or show, rename, annotate, delete, restore or resume one."
)

RunIds = Annotated[list[str], typer.Argument(metavar="RUN…", help="Ids of runs.")]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    search: Annotated[
        str,
        typer.Option(
            metavar="WORDS", help="Only runs that have all these words in title, note, op, device, status or id."
        ),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Largest number of runs to list.")] = 50,
    deleted: Annotated[bool, typer.Option("--deleted", help="List deleted runs that can be restored.")] = False,
    shipped: Annotated[bool, typer.Option("--shipped", help="List the runs that come with kernelviz.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the stored runs, the newest first."""
    if context.invoked_subcommand is not None:
        return
    if shipped and deleted:
        raise BadField("--shipped", "yes", "runs that come with kernelviz are never deleted; leave out --deleted")
    history = use_cases.current().history
    if shipped or deleted:
        listed = history.shipped() if shipped else history.deleted(sys.maxsize)
        runs = tuple(run for run in listed if matches(run, search))[:limit]
    else:
        runs = history.find(search, limit=limit)
    console.show_rows(
        _RUNS,
        runs,
        msgspec.structs.asdict,
        as_json=as_json,
        nothing="no run" + (f" matches {search!r}" if search else " is stored here; `kernelviz run` makes one"),
    )


@app.command()
def show(
    run: options.RunId,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples", help="Print statistics of the samples of each time instead: quantiles, drift and clocks."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Print the table of a run, or its whole document with --json."""
    if samples and as_json:
        raise BadField(
            "--samples", "yes", "--json prints the whole document, which holds the samples; leave one of them out"
        )
    bench = use_cases.current()
    stored = bench.load(run)
    if as_json:
        console.write(formats.encode(stored) + b"\n")
        return
    if stored.note:
        console.err().print("\n".join(map(console.plain, stored.note.splitlines())))
    if samples:
        console.show(tables.samples(rows(stored, ()), stored))
        return
    console.show(tables.report(stored, bench.roofs_of(stored)))
    if is_tuning(stored):
        console.show(tune.report(bench.tunings.report(run)))


@app.command()
def card(
    run: options.RunId,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="SVG file to write. Default: stdout.")
    ] = None,
    variants: Annotated[str | None, typer.Option(metavar="A,B", help="Only these variants and the baseline.")] = None,
    l2: options.Headline = "cold",
    link: Annotated[
        str, typer.Option(metavar="URL", help="Address at which the run can be opened. Default: the id of the run.")
    ] = "",
    scheme: Annotated[str, typer.Option(metavar="light|dark", help="Colours of the card.")] = "light",
) -> None:
    """Write the card of a run: one SVG image with the answer, a small chart, device, date and link, for chat and slides."""
    bench = use_cases.current()
    chosen = options.parse_names(variants)
    svg = draw_card(bench, bench.load(run), variants=chosen, l2=l2, link=link, scheme=scheme).encode()
    if output is None:
        console.write(svg + b"\n")
        return
    with console.writable("--output", output):
        output.write_bytes(svg)


@app.command()
def rename(run: options.RunId, title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")]) -> None:
    """Give a run a title."""
    use_cases.current().history.rename(run, title)


@app.command()
def note(run: options.RunId, text: Annotated[str, typer.Argument(metavar="TEXT", help="The new note.")]) -> None:
    """Give a run a note, which replaces its present note."""
    use_cases.current().history.annotate(run, text)


@app.command()
def delete(
    runs: RunIds,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking for confirmation.")] = False,
) -> None:
    """Delete runs. `kernelviz runs restore` brings them back within thirty days."""
    history = use_cases.current().history
    named = [history.summary(run) for run in dict.fromkeys(runs)]
    if not yes:
        for run in named:
            console.err().print(f"{run.id}  {console.plain(run.name)}, {run.case_counts}")
        typer.confirm(f"Delete {len(named)} run{'s' if len(named) != 1 else ''}?", abort=True, err=True)
    for run in named:
        history.delete(run.id)
        console.err().print(f"deleted {run.id}; `kernelviz runs restore {run.id}` brings it back")


@app.command()
def restore(runs: RunIds) -> None:
    """Restore deleted runs."""
    history = use_cases.current().history
    for run in runs:
        history.restore(run)


@app.command()
def resume(run: options.RunId, as_json: options.Json = False) -> int:
    """Measure those cases of an interrupted or cancelled run that have no result yet."""
    with closing(use_cases.current()) as bench:
        stored = bench.load(run)
        if bench.history.openable(run).shipped:
            raise BadField(
                "RUN",
                run,
                f"it came with kernelviz and is {stored.status}; `kernelviz regress {run}` measures it again",
            )
        bench.resume(run, owner=console.owner())
        follow_run(bench, run, stored.plan)
        if is_tuning(stored):
            return tune.print_report(bench, run, as_json=as_json)
        return print_run(bench, bench.load(run), as_json=as_json)


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Files: kernelviz JSON (also of workloads), Parquet or .kvz, JSON of nvbench, google-benchmark or Kernel Tuner, "
            "CSV of ncu, or a backup.",
        ),
    ],
) -> int:
    """Import runs from files, or restore a backup, and print the ids of the runs.

    The format is recognised by the content of a file, not by its name. A file is imported as a whole or not at all. If one file
    is refused, the others are imported nevertheless.

    Exit code 0: all files were imported; 1: some were refused; 2: all were refused.
    """
    history = use_cases.current().history
    refused = 0
    for file in files:
        try:
            if backup.recognised(file):
                restored = history.take_in_backup(file)
                message, ids = f"a backup of {restored.counts}", restored.ids
            else:
                data = formats.file_bytes(file)
                seal: integrity.Seal | None
                if workload_document.recognises(data):
                    ids, seal = (use_cases.current().workloads.take_in(data),), workload_document.sealed(data)
                else:
                    ids, seal = history.take_in_all(data, file=file.name), integrity.sealed(data)
                message = integrity.DESCRIPTIONS[seal] if seal is not None else ""
            if message:
                console.err().print(f"{file}: {message}")
            sys.stdout.write("".join(f"{run_id}\n" for run_id in ids))
        except KernelvizError as error:
            refused += 1
            console.fail(f"{file}: {error}")
    return 0 if not refused else 2 if refused == len(files) else 1


def export(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="Id of a run, or a file that holds one.")] = "",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT", help="File to write. Default: stdout.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help=f"Format: {FORMATS}. Default: by the ending of OUT, otherwise json."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write a backup of everything that is stored here.")
    ] = False,
    variants: Annotated[str | None, typer.Option(metavar="A,B", help="Only these variants and the baseline.")] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="AXIS=SIZES",
            help="Only these sizes of an axis, for example n=2^10..2^14. Repeat the option for each axis.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title in the file. Default: the title of the run.")
    ] = None,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Note in the file. Default: the note of the run.")
    ] = None,
    with_code: options.WithCode = False,
    with_plugin_code: options.WithPluginCode = False,
) -> None:
    """Write a run, or some of its cases, to a file, or everything that is stored here with --all.

    docs/formats.md describes the formats. html is a page with charts that opens without a network.
    """
    if everything:
        of_one_run = {"--variants", "--size", "--title", "--note", "--with-code", "--with-plugin-code"}
        if superfluous := [o for o in options.options_on_command_line(context) if o in of_one_run]:
            raise BadField(
                "--all",
                "yes",
                f"it writes everything that is stored here unchanged; leave out {', '.join(superfluous)}",
            )
        if run or to:
            raise BadField("--all", run or to, "it writes everything that is stored here, in its own format")
        if out is None:
            raise BadField("--out", "", "name a file; a name that ends with .gz makes a compressed file")
        written = use_cases.current().history.back_up(out)
        console.err().print(f"{out}: {written.counts}; `kernelviz import` restores it")
        for name in written.damaged:
            console.err().print(f"not in it: {name} cannot be read, because the database is damaged there")
        return
    if not run:
        raise BadField("RUN", "", "name a run (`kernelviz runs` lists them) or a file, or give --all")
    if with_plugin_code and not with_code:
        raise BadField("--with-plugin-code", "yes", "it adds to --with-code; give both")
    form = formats.export_named(to or ("json" if out is None else formats.format_of(out.name)))
    stored = run_files.read_one(Path(run)) if Path(run).is_file() else use_cases.current().load(run)
    selection = selected(
        stored,
        variants=options.parse_names(variants),
        problems=at_sizes(stored, options.parse_sizes(size)) if size else None,
        title=title,
        note=note,
    )
    part = (
        _with_code(selection, form, plugins=with_plugin_code)
        if with_code
        else msgspec.structs.replace(selection, code=msgspec.UNSET)
    )
    data = encoded(part, form, use_cases.current)
    if unreadable := formats.describe_unreadable(form.name, len(data)):
        console.warn(f"{out or 'stdout'}: {unreadable} (--variants, --size)")
    if out is None:
        _to_stdout(data, form.name)
        return
    with console.writable("--out", out):
        out.write_bytes(data)


def _with_code(run: Run, form: formats.Export, *, plugins: bool) -> Run:
    """The run with its code; what is left out is said on stderr. Errors: BadField for a format that holds no code."""
    if not form.holds_code:
        holding = ", ".join(name for name, one in formats.exports().items() if one.holds_code)
        raise BadField("--with-code", form.name, f"this format holds no code; write one of {holding}")
    whole, left_out = use_cases.current().history.code.with_code(run, plugins=plugins)
    for line in describe_left_out(left_out):
        console.err().print(line)
    return whole


def _to_stdout(data: bytes, form: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        if sys.stdout.isatty():
            raise BadField(
                "--out", "", f"{form} is a binary format, which a terminal cannot show; name a file"
            ) from None
        console.write(data)
    else:
        console.write(data + b"\n")


_RUNS: tuple[Column[RunSummary], ...] = (
    Column("", "Id", "", units.TEXT, lambda run: run.id),
    Column("", "When", "", units.TEXT, lambda run: run.created_at[:16].replace("T", " ")),
    Column("", "Op", "", units.TEXT, lambda run: run.op),
    Column("", "Device", "", units.TEXT, lambda run: run.device),
    Column("", "Cases", "", units.TEXT, lambda run: run.case_counts),
    Column("", "Status", "", units.TEXT, lambda run: run.status),
    Column("", "Title", "", units.TEXT, lambda run: run.title),
)
