"""`kernelviz workloads`: list what is larger than a kernel, measure it, show, compare, export and manage its runs."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.workload_comparison import compared, opened
from kernelviz.bench.workload_history import WorkloadSummary
from kernelviz.bench.workload_plan import WorkloadRequest, device_choices, limits, mechanics_only, refusal
from kernelviz.cli import console, options
from kernelviz.core import BadField, units
from kernelviz.core.workload import (
    Workload,
    WorkloadCaseDone,
    WorkloadEnded,
    WorkloadProgress,
    WorkloadRun,
)
from kernelviz.formats import workload_exports
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.workloads import WorkloadRow, rows, varying_axes
from kernelviz.tables.column import Column, View
from kernelviz.tables.workloads import ladder_columns, pair_columns, pair_record, record
from kernelviz.text.workload_gains import GAIN_SENTENCES
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workload_quality import count_caveats
from kernelviz.text.workloads import (
    MECHANICS_LABEL,
    MECHANICS_ONLY,
    describe_caveats,
    describe_comparison,
    describe_differences,
    describe_failed,
    describe_notes,
    describe_progress,
    format_point,
    format_value,
)

app = typer.Typer(
    help="List the workloads (what is larger than a kernel), measure one, or show, compare, export and manage their runs."
)
RunOrFile = Annotated[
    str, typer.Argument(metavar="RUN|FILE", help="Id of a run of a workload, or a file that holds one.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run. To list them: `kernelviz workloads runs`.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Workload. To list them: `kernelviz workloads`.")]
FIGURES_OF_A_TABLE = 3
With = Annotated[
    list[str] | None, typer.Option("--with", metavar="FILE", help="Python file with workloads of your own. Repeatable.")
]


@app.callback(invoke_without_command=True)
def workloads(context: typer.Context, plugins: With = None, as_json: options.Json = False) -> None:
    """List the workloads, their variants, and where they can run on this machine."""
    if context.invoked_subcommand is None:
        _list(plugins, as_json=as_json)


def _list(plugins: list[str] | None, *, as_json: bool) -> None:
    bench = use_cases.current()
    listed = list(bench.workloads.declared(tuple(plugins or ())).values())
    columns: tuple[Column[Workload], ...] = (
        Column("", "Name", "", units.TEXT, lambda w: w.name),
        Column("", "What it is", "", units.TEXT, lambda w: w.title),
        Column("", "Here", "", units.TEXT, lambda w: _where(bench, w)),
        Column("", "Baseline", "", units.TEXT, lambda w: w.baseline),
        Column("", "Variants", "", units.TEXT, lambda w: ", ".join(v.name for v in w.variants)),
    )
    console.show_rows(
        columns, listed, lambda w: _declared(bench, w), as_json=as_json, nothing="no workload is installed"
    )


@app.command("list")
def list_workloads(plugins: With = None, as_json: options.Json = False) -> None:
    """List the workloads, their variants, and where they can run on this machine."""
    _list(plugins, as_json=as_json)


def _where(bench: Bench, workload: Workload) -> str:
    choices = device_choices(workload, bench.devices())
    if not choices:
        return str(refusal(workload, bench.devices()) or "")
    names = ["+".join(d.id for d in choice) for choice in choices]
    marks = [f" ({MECHANICS_LABEL})" if mechanics_only(workload, choice[0]) else "" for choice in choices]
    return ", ".join(f"{name}{mark}" for name, mark in zip(names, marks, strict=True))


def _declared(bench: Bench, workload: Workload) -> dict[str, object]:
    choices = device_choices(workload, bench.devices())
    return {
        "name": workload.name,
        "title": workload.title,
        "summary": workload.summary,
        "devices": [[d.id for d in choice] for choice in choices],
        "axes": {a.name: list(a.choices) or a.kind for a in workload.axes},
        "presets": {p.name: {axis: list(values) for axis, values in p.values.items()} for p in workload.presets},
        "variants": {v.name: v.caption for v in workload.variants},
        "baseline": workload.baseline,
        "figures": {f.name: {"title": f.title, "unit": f.unit, "better": f.better} for f in workload.figures},
        "limits": [limit.text for limit in workload.limits],
    }


@app.command()
def run(
    name: Name,
    variants: Annotated[
        str | None, typer.Option(metavar="A,B", help="Variants besides the baseline. Default: all that can run here.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="AXIS=VALUES",
            help="Values of an axis, for example size=2^10..2^20 or workers=0,4. Repeat it for each axis.",
        ),
    ] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help="Values of all other axes.")] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="cuda:0,cuda:1|cuda:0|cpu", help="Device, or two for a workload of two processes."),
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="VARIANT", help="What gains are relative to.")] = None,
    budget_s: Annotated[
        float | None,
        typer.Option(
            "--budget", metavar="SECONDS", help="Time of measuring for each case, more where ten rounds take longer."
        ),
    ] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the run.")] = "",
    plugins: With = None,
    as_json: options.Json = False,
) -> int:
    """Measure a workload and print its ladder.

    Ctrl-C cancels it and keeps the results; `kernelviz workloads resume RUN` goes on. Exit code 0: every case was measured; 1:
    some failed or are missing; 2: no variant takes such values. A variant that does not take them is named, and does not count.
    """
    request = WorkloadRequest(
        workload=name,
        variants=options.parse_names(variants),
        values=_settings(settings),
        preset=preset,
        devices=None if device is None else tuple(part.strip() for part in device.split(",")),
        baseline=baseline,
        budget_s=budget_s,
        plugins=tuple(plugins or ()),
    )
    with closing(use_cases.current()) as bench:
        plan = bench.workloads.plan(request)
        run_id = bench.workloads.run(plan, owner=console.owner(), title=title)
        return follow_workload(bench, run_id, as_json=as_json)


def _settings(given: list[str] | None) -> dict[str, str]:
    values = {}
    for text in given or ():
        axis, equals, value = text.partition("=")
        if not equals or not axis.strip() or not value.strip():
            raise BadField("--set", text, "write it as axis=values, for example size=2^10..2^20")
        values[axis.strip()] = value.strip()
    return values


@app.command()
def resume(run: RunId, as_json: options.Json = False) -> int:
    """Measure those cases of a cancelled or interrupted run that have no result yet."""
    with closing(use_cases.current()) as bench:
        bench.workloads.resume(run, owner=console.owner())
        return follow_workload(bench, run, as_json=as_json)


def follow_workload(bench: Bench, run_id: str, *, as_json: bool) -> int:
    """Print the progress on stderr until the end, then the ladder on stdout; returns the exit code."""
    follow_progress(bench, run_id)
    stored = bench.workloads.load(run_id)
    _print(stored, as_json=as_json)
    usable = sum(r.failure is None for r in stored.results)
    missing = len(stored.plan.cases) - sum(not (r.failed or r.given_up) for r in stored.results)
    if not usable and not missing:
        return 2  # no variant takes such values
    return 1 if missing or stored.status != "finished" else 0


def follow_progress(bench: Bench, run_id: str) -> None:
    """Print the progress of a run on stderr until its end. Ctrl-C cancels it and keeps the results."""
    seen, cancelled, said = 0, False, ""
    run = bench.workloads.load(run_id)
    declared = run.declared
    while True:
        try:
            for number, event in bench.workloads.follow(run_id, seen):
                seen = number
                if isinstance(event, WorkloadCaseDone):
                    result = event.result
                    value = result.values.get(declared.headline.name)
                    text = (
                        describe_failed(result.failure)
                        if result.failure
                        else format_value(value, declared.headline.unit)
                    )
                    console.err().print(console.plain(f"{result.case.key}: {text}"), markup=False)
                elif isinstance(event, WorkloadProgress) and event.step in ("waiting", "starting"):
                    if (now := str(describe_progress(event, run))) != said:
                        console.err().print(console.plain(now), markup=False)
                    said = now
                elif isinstance(event, WorkloadEnded) and event.message:
                    console.err().print(console.plain(event.message), markup=False)
            break
        except KeyboardInterrupt:
            if cancelled:
                raise
            cancelled = True
            console.err().print("cancelling; results so far are kept (Ctrl-C again leaves at once)")
            bench.workloads.cancel(run_id)


def _print(run: WorkloadRun, *, as_json: bool) -> None:
    listed = rows(run)
    if as_json:
        console.print_json([record(run, row) for row in listed])
        return
    parts: list[RenderableType] = [Text(console.plain(run.title), style="bold")]
    if workload_exports.is_mechanics_only(run):
        parts.append(Text(str(MECHANICS_ONLY)))
    parts.append(console.table(ladder_columns(run, listed, View.TERMINAL), listed))
    parts += _other_figures(run, listed)
    parts += [Text(console.plain(text), style="dim") for text in _notes(run, listed)]
    if caveats := describe_caveats(run, listed):
        parts += [Text(console.plain(str(text)), style="dim") for text in (count_caveats(run, listed), *caveats)]
    parts.append(Text(f"{describe_insight(run)}"))
    if any(row.gains for row in listed):
        parts += [Text(str(sentence), style="dim") for sentence in GAIN_SENTENCES]
    parts += [Text(console.plain(limit.text), style="dim") for limit in limits(run.declared, run.devices[0])]
    parts.append(Text(f"run {run.id}", style="dim"))
    console.show(Group(*parts))


def _other_figures(run: WorkloadRun, listed: Sequence[WorkloadRow]) -> list[RenderableType]:
    """The figures besides the headline, so many in a table that it fits into a terminal."""
    columns = ladder_columns(run, listed, View.TIMES_NARROW)
    leading = 1 + len(varying_axes(run))
    return [
        console.table([*columns[:leading], *columns[first : first + FIGURES_OF_A_TABLE]], listed)
        for first in range(leading, len(columns), FIGURES_OF_A_TABLE)
    ]


def _notes(run: WorkloadRun, listed: Sequence[WorkloadRow]) -> Iterator[str]:
    """Each note, and each reason for a missing value, with the cases that have it."""
    for text, having in grouped(listed, key=lambda row: str(describe_notes(row))).items():
        if text:
            cases = (" ".join((row.case.variant, _at(run, row))).rstrip() for row in having)
            yield f"{'all cases' if len(having) == len(listed) else ', '.join(cases)}: {text}"


def _at(run: WorkloadRun, row: WorkloadRow) -> str:
    """The values of the axes that vary in the run, in brackets; empty if none does."""
    return f"({format_point(run, row.case.values, axes)})" if (axes := varying_axes(run)) else ""


@app.command()
def show(run: RunOrFile, as_json: options.Json = False) -> None:
    """Print the ladder of a run: verdict, gain and noise floor of the headline, then each figure with its interval and gain."""
    _print(opened(use_cases.current().workloads, run), as_json=as_json)


@app.command()
def compare(
    a: RunOrFile,
    b: Annotated[str, typer.Argument(metavar="[RUN|FILE]", help="The other run. Default: the same.")] = "",
    variants: Annotated[
        str | None, typer.Option(metavar="A,B", help="Compare variant A of the first run with variant B of the second.")
    ] = None,
    all_figures: Annotated[bool, typer.Option("--all", help="All figures, not the headline only.")] = False,
    as_json: options.Json = False,
) -> None:
    """Compare two runs of a workload case by case, or two variants of one run, with verdicts by intervals."""
    names = options.parse_names(variants) or ()
    if len(names) > 2:
        raise BadField("--variants", variants or "", "name one variant, or two: A of the first run and B of the second")
    first, second = (names[0], names[-1]) if names else (None, None)
    of = compared(use_cases.current().workloads, a, b or a, variant_a=first, variant_b=second)
    pairs = [pair for pair in of.pairs if all_figures or pair.figure.headline]
    if as_json:
        console.print_json([pair_record(pair) for pair in pairs])
        return
    if pairs:
        console.show(console.table(pair_columns(pairs, of.b, View.TERMINAL), pairs))
    console.err().print(str(describe_comparison(of)), markup=False)
    for text in describe_differences(of):
        console.err().print(console.plain(str(text)), markup=False)


@app.command()
def export(
    run: RunOrFile,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT", help="File to write. Default: stdout.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="json, md, csv or html. Default: by the ending of OUT, else json."),
    ] = None,
) -> None:
    """Write a run to a file. html is a page with its charts that opens without a network; `kernelviz import` reads json."""
    form = to or ("json" if out is None else workload_exports.format_of(out.name))
    data = workload_exports.encode(opened(use_cases.current().workloads, run), form)
    if out is None:
        console.write(data + b"\n")
        return
    with console.writable("--out", out):
        out.write_bytes(data)


_RUNS: tuple[Column[WorkloadSummary], ...] = (
    Column("", "Id", "", units.TEXT, lambda run: run.id),
    Column("", "When", "", units.TEXT, lambda run: run.created_at[:16].replace("T", " ")),
    Column("", "Workload", "", units.TEXT, lambda run: run.workload),
    Column("", "Device", "", units.TEXT, lambda run: run.device),
    Column(
        "",
        "Restriction",
        "",
        units.TEXT,
        lambda run: str(MECHANICS_LABEL) if run.mechanics_only else None,
        optional=True,
    ),
    Column("", "Cases", "", units.TEXT, lambda run: run.case_counts),
    Column("", "Status", "", units.TEXT, lambda run: run.status),
    Column("", "Title", "", units.TEXT, lambda run: run.title),
)


@app.command()
def runs(
    search: Annotated[str, typer.Option(metavar="WORDS", help="Only runs that have all these words.")] = "",
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Largest number of runs to list.")] = 50,
    deleted: Annotated[bool, typer.Option("--deleted", help="List deleted runs that can be restored.")] = False,
    shipped: Annotated[bool, typer.Option("--shipped", help="List the runs that come with kernelviz.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the stored runs of workloads, the newest first."""
    history = use_cases.current().workloads
    matching = (
        history.shipped() if shipped else history.deleted(limit) if deleted else history.find(search, limit=limit)
    )
    console.show_rows(
        _RUNS, matching[:limit], dataclasses.asdict, as_json=as_json,
        nothing="no run of a workload came with kernelviz"
        if shipped
        else "no run of a workload is stored here; `kernelviz workloads run` makes one",
    )  # fmt: skip
    if any(run.mechanics_only for run in matching[:limit]) and not as_json:
        console.err().print(console.plain(str(MECHANICS_ONLY)), markup=False)


@app.command()
def rename(run: RunId, title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")]) -> None:
    """Give a run a title."""
    use_cases.current().workloads.rename(run, title)


@app.command()
def note(run: RunId, text: Annotated[str, typer.Argument(metavar="TEXT", help="The new note.")]) -> None:
    """Give a run a note, which replaces its present note."""
    use_cases.current().workloads.annotate(run, text)


@app.command()
def delete(
    run: RunId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking for confirmation.")] = False,
) -> None:
    """Delete a run. `kernelviz workloads restore` brings it back within thirty days."""
    history = use_cases.current().workloads
    summary = history.summary(run)
    if not yes:
        console.err().print(console.plain(f"{run}  {summary.name}, {summary.case_counts}"), markup=False)
        typer.confirm("Delete it?", abort=True, err=True)
    history.delete(run)
    console.err().print(f"deleted {run}; `kernelviz workloads restore {run}` brings it back")


@app.command()
def restore(run: RunId) -> None:
    """Restore a deleted run."""
    use_cases.current().workloads.restore(run)
