"""`kernelviz ladder`: the rungs of an op in order, what each gains here and as published, and what changed in its code."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench import ladder as use_case
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.bench.comparison import HEADLINES
from kernelviz.bench.ladder_changes import changes_of
from kernelviz.bench.snapshots import at_sizes
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.run import exit_code
from kernelviz.core import BadField, Problem, Run, check_name
from kernelviz.formats import ladder_page
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.ladder import Ladder, Metric
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.metrics.ladder_summary import summary_of
from kernelviz.tables.column import View
from kernelviz.tables.ladder import ladder_columns, ladder_rows
from kernelviz.text.ladder import (
    describe_library,
    format_excluded,
    format_roof,
)
from kernelviz.text.ladder_changes import (
    describe_unread_code,
)
from kernelviz.text.ladder_facts import facts_of_step
from kernelviz.text.ladder_markdown import markdown
from kernelviz.text.ladder_summary import describe_summary

METRICS = get_args(Metric)


def ladder(
    op: Annotated[
        str | None,
        typer.Argument(
            metavar="OP|FILE",
            help="An op, or a file that holds one run. Default: the op of the newest run with a ladder.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Id of the run. Default: the run of the op with the most rungs."),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The problem of the run, for example 'matmul bf16 m=4096 n=4096 k=4096'."),
    ] = None,
    size: options.Sizes = None,
    backend: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the ladder of this backend: cuda, triton, gluon, cpp, …")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"What is ladders: {', '.join(METRICS)}. Default: what limits the problem."),
    ] = None,
    l2: options.Headline = "cold",
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure all rungs and the libraries at --size, and show this run.")
    ] = False,
    variant: Annotated[
        str | None,
        typer.Option("--variant", metavar="VARIANT", help="With --measure: only this rung, and the one before it."),
    ] = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    direction: options.Direction = "forward",
    device: options.DeviceId = None,
    budget_s: Annotated[
        float,
        typer.Option(min=0.01, max=600.0, metavar="SECONDS", help="With --measure: largest device time for each case."),
    ] = measuring.BUDGET_S,
    machine_code: Annotated[
        bool,
        typer.Option(help="Also read the machine code of the kernels, which takes some seconds and needs nvdisasm."),
    ] = True,
    as_markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print the ladder as Markdown that reads like a work log, with source diffs."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.html|FILE.md",
            help="Write the ladder as a page that opens offline, or as Markdown.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Show how one gets from the plainest kernel of an op to the best: its rungs in order, and why each is faster.

    A rung is a variant of the op; each backend (CUDA C++, Triton, Gluon, C++) has a ladder of its own. For each rung: its time,
    the gain over the last correct rung before it, the gain that a source published for the same idea, and what changed in source
    and machine code. Libraries are the lines to beat. A wrong rung gives no gain.
    Exit code with --measure: 0, every case was measured; 1, some cases failed. Else 0.
    """
    _check(metric, l2, variant, output, measure=measure, dtype=dtype, device=device, run=run, problem=problem)
    bench = use_cases.current()
    if not measure:
        run_to_show = _opened(bench, op, run, size)
        _show(
            bench,
            run_to_show,
            _problem(bench, run_to_show, problem, size),
            backend,
            metric,
            l2,
            machine_code,
            as_markdown,
            output,
            as_json,
        )
        return 0
    with closing(bench):
        plan = measuring.plan_of(
            bench, op or use_case.default_op(bench), device, sizes=options.parse_sizes(size) or None, dtype=dtype,
            compute=compute, direction=direction, backend=backend, variant=variant,
        )  # fmt: skip
        run_id = measuring.start(bench, plan, budget_s=budget_s, owner=console.owner())
        follow_run(bench, run_id, plan)
        measured = bench.load(run_id)
        _show(bench, measured, plan.problems[-1], backend, metric, l2, machine_code, as_markdown, output, as_json)
        return 1 if exit_code(measured) else 0


def _check(
    metric: str | None,
    l2: str,
    variant: str | None,
    output: Path | None,
    *,
    measure: bool,
    dtype: str | None,
    device: str | None,
    run: str | None,
    problem: str | None,
) -> None:
    """Errors: UnknownName, BadField."""
    if metric is not None:
        check_name("metric", metric, METRICS)
    check_name("l2", l2, HEADLINES)
    if output is not None and output.suffix not in (".html", ".htm", ".md"):
        raise BadField(
            "--output", output, "name a file that ends in .html (a page that opens offline) or .md (Markdown)"
        )
    if measure and (run is not None or problem is not None):
        raise BadField(
            "--measure", "yes", "it measures a new run; leave out --run and --problem, and name sizes with --size"
        )
    given = {"--variant": variant, "--dtype": dtype, "--device": device}
    for name, value in given.items():
        if not measure and value is not None:
            raise BadField(name, value, "it says what --measure measures; add --measure, or leave it out")


