"""`kernelviz tune` and `kernelviz tunings`: find the best configuration of a variant; list and remove stored ones."""

import os
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.tunings import METHOD, StoredTuning, TuningReport
from kernelviz.cli import console, options
from kernelviz.cli.arguments import options_on_command_line, parse_sizes
from kernelviz.cli.progress import Reporter, follow_run
from kernelviz.core import BadField, RunRequest, UnknownName, units
from kernelviz.core.configuration import base_name, configuration_text, parted
from kernelviz.metrics.rows import Row
from kernelviz.tables.column import Column
from kernelviz.text.report import typed_sizes
from kernelviz.text.results import describe_correctness
from kernelviz.text.times import format_time
from kernelviz.text.tuning import describe_best, describe_cost, describe_failures, describe_search, format_gain, record
from kernelviz.text.verdicts import format_verdict

app = typer.Typer(
    help="List, store or remove the configurations that tunings have found. Later runs use the stored ones."
)

MOST_SHOWN = 10


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
) -> None:
    """Measure the configurations of a variant (block sizes, warps, stages) for one problem and store the best one.

    Later runs of exactly this problem on this device use the stored configuration, whatever values their inputs hold. Name one
    size for each axis. Each configuration passes the same correctness check as any variant. Ctrl-C ends the tuning and keeps
    what was measured.

    Exit code 0: the tuning finished and the best configuration is stored; 1: it did not finish; 2: bad usage, or no
    configuration is correct.
    """
    bench = use_cases.current()
    try:
        if resume is not None:
            if op or variant:
                raise BadField("--resume", resume, "the run itself says what is tuned; leave out OP and VARIANT")
            others = [option for option in options_on_command_line(context) if option not in ("--resume", "--json")]
            if others:
                raise BadField("--resume", resume, f"the tuning continues as it began; leave out {', '.join(others)}")
            run_id = resume
            plan = bench.tunings.report(run_id).run.plan  # raises for a run that is not a tuning
            bench.resume(run_id, owner=f"terminal {os.getpid()}")
        else:
            if not (op and variant):
                raise BadField("VARIANT", variant, "name an op and a variant; `kernelviz ops` lists them")
            plan = bench.tuning(
                RunRequest(
                    op=op,
                    variants=(variant,),
                    sizes=parse_sizes(size) or None,
                    preset=preset,
                    dtype=dtype,
                    compute=compute,
                    direction=direction,
                    data=data,
                    device=device,
                    plugins=options.absolute_paths(plugins),
                ),
                configurations=configurations,
                seed=seed,
            )
            method = msgspec.structs.replace(METHOD, budget_s=budget_s)
            run_id = bench.run(plan, method, owner=f"terminal {os.getpid()}")
        with Reporter(plan) as reporter:
            follow_run(bench, run_id, reporter)
        code = print_report(bench, run_id, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def print_report(bench: Bench, run_id: str, *, as_json: bool = False) -> int:
    """Print the result of a tuning on stdout and return the exit code."""
    found = bench.tunings.report(run_id)
    if as_json:
        console.print_json(record(found.run, found.tried, found.tuning, found.seconds))
    else:
        console.show(report(found))
    if found.run.status != "finished":
        console.err().print(unfinished_words(found))
        return 1
    return 0 if found.tried.best is not None else 2


def unfinished_words(found: TuningReport) -> str:
    """What a tuning that did not finish has measured, and how to continue it."""
    run = found.run
    return (
        f"{run.status}: {found.tried.tried} of {found.tried.planned} configurations are measured, and none is stored for later "
        f"runs yet; `kernelviz tune --resume {run.id}` continues, `kernelviz tunings keep {run.id}` stores the best so far"
    )


def report(found: TuningReport) -> RenderableType:
    """The best configurations, the failures by reason, what is stored, and the cost of the tuning."""
    tried, run = found.tried, found.run
    problem = tried.problem
    words = (
        f"{problem.op} {problem.precision} {typed_sizes(problem)}, {tried.variant}, on {run.environment.device.name}"
    )
    parts: list[RenderableType] = [Text(words), Text(str(describe_search(tried, run.plan.search)))]
    if tried.ranked:
        parts.append(_table(found))
    for reason in tried.failures:
        parts += [Text(f"✕ {len(reason.variants)} × {describe_failures(reason)}", style="red")]
        parts += [Text(f"    {'; '.join(_values(name) for name in reason.variants)}", style="dim")]
    parts.append(Text(str(describe_best(tried, found.tuning))))
    parts.append(Text(str(describe_cost(found.seconds, tried))))
    parts.append(Text(f"run {run.id}", style="dim"))
    return Group(*parts)


def _table(found: TuningReport) -> Table:
    tried = found.tried
    shown = list(tried.ranked[:MOST_SHOWN])
    if tried.default is not None and tried.default.figure is not None and tried.default not in shown:
        shown.append(tried.default)
    columns: list[Column[Row]] = [
        *(_value_column(key) for key in parted(tried.ranked[0].result.variant)[1] or {}),
        Column("", "Time", "", units.OWN_TEXT, lambda row: format_time(row.figure)),
        Column(
            "",
            "Over the default",
            "",
            units.OWN_TEXT,
            lambda row: "1" if row.is_baseline else format_verdict(row.verdict) if row.verdict else "",
        ),
        Column("", "Correct", "", units.TEXT, lambda row: describe_correctness(row.result)),
        Column("", "", "", units.OWN_TEXT, lambda row: _marks(row, found)),
    ]
    return console.table(columns, shown)


def _value_column(key: str) -> Column[Row]:
    return Column("", "", "", units.OWN_NUMBER, lambda row: (parted(row.result.variant)[1] or {}).get(key), subject=key)


def _marks(row: Row, found: TuningReport) -> str:
    marks = ["default"] if row.is_baseline else []
    return ", ".join([*marks, *(["best"] if row is found.tried.best else [])])


def _values(name: str) -> str:
    return name.removeprefix(base_name(name))[1:-1]


@app.callback(invoke_without_command=True)
def list_tunings(
    context: typer.Context,
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="Only of this op.")] = None,
    variant: Annotated[str | None, typer.Option("--variant", metavar="VARIANT", help="Only of this variant.")] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="cuda:0|cpu", help="Only of this device.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the stored configurations: variant, problem, device, and the gain over the default configuration."""
    if context.invoked_subcommand is not None:
        return
    bench = use_cases.current()
    found = bench.tunings.find(op, variant=variant, device=device)
    if op is not None and not found:
        ops = bench.ops()
        if op not in ops:
            raise UnknownName("op", op, ops)
    if as_json:
        console.print_json([_record(kept) for kept in found])
        return
    if not found:
        console.err().print("no tuning is stored here; `kernelviz tune OP VARIANT --size …` makes one")
        return
    console.show(console.table(_KEPT, found, style=lambda kept: "red" if kept.stale else ""))


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
    device: Annotated[str | None, typer.Option("--device", metavar="cuda:0|cpu", help="Only of this device.")] = None,
) -> None:
    """Remove the stored configurations of a variant, which uses its default configuration again."""
    tunings = use_cases.current().tunings
    sizes = {axis: int(text) for axis, text in _sizes(size or ()).items()}
    stored = tunings.find(op, variant=variant, device=device)
    if not stored:
        raise BadField("VARIANT", variant, "no configuration of it is stored; `kernelviz tunings` lists those that are")
    for axis in sizes:
        axes = dict.fromkeys(a for kept in stored for a in kept.tuning.problem.sizes)
        if axis not in axes:
            raise UnknownName("axis", axis, axes, of=f"op {op!r}")
    matching = [k for k in stored if all(k.tuning.problem.sizes.get(axis) == value for axis, value in sizes.items())]
    if not matching:
        asked = " ".join(f"{axis}={value}" for axis, value in sizes.items())
        raise BadField("--size", asked, f"{variant} was not tuned for it; `kernelviz tunings` lists the stored tunings")
    tunings.forget(matching)
    for kept in matching:
        console.err().print(f"forgotten: {kept.tuning.variant} for {kept.tuning.problem.key} on {kept.tuning.device}")


