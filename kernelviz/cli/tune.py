"""`kernelviz tune` and `kernelviz tunings`: measure a variant's configurations, keep the best, see and forget what is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench.tunings import METHOD, KeptTuning, TuningReport
from kernelviz.cli import console
from kernelviz.cli import run as running
from kernelviz.cli.progress import Reporter
from kernelviz.core import units
from kernelviz.core.configuration import base_name, configuration_text, parted
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.request import RunRequest
from kernelviz.metrics.summary import Row
from kernelviz.text.correctness import describe_correctness
from kernelviz.text.report import typed_sizes
from kernelviz.text.times import format_time
from kernelviz.text.tuning import cost_words, gain_words, kept_words, reason_words, record, tried_words
from kernelviz.text.verdicts import format_verdict

app = typer.Typer(help="List, keep and forget what tunings found. A variant that was tuned uses it from then on.")

BEST = 10
Json = Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")]


def tune(
    context: typer.Context,
    op: Annotated[str, typer.Argument(metavar="OP", help="what to compute; `kernelviz ops` lists them")] = "",
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="one that has something to tune")] = "",
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="AXIS=VALUE", help="one size of an axis, as n=2^26; repeat")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="sizes of a model, where they are one problem")] = None,
    dtype: Annotated[str | None, typer.Option(help="default: the op's first")] = None,
    compute: Annotated[str | None, typer.Option(metavar="tf32|ieee", help="arithmetic of fp32 products")] = None,
    direction: Annotated[str, typer.Option(metavar="forward|backward")] = "forward",
    data: Annotated[
        str, typer.Option(metavar="KIND", help="input data; what is found is used for all kinds")
    ] = "normal",
    configurations: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="so many, drawn at random; default: all of the space")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="of the drawing")] = 0,
    budget_s: Annotated[
        float, typer.Option(min=0.001, max=60.0, help="most measuring time for a configuration, in seconds")
    ] = METHOD.budget_s,
    device: Annotated[
        str | None, typer.Option(metavar="cuda:0|cpu", help="default: the first usable GPU, else the CPU")
    ] = None,
    plugins: Annotated[
        list[Path] | None, typer.Option("--with", metavar="FILE.py", help="a file with variants of your own; repeat")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="instead: go on with a tuning that was cancelled")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the configurations of a variant for one problem and keep the best, which it uses from then on.

    Every configuration passes the same gate as any variant. Ctrl-C ends after the block in hand and keeps what was measured.
    Exit code 0: it came to its end and the best is kept; 1: it did not come to its end; 2: bad usage, or nothing is correct.
    """
    bench = use_cases.current()
    try:
        if resume is not None:
            if op or variant:
                raise BadField("--resume", resume, "a run says itself what is tuned: leave out OP and VARIANT")
            said = [option for option in running.given(context) if option not in ("--resume", "--json")]
            if said:
                raise BadField("--resume", resume, f"it goes on as it was begun: leave out {', '.join(said)}")
            run_id = resume
            plan = bench.tunings.report(run_id).run.plan  # raises for a run that is none
            bench.resume(run_id, owner=f"terminal {os.getpid()}")
        else:
            if not (op and variant):
                raise BadField("VARIANT", variant, "name an op and a variant; `kernelviz ops` lists them")
            plan = bench.tuning(
                RunRequest(
                    op=op,
                    variants=(variant,),
                    sizes=running.sizes(size or (), ()) or None,
                    preset=preset,
                    dtype=dtype,
                    compute=compute,
                    direction=direction,
                    data=data,
                    device=device,
                    plugins=tuple(str(p.resolve()) for p in plugins or ()),
                ),
                configurations=configurations,
                seed=seed,
            )
            method = msgspec.structs.replace(METHOD, budget_s=budget_s)
            run_id = bench.run(plan, method, owner=f"terminal {os.getpid()}")
        with Reporter(plan) as reporter:
            running.follow(bench, run_id, reporter)
        code = print_report(bench, run_id, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def print_report(bench: Bench, run_id: str, *, as_json: bool = False) -> int:
    """What a tuning found on stdout; the exit code."""
    found = bench.tunings.report(run_id)
    if as_json:
        console.print_json(record(found.run, found.tried, found.kept, found.seconds))
    else:
        console.show(report(found))
    if found.run.status != "finished":
        console.err().print(unfinished_words(found))
        return 1
    return 0 if found.tried.best is not None else 2


def unfinished_words(found: TuningReport) -> str:
    """What became of a tuning that did not come to its end, and how it goes on."""
    run = found.run
    return (
        f"{run.status}: {found.tried.tried} of {found.tried.planned} configurations are measured, and nothing is kept for later "
        f"runs yet; `kernelviz tune --resume {run.id}` goes on, `kernelviz tunings keep {run.id}` keeps the best so far"
    )


def report(found: TuningReport) -> RenderableType:
    """The best configurations, failures by reason, what is kept, what it took."""
    tried, run = found.tried, found.run
    problem = tried.problem
    words = (
        f"{problem.op} {problem.precision} {typed_sizes(problem)}, {tried.variant}, on {run.environment.device.name}"
    )
    parts: list[RenderableType] = [Text(words), Text(tried_words(tried, run.plan.search))]
    if tried.ranked:
        parts.append(_table(found))
    for reason in tried.failures:
        parts += [Text(f"✕ {len(reason.variants)} × {reason_words(reason)}", style="red")]
        parts += [Text(f"    {'; '.join(_values(name) for name in reason.variants)}", style="dim")]
    parts.append(Text(kept_words(tried, found.kept)))
    parts.append(Text(cost_words(found.seconds, tried)))
    parts.append(Text(f"run {run.id}", style="dim"))
    return Group(*parts)


def _table(found: TuningReport) -> Table:
    tried = found.tried
    table = Table(box=None, pad_edge=False, header_style="bold")
    keys = list(parted(tried.ranked[0].result.variant)[1] or {})
    for key in keys:
        table.add_column(key, justify="right")
    for title in ("time", "over the default", "correct", ""):
        table.add_column(title)
    shown = list(tried.ranked[:BEST])
    if tried.default is not None and tried.default.figure is not None and tried.default not in shown:
        shown.append(tried.default)
    for row in shown:
        values = parted(row.result.variant)[1] or {}
        verdict = "1" if row.is_baseline else str(format_verdict(row.verdict)) if row.verdict else ""
        table.add_row(
            *(str(values.get(key, "")) for key in keys),
            format_time(row.figure),
            verdict,
            str(describe_correctness(row.result)),
            _marks(row, found),
        )
    return table


def _marks(row: Row, found: TuningReport) -> str:
    said = ["default"] if row.is_baseline else []
    return ", ".join([*said, *(["best"] if row is found.tried.best else [])])


def _values(name: str) -> str:
    return name.removeprefix(base_name(name))[1:-1]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="only of this op")] = None,
    variant: Annotated[str | None, typer.Option("--variant", metavar="VARIANT", help="only of this variant")] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="cuda:0|cpu", help="only of this device")] = None,
    as_json: Json = False,
) -> None:
    """List what tunings found: which configuration a variant uses for which problem on which device, and its gain."""
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
        console.err().print("nothing was tuned here; `kernelviz tune OP VARIANT --size …` does it")
        return
    console.show(_kept_table(found))


