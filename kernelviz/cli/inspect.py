"""`kernelviz inspect`: the tensors of one call, and where its outputs are wrong."""

from collections.abc import Iterator
from contextlib import closing
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.cli import console, options
from kernelviz.cli.progress import follow_run, format_case
from kernelviz.core import Case, ErrorMap, Inspection, OutputErrors
from kernelviz.tables.inspection import ELEMENTS, MEMORY, TENSORS
from kernelviz.text import describe_block, describe_inputs, describe_inspection, describe_output
from kernelviz.text.inspection import MEMORY_HELP, describe_unknown_memory

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
) -> int:
    """Call one variant once and show its tensors and the error of each output element against the reference.

    It prints shape, strides, memory and values of every tensor, the memory that is allocated and reserved around binding and
    call, the worst elements, and a map of the wrong ones. Name one size
    for each axis, or a preset with one size for each.

    Exit code 0: the outputs are right; 1: they are wrong; 2: bad usage, or the case could not be inspected.
    """
    with closing(use_cases.current()) as bench:
        plan = bench.plan(
            options.run_request(
                op,
                options.parse_names(variant),
                size,
                preset=preset,
                dtype=dtype,
                compute=compute,
                data=data,
                device=device,
                plugins=plugins,
            )
        )
        case = options.only_case(plan, "inspect", "--variant")
        inspection_id = bench.inspect(
            case.problem, case.variant, plan.device, plugins=plan.plugins, owner=console.owner()
        )
        follow_run(bench, inspection_id)
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
        Text(str(describe_inspection(inspection)), style="green" if inspection.passed else "bold red"),
    ]
    parts += [Text(f"  {line}") for errors in inspection.errors for line in describe_output(errors)]
    parts += [
        Text(str(describe_inputs(inspection)), style="dim"),
        Text(f"allowed: {inspection.rule}", style="dim"),
        Text(""),
        console.table(TENSORS, inspection.tensors),
        Text(""),
    ]
    if inspection.memory:
        parts.append(console.table(MEMORY, inspection.memory))
    parts.append(Text(str(describe_unknown_memory(inspection) or MEMORY_HELP), style="dim"))
    for errors in inspection.errors:
        if errors.worst:
            parts += [Text(""), Text(f"worst of {errors.name}"), console.table(ELEMENTS, errors.worst)]
        if errors.wrong:
            parts += [Text(""), *(Text(line) for line in picture(errors))]
    return Group(*parts)


def picture(errors: OutputErrors) -> Iterator[str]:
    """The error map as text: one character for each block. If there are many rows of blocks, one line stands for several."""
    grid = errors.map
    yield f"{errors.name}, {describe_block(grid)} (X wrong, ? never written, · right):"
    step = -(-grid.rows // MAP_ROWS)
    for first in range(0, grid.rows, step):
        blocks = range(first * grid.columns, min((first + step) * grid.columns, len(grid.wrong)))
        yield f"  {''.join(_character(grid, blocks[column :: grid.columns]) for column in range(grid.columns))}".rstrip()


def _character(grid: ErrorMap, blocks: range) -> str:
    """The worst state of these blocks."""
    if any(grid.unwritten[block] for block in blocks):
        return "?"
    if any(grid.wrong[block] for block in blocks):
        return "X"
    return "·" if blocks else " "
