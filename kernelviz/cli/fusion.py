"""`kernelviz fusion`: what fusing saves in each family, predicted in two ways and measured, and where it stops paying."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench import fusion as use_case
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run
from kernelviz.cli.run import exit_code
from kernelviz.core import BadField, check_name
from kernelviz.metrics.fusion import FusionRow
from kernelviz.metrics.grouping import grouped
from kernelviz.tables.column import View
from kernelviz.tables.fusion import fusion_columns
from kernelviz.text.fusion import FAMILIES, describe_payoff, describe_reasons
from kernelviz.text.fusion_markdown import describe_errors, markdown


def fusion(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FILE…",
            help="Ids of runs, files with runs, or backup files. Default: the newest run of each family, else those that come "
            "with kernelviz.",
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="OP|all",
            help="First measure an op, or the first op of each family that can run here, and show these runs.",
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Only this family: {', '.join(use_case.FAMILIES)}.")
    ] = None,
    size: options.Sizes = None,
    sweep: options.Sweeps = None,
    dtype: options.Dtype = None,
    device: options.DeviceId = None,
    budget_s: Annotated[
        float,
        typer.Option(min=0.01, max=600.0, metavar="SECONDS", help="With --measure: largest device time for each case."),
    ] = use_case.BUDGET_S,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With --measure: also write each run to this folder, for example docs/runs, in the compact form.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also show the compositions that are not the fastest of their problem.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a section in Markdown, as in docs/fusion.md.")
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Show what fusing saves: bytes, launches and time of the steps, and the speed-up, predicted in two ways and measured.

    A composition launches the steps one after the other, and a fused variant does them in one kernel. With --measure, both are
    measured first: at sizes whose intermediate tensors have at least four times the last-level cache, and over a sweep around
    them. Calibrate the device first (`kernelviz device --calibrate`); without its roofs there is no prediction.
    Exit code 0: every case was measured; 1: some cases failed.
    """
    if family is not None:
        check_name("family", family, use_case.FAMILIES)
    bench = use_cases.current()
    if measure is None:
        about_measuring = {"--size": size, "--sweep": sweep, "--dtype": dtype, "--device": device, "--record": record}
        for option, value in about_measuring.items():
            if value:
                given = ", ".join(value) if isinstance(value, list) else value
                raise BadField(option, given, "it is about what is measured; add `--measure OP`, or leave it out")
        _show(bench, _rows(bench, sources, family), every=every, as_markdown=as_markdown, as_json=as_json)
        return 0
    if sources:
        raise BadField("--measure", measure, "it measures new runs; leave out the runs and files")
    with closing(bench):
        measured, code = _measured(bench, measure, family, size, sweep, dtype, device, budget_s)
        if record is not None:
            for run_id in measured:
                console.err().print(f"{use_case.record(bench, run_id, record)}")
        _show(bench, _rows(bench, measured, family), every=every, as_markdown=as_markdown, as_json=as_json)
        return code


def _measured(
    bench: Bench,
    measure: str,
    family: str | None,
    size: list[str] | None,
    sweep: list[str] | None,
    dtype: str | None,
    device: str | None,
    budget_s: float,
) -> tuple[list[str], int]:
    where = bench.device(device or bench.default_device())
    ops = [measure] if measure != "all" else _first_ops(bench, family, where.id)
    sizes = options.parse_sizes(size, sweep) or None
    if sizes is not None and measure == "all":
        raise BadField("--size", ", ".join(sizes), "the axes differ from op to op; name one op with --measure")
    for op in ops:
        use_case.plan_of(bench, op, where.id, sizes=sizes, dtype=dtype)  # what cannot be measured is refused first
    if not bench.roofs(where.id):
        console.err().print(
            f"{where.id} is not calibrated, so there will be no prediction; "
            f"`kernelviz device --device {where.id} --calibrate` measures its roofs"
        )
    run_ids, code = [], 0
    for op in ops:
        run_id = use_case.start(bench, op, where.id, sizes=sizes, dtype=dtype, budget_s=budget_s, owner=console.owner())
        follow_run(bench, run_id, bench.load(run_id).plan)
        code = max(code, 1 if exit_code(bench.load(run_id)) else 0)
        run_ids.append(run_id)
    return run_ids, code


def _first_ops(bench: Bench, family: str | None, device: str) -> list[str]:
    """The first op of each family that can run on the device. Those that cannot are named on stderr."""
    chosen = []
    for name in use_case.FAMILIES:
        if family not in (None, name):
            continue
        able = use_case.first_able(bench, name, device)
        if able is None:
            console.err().print(f"{FAMILIES[name]}: no fused variant of it can run on {device}")
        else:
            chosen.append(able)
    if not chosen:
        raise BadField("device", device, "no family has both a composition and a fused variant that can run there")
    return chosen


def _rows(bench: Bench, sources: list[str] | None, family: str | None) -> tuple[FusionRow, ...]:
    if not sources:
        newest = (use_case.newest_of(bench, one) for one in use_case.FAMILIES)
        sources = [run.id for run in newest if run is not None]
    return tuple(row for row in use_case.rows_of_sources(bench, sources) if family in (None, row.family))


def _show(bench: Bench, rows: tuple[FusionRow, ...], *, every: bool, as_markdown: bool, as_json: bool) -> None:
    selected = [row for row in rows if row.fastest or every]
    if as_json:
        console.print_json(use_case.records(selected))
        return
    if not selected:
        console.err().print(
            "no run shows the fusion of an op; `kernelviz fusion --measure all` measures one of each family"
        )
        return
    payoffs = use_case.payoffs_of(bench, rows)
    if as_markdown:
        console.echo(markdown(rows, payoffs, every=every))
        return
    for (run_id, on), mine in grouped(selected, key=lambda row: (row.run_id, row.device)).items():
        title = f"{mine[0].problem.op} {mine[0].problem.precision}, {on}, run {run_id}"
        console.show(Text(console.plain(title), style="bold"))
        console.show(console.table(fusion_columns(mine, View.TERMINAL), mine))
    for name, of in payoffs.items():
        for one in of:
            console.err().print(f"{FAMILIES[name]}: {describe_payoff(one)}")
    for row in selected:
        for letter, reasons in (("B", row.reasons_b), ("A", row.reasons_a)):
            for text in describe_reasons(reasons):
                console.err().print(f"{row.problem.key}: prediction {letter}: {text}")
    console.err().print(f"{describe_errors(rows)}")
