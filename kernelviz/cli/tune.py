"""`kernelviz tune` and `kernelviz tunings`: find the best configuration of a variant; list and remove stored ones."""

from contextlib import closing
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.tunings import EARLY_STOP, METHOD, TuningReport
from kernelviz.cli import console, options, tuning_analysis
from kernelviz.cli.progress import follow_run
from kernelviz.core import BadField, UsageError, check_name, units
from kernelviz.core.configuration import base_name, configuration_text, parted
from kernelviz.core.sizes import values
from kernelviz.metrics.rows import Row
from kernelviz.metrics.tuning import Tried, stopped_early
from kernelviz.ops import op_named
from kernelviz.ops.catalog.space import tuned_keys
from kernelviz.tables.column import Column
from kernelviz.tables.tunings import STORED_TUNINGS
from kernelviz.text import (
    describe_best,
    describe_correctness,
    describe_cost,
    describe_failures,
    describe_search,
    format_time,
    format_verdict,
)
from kernelviz.text.report import typed_sizes
from kernelviz.text.tuning import describe_plan, record

app = typer.Typer(
    help="List, store or remove the best configurations that `kernelviz tune` has found. Later runs use the stored ones."
)

MOST_ROWS = 10
"""Configurations in the table: the best ones, and the default."""


def tune(
    context: typer.Context,
    op: Annotated[
        str, typer.Argument(metavar="OP", help="Op of the variant. To list ops and variants: `kernelviz ops`.")
    ] = "",
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="Variant that has parameters to tune.")] = "",
    size: options.Sizes = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    direction: options.Direction = "forward",
    data: options.Data = "normal",
    configurations: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Number of configurations to measure, chosen at random. Default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the random choice.")] = 0,
    budget_s: Annotated[
        float,
        typer.Option(
            min=0.001, max=60.0, metavar="SECONDS", help="Largest device time for each configuration, in seconds."
        ),
    ] = METHOD.budget_s,
    device: options.DeviceId = None,
    plugins: options.Plugins = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Continue a cancelled tuning. Leave out OP and VARIANT."),
    ] = None,
    as_json: options.Json = False,
    no_compile_ahead: options.NoCompileAhead = False,
    no_early_stop: Annotated[
        bool,
        typer.Option(
            "--no-early-stop",
            help=f"Measure every configuration to the end. By default, one that takes more than {EARLY_STOP:g} times as long as "
            "the best beside it gets one block only; its time is then an estimate without an interval.",
        ),
    ] = False,
) -> int:
    """Measure the configurations of a variant (block sizes, warps, stages) for one problem and store the best one.

    A problem is an op at one set of sizes in one number format, so name one size for each axis. Later runs of exactly this
    problem on this device use the stored configuration, whatever values their inputs hold. Each configuration passes the same
    correctness check as any variant. Ctrl-C ends the tuning and keeps what was measured.

    Exit code 0: the tuning finished and the best configuration is stored; 1: it did not finish; 2: bad usage, or no
    configuration is correct.
    """
    with closing(use_cases.current()) as bench:
        if resume is not None:
            if op or variant:
                raise BadField("--resume", resume, "the run itself says what is tuned; leave out OP and VARIANT")
            superfluous = [o for o in options.options_on_command_line(context) if o not in ("--resume", "--json")]
            if superfluous:
                raise BadField(
                    "--resume", resume, f"the tuning continues as it began; leave out {', '.join(superfluous)}"
                )
            run_id = resume
            plan = bench.tunings.report(run_id).run.plan  # raises for a run that is not a tuning
            bench.resume(run_id, owner=console.owner())
        elif not op:
            raise UsageError(
                f"OP and VARIANT are missing: name an op and one of its variants that has parameters to tune, for example "
                f"`kernelviz tune add triton_tuned --size n=2^26`; ops with such a variant: {_tunable_ops(bench)}"
            )
        elif not variant:
            named_op = op_named(op, bench.ops())
            names = ", ".join(v.name for v in named_op.variants if tuned_keys(v))
            raise UsageError(
                f"VARIANT is missing: name the variant of {op} to tune: {names}"
                if names
                else f"VARIANT is missing, and no variant of {op} has parameters to tune; ops with one: {_tunable_ops(bench)}"
            )
        else:
            request = options.run_request(
                op,
                (variant,),
                size,
                preset=preset,
                dtype=dtype,
                compute=compute,
                direction=direction,
                data=data,
                device=device,
                plugins=plugins,
            )
            plan = bench.tuning(request, configurations=configurations, seed=seed)
            method = msgspec.structs.replace(
                METHOD,
                budget_s=budget_s,
                ahead=not no_compile_ahead,
                early_stop=msgspec.UNSET if no_early_stop else EARLY_STOP,
            )
            console.err().print(str(describe_plan(plan, bench.tunings.cost(plan, method))))
            run_id = bench.run(plan, method, owner=console.owner())
        follow_run(bench, run_id, plan)
        return print_report(bench, run_id, as_json=as_json)


def _tunable_ops(bench: Bench) -> str:
    return ", ".join(name for name, op in bench.ops().items() if any(tuned_keys(v) for v in op.variants))


def print_report(bench: Bench, run_id: str, *, as_json: bool = False) -> int:
    """Print the result of a tuning on stdout and return the exit code."""
    result = bench.tunings.report(run_id)
    run, tried = result.run, result.tried
    if as_json:
        console.print_json(record(run, tried, result.tuning, result.seconds))
    else:
        console.show(report(result))
    if run.status != "finished":
        console.err().print(
            f"{run.status}: {tried.tried} of {tried.planned} configurations are measured, and none is stored for later runs "
            f"yet; `kernelviz tune --resume {run.id}` continues, `kernelviz tunings keep {run.id}` stores the best so far"
        )
        return 1
    return 0 if tried.best is not None else 2


