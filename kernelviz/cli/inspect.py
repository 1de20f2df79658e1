"""`kernelviz inspect`: the tensors of one call, and where its outputs are wrong."""

import os
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import console, options
from kernelviz.cli.arguments import parse_names, parse_sizes
from kernelviz.cli.progress import Reporter, follow_run, format_case
from kernelviz.core import BadField, Case, Inspection, OutputErrors, Plan, RunRequest
from kernelviz.tables.inspection import ELEMENTS, TENSORS
from kernelviz.text import inspection as words

MAP_ROWS = 32
"""Most lines of the error map in a terminal. Characters are about twice as high as wide."""


def inspect(
    op: options.OpName,
    variant: Annotated[str, typer.Option("--variant", metavar="VARIANT", help="Name of the one variant to inspect.")],
    size: options.Sizes = None,
    preset: options.Preset = None,
    dtype: options.Dtype = None,
    compute: options.Compute = None,
    data: options.Data = "normal",
    device: options.DeviceId = None,
    plugins: options.Plugins = None,
    as_json: options.Json = False,
) -> None:
    """Call one variant once and show its tensors and the error of each output element against the reference.

    It prints shape, strides, memory and values of every tensor, the worst elements, and a map of the wrong ones. Name one size
    for each axis, or a preset with one size for each.

    Exit code 0: the outputs are right; 1: they are wrong; 2: bad usage, or the case could not be inspected.
    """
    bench = use_cases.current()
    try:
        plan = bench.plan(
            RunRequest(
                op=op,
                sizes=parse_sizes(size) or None,
                preset=preset,
                variants=parse_names(variant),
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=options.absolute_paths(plugins),
            )
        )
        code = inspect_plan(bench, plan, as_json=as_json)
    finally:
        bench.close()
    raise typer.Exit(code)


def inspect_plan(bench: Bench, plan: Plan, *, as_json: bool) -> int:
    """Inspect the one case of the plan and return the exit code: 0 right, 1 wrong, 2 it could not be inspected.

    Errors: BadField for more than one case, or for one that cannot run here.
    """
    cases = plan.cases()
    if len(cases) != 1:
        raise BadField(
            "inspect", f"{len(cases)} cases", "name one variant and one size for each axis (--variant, --size)"
        )
    case = cases[0]
    inspection_id = bench.inspect(
        case.problem, case.variant, plan.device, plugins=plan.plugins, owner=f"terminal {os.getpid()}"
    )
    with Reporter(None) as reporter:
        follow_run(bench, inspection_id, reporter)
    inspection = bench.inspected(inspection_id)
    if inspection is None:
        return 2
    if as_json:
        console.print_json(msgspec.to_builtins(inspection))
    else:
        console.show(report(inspection))
    return 0 if inspection.passed else 1


def report(inspection: Inspection) -> Group:
    """The verdict, the tensors, the worst elements of each output, and a map of each wrong output."""
    case = format_case(Case(problem=inspection.problem, variant=inspection.variant))
    parts: list[RenderableType] = [
        Text(f"{case}, on {inspection.environment.device.name}"),
        Text(str(words.describe_inspection(inspection)), style="green" if inspection.passed else "bold red"),
    ]
    parts += [Text(f"  {line}") for errors in inspection.errors for line in words.describe_output(errors)]
    parts += [
        Text(str(words.describe_inputs(inspection)), style="dim"),
        Text(f"allowed: {inspection.rule}", style="dim"),
        Text(""),
    ]
    parts.append(console.table(TENSORS, inspection.tensors))
    for errors in inspection.errors:
        if errors.worst:
            parts += [Text(""), Text(f"worst of {errors.name}"), console.table(ELEMENTS, errors.worst)]
        if errors.wrong:
            parts += [Text(""), *(Text(line) for line in picture(errors))]
    return Group(*parts)


def picture(errors: OutputErrors) -> Iterator[str]:
    """The error map as text: one character for each block. If there are many rows of blocks, one line stands for several."""
    grid = errors.map
    yield f"{errors.name}, {words.describe_block(grid)} (X wrong, ? never written, · right):"
    step = -(-grid.rows // MAP_ROWS)
    for first in range(0, grid.rows, step):
        cells = (_character(errors, first, step, column) for column in range(grid.columns))
        yield f"  {''.join(cells)}".rstrip()


def _character(errors: OutputErrors, first: int, step: int, column: int) -> str:
    grid = errors.map
    indices = [row * grid.columns + column for row in range(first, min(first + step, grid.rows))]
    blocks = [p for p in indices if p < len(grid.wrong)]
    if not blocks:
        return " "
    if any(grid.unwritten[p] for p in blocks):
        return "?"
    return "X" if any(grid.wrong[p] for p in blocks) else "·"