def _opened(bench: Bench, op: str | None, run: str | None, size: list[str] | None) -> Run:
    """The run to show. Errors: UnknownName, UnknownRun, BadField, DocumentError."""
    if op is not None and (Path(op).is_file() or Path(op).suffix):
        if run is not None:
            raise BadField("--run", run, "the file holds the run; leave it out")
        return use_case.opened_run(bench, op)
    if run is not None:
        run_to_show = use_case.opened_run(bench, run)
        if op is not None and run_to_show.plan.op != op:
            raise BadField("--run", run, f"it is a run of {run_to_show.plan.op}, not of {op}")
        return run_to_show
    name = op or use_case.default_op(bench)
    use_case.op_with_ladder(bench, name)
    summary = use_case.default_run(bench, name, options.parse_sizes(size) if size else None)
    if summary is None:
        raise BadField(
            "OP",
            name,
            f"no run here shows its ladder; `kernelviz ladder {name} --measure` measures it, or name a file with a run",
        )
    return bench.load(summary.id)


def _problem(bench: Bench, run: Run, key: str | None, size: list[str] | None) -> Problem:
    use_case.op_with_ladder(bench, run.plan.op)
    if key is not None:
        if size:
            raise BadField("--size", ", ".join(size), "--problem names the sizes; leave one of them out")
        return use_case.problem_named(run, key)
    keys = at_sizes(run, options.parse_sizes(size)) if size else None
    return use_case.default_problem(bench, run, keys)


def _show(
    bench: Bench,
    run: Run,
    problem: Problem,
    backend: str | None,
    metric: str | None,
    l2: str,
    machine_code: bool,
    as_markdown: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    ladders = use_case.ladder_of(bench, run, problem, cast(Headline, l2))
    if backend is not None:
        check_name("backend", backend, [of.backend for of in ladders.ladders])
    by = cast(Metric, metric or ladders.metric)
    changes = changes_of(bench, ladders, machine_code=machine_code)
    if output is not None:
        with console.writable("--output", output):
            if output.suffix == ".md":
                output.write_text(f"{markdown(ladders, changes, metric=by, backend=backend)}\n", encoding="utf-8")
            else:
                output.write_bytes(ladder_page.page(ladders, changes, metric=by, backend=backend))
        console.err().print(f"{output}")
    elif as_json:
        console.print_json([r for r in use_case.records(ladders, changes) if backend in (None, r["backend"])])
    elif as_markdown:
        console.print_code(markdown(ladders, changes, metric=by, backend=backend))
    else:
        _table(bench, ladders, changes, by, backend)


def _table(bench: Bench, ladders: Ladder, changes: LadderChanges, metric: Metric, backend: str | None) -> None:
    chosen = ladders.with_times(backend)
    rows = [row for of in chosen for row in ladder_rows(ladders, changes, of.backend)]
    console.echo(f"{ladders.problem.key} · {ladders.run.environment.device.name} · run {ladders.run.id}")
    for of in chosen:
        console.echo(f"{describe_summary(summary_of(ladders, of), metric, str)}")
    if not rows:
        console.err().print("no rung of this ladder has a correct time in this run")
    else:
        console.show(console.table(ladder_columns(rows, View.TERMINAL), rows))
    for library in ladders.libraries:
        console.echo(f"library {describe_library(library, metric, str)}")
    if roof := format_roof(ladders, metric):
        console.echo(roof)
    for row in rows:
        step = row.step
        console.echo(f"\n{step.number} {step.variant}: {step.declared.idea}")
        whole = ladders.of(row.backend)
        assert whole is not None
        for label, text in facts_of_step(ladders, whole, step, changes, metric, str):
            console.echo(f"  {label.lower()}: {text}")
    unread = describe_unread_code(changes, ladders.problem)
    coded = use_case.with_code(bench, ladders.problem.op) if str(unread) else ()
    with_code = [f"A stored run that shows what changed: kernelviz ladder {run.op} --run {run.id}" for run in coded[:1]]
    for line in (unread, *with_code, *format_excluded(ladders.excluded, str)):
        if str(line):
            console.err().print(f"{line}")