def _sizes(texts: list[str] | tuple[str, ...]) -> dict[str, str]:
    from kernelviz.core.sizes import values

    texts_by_axis = parse_sizes(texts)
    sizes = {axis: values(axis, text) for axis, text in texts_by_axis.items()}
    for axis, several in sizes.items():
        if len(several) != 1:
            raise BadField("--size", f"{axis}={texts_by_axis[axis]}", "name one size")
    return {axis: str(several[0]) for axis, several in sizes.items()}


def _record(kept: StoredTuning) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(kept.tuning)
    return values | {"used": not kept.stale, "stale": kept.stale}


_KEPT: tuple[Column[StoredTuning], ...] = (
    Column("", "Variant", "", units.TEXT, lambda kept: kept.tuning.variant),
    Column("", "Problem", "", units.TEXT, lambda kept: kept.tuning.problem.key),
    Column("", "Device", "", units.TEXT, lambda kept: kept.tuning.device),
    Column("", "Configuration", "", units.TEXT, lambda kept: configuration_text(kept.tuning.configuration)),
    Column("", "Time", "", units.SECONDS, lambda kept: kept.tuning.time_s.estimate),
    Column("", "Over the default", "", units.TEXT, lambda kept: format_gain(kept.tuning)),
    Column("", "When", "", units.TEXT, lambda kept: kept.tuning.created_at[:16].replace("T", " ")),
    Column("", "Run", "", units.TEXT, lambda kept: kept.tuning.run_id),
    Column("", "Used", "", units.TEXT, lambda kept: f"no: {kept.stale}" if kept.stale else "yes"),
)