@app.command()
def keep(run: Annotated[str, typer.Argument(metavar="RUN", help="a tuning that was cancelled")]) -> None:
    """Keep the best so far of a tuning that did not come to its end."""
    made = use_cases.current().tunings.keep(run)
    console.err().print(
        f"{made.variant} uses {configuration_text(made.configuration)} from now on for {made.problem.key}: the best of "
        f"{made.tried} configurations that were tried"
    )


@app.command()
def forget(
    op: Annotated[str, typer.Argument(metavar="OP")],
    variant: Annotated[str, typer.Argument(metavar="VARIANT")],
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="AXIS=VALUE", help="only for this size; repeat")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="cuda:0|cpu", help="only of this device")] = None,
) -> None:
    """Forget what was found for a variant: it uses its default configuration again."""
    tunings = use_cases.current().tunings
    wanted = {axis: int(text) for axis, text in _sizes(size or ()).items()}
    there = tunings.find(op, variant=variant, device=device)
    if not there:
        raise BadField("VARIANT", variant, "nothing is kept for it there; `kernelviz tunings` lists what is")
    for axis in wanted:
        axes = dict.fromkeys(a for kept in there for a in kept.tuning.problem.sizes)
        if axis not in axes:
            raise UnknownName("axis", axis, axes, of=f"op {op!r}")
    found = [k for k in there if all(k.tuning.problem.sizes.get(axis) == value for axis, value in wanted.items())]
    if not found:
        said = " ".join(f"{axis}={value}" for axis, value in wanted.items())
        raise BadField("--size", said, f"{variant} was not tuned for it; `kernelviz tunings` lists what is kept")
    tunings.forget(found)
    for kept in found:
        console.err().print(f"forgotten: {kept.tuning.variant} for {kept.tuning.problem.key} on {kept.tuning.device}")


def _sizes(texts: list[str] | tuple[str, ...]) -> dict[str, str]:
    from kernelviz.core.sizes import values

    found = running.sizes(texts, ())
    sizes = {axis: values(axis, text) for axis, text in found.items()}
    for axis, several in sizes.items():
        if len(several) != 1:
            raise BadField("--size", f"{axis}={found[axis]}", "name one size")
    return {axis: str(several[0]) for axis, several in sizes.items()}


def _record(kept: KeptTuning) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(kept.tuning)
    return values | {"used": not kept.stale, "stale": kept.stale}


def _kept_table(found: tuple[KeptTuning, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("variant", "problem", "device", "configuration", "time", "over the default", "when", "run", "used"):
        table.add_column(heading, overflow="fold")
    for kept in found:
        made = kept.tuning
        table.add_row(
            made.variant,
            made.problem.key,
            made.device,
            configuration_text(made.configuration),
            units.seconds(made.time_s.estimate),
            gain_words(made),
            made.created_at[:16].replace("T", " "),
            made.run_id,
            f"no: {kept.stale}" if kept.stale else "yes",
            style="red" if kept.stale else "",
        )
    return table