def report(result: TuningReport) -> RenderableType:
    """The best configurations, the failures by reason, what is stored, and the cost of the tuning."""
    tried, run, problem = result.tried, result.run, result.tried.problem
    parts: list[RenderableType] = [
        Text(
            f"{problem.op} {problem.precision} {typed_sizes(problem)}, {tried.variant}, on {run.environment.device.name}"
        ),
        Text(str(describe_search(tried, run.plan.search))),
    ]
    if tried.ranked:
        rows = [row for number, row in enumerate(tried.ranked) if number < MOST_ROWS or row.is_baseline]
        parts.append(console.table(_ranked_columns(tried), rows))
    for reason in tried.failures:
        parts += [
            Text(f"✕ {len(reason.variants)} × {describe_failures(reason)}", style="red"),
            Text(f"    {'; '.join(v.removeprefix(base_name(v))[1:-1] for v in reason.variants)}", style="dim"),
        ]
    return Group(
        *parts,
        Text(str(describe_best(tried, result.tuning))),
        Text(str(describe_cost(result.seconds, tried))),
        Text(f"run {run.id}", style="dim"),
    )


def _ranked_columns(tried: Tried) -> list[Column[Row]]:
    """A column for each parameter of the variant, then time, gain, correctness and what the configuration is."""
    return [
        *map(_value_column, parted(tried.ranked[0].result.variant)[1] or {}),
        Column("", "Time", "", units.OWN_TEXT, _time),
        Column(
            "",
            "Over the default",
            "",
            units.OWN_TEXT,
            lambda row: "1" if row.is_baseline else format_verdict(row.verdict) if row.verdict and _whole(row) else "",
        ),
        Column("", "Correct", "", units.TEXT, lambda row: describe_correctness(row.result)),
        Column(
            "",
            "",
            "",
            units.OWN_TEXT,
            lambda row: ", ".join(
                ["default"] * row.is_baseline + ["best"] * (row is tried.best) + ["stopped early"] * (not _whole(row))
            ),
        ),
    ]


def _whole(row: Row) -> bool:
    return stopped_early(row.result) is None


def _time(row: Row) -> str:
    return str(format_time(row.figure)) if _whole(row) else f"≈ {format_time(row.figure)} (one block)"


def _value_column(key: str) -> Column[Row]:
    return Column("", "", "", units.OWN_NUMBER, lambda row: (parted(row.result.variant)[1] or {}).get(key), subject=key)


@app.callback(invoke_without_command=True)
def list_tunings(
    context: typer.Context,
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="Only of this op.")] = None,
    variant: options.OnlyVariant = None,
    device: options.OnlyDevice = None,
    as_json: options.Json = False,
) -> None:
    """List the stored configurations: variant, problem, device, and the gain over the default configuration."""
    if context.invoked_subcommand is not None:
        return
    bench = use_cases.current()
    tunings = bench.tunings.find(op, variant=variant, device=device)
    if op is not None and not tunings:
        op_named(op, bench.ops())  # raises for an unknown op
    console.show_rows(
        STORED_TUNINGS,
        tunings,
        lambda stored: msgspec.to_builtins(stored.tuning) | {"used": not stored.stale, "stale": stored.stale},
        as_json=as_json,
        nothing="no tuning is stored here; `kernelviz tune OP VARIANT --size …` makes one",
        style=lambda stored: "red" if stored.stale else "",
    )


app.command("show")(tuning_analysis.show)
app.command("transfer")(tuning_analysis.transfer)


@app.command()
def keep(run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a cancelled tuning.")]) -> None:
    """Store the best configuration so far of a tuning that did not finish."""
    stored = use_cases.current().tunings.keep(run)
    console.err().print(
        f"{stored.variant} uses {configuration_text(stored.configuration)} from now on for {stored.problem.key}: the best of "
        f"{stored.tried} configurations that were measured"
    )


@app.command()
def forget(
    op: Annotated[str, typer.Argument(metavar="OP", help="Op of the variant.")],
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="Variant whose stored configurations are removed.")],
    size: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="AXIS=VALUE", help="Only for this size. Repeat the option for each axis."),
    ] = None,
    device: options.OnlyDevice = None,
) -> None:
    """Remove the stored configurations of a variant, which uses its default configuration again."""
    tunings = use_cases.current().tunings
    sizes: dict[str, int] = {}
    for axis, text in options.parse_sizes(size).items():
        sizes[axis], *several = values(axis, text)
        if several:
            raise BadField("--size", f"{axis}={text}", "name one size")
    stored = tunings.find(op, variant=variant, device=device)
    if not stored:
        raise BadField("VARIANT", variant, "no configuration of it is stored; `kernelviz tunings` lists those that are")
    axes = dict.fromkeys(axis for s in stored for axis in s.tuning.problem.sizes)
    for axis in sizes:
        check_name("axis", axis, axes, of=f"op {op!r}")
    matching = [s for s in stored if sizes.items() <= s.tuning.problem.sizes.items()]
    if not matching:
        text = " ".join(f"{axis}={value}" for axis, value in sizes.items())
        raise BadField("--size", text, f"{variant} was not tuned for it; `kernelviz tunings` lists the stored tunings")
    tunings.forget(matching)
    for s in matching:
        console.err().print(f"forgotten: {s.tuning.variant} for {s.tuning.problem.key} on {s.tuning.device}")
