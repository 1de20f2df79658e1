"""`kernelviz inspect`: what one call got and gave, and where its outputs are wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz.bench import Bench
from kernelviz.cli import console
from kernelviz.cli.progress import Reporter, case_words
from kernelviz.cli.run import follow
from kernelviz.core.errors import BadField
from kernelviz.core.inspection import Inspection, OutputErrors
from kernelviz.core.problem import Case, Plan
from kernelviz.tables.inspection import ELEMENTS, TENSORS
from kernelviz.text import inspection as words

MAP_ROWS = 32
"""Rows of the error map in a terminal, which has lines twice as high as wide."""


def inspect(bench: Bench, plan: Plan, *, as_json: bool) -> int:
    """Look at the one case of the plan; the exit code: 0 right, 1 wrong, 2 it could not be looked at.

    Errors: BadField for more than one case, or one that cannot run here.
    """
    cases = plan.cases()
    if len(cases) != 1:
        raise BadField(
            "inspect", f"{len(cases)} cases", "name one variant and one size for each axis (--variant, --size)"
        )
    case = cases[0]
    followed = bench.inspect(
        case.problem, case.variant, plan.device, plugins=plan.plugins, owner=f"terminal {os.getpid()}"
    )
    with Reporter(None) as reporter:
        follow(bench, followed, reporter)
    found = bench.inspected(followed)
    if found is None:
        return 2
    if as_json:
        console.print_json(msgspec.to_builtins(found))
    else:
        console.show(report(found))
    return 0 if found.passed else 1


def report(found: Inspection) -> Group:
    """Verdict, tensors, and of each output its worst elements and, where it is wrong, a map."""
    case = case_words(Case(problem=found.problem, variant=found.variant))
    parts: list[RenderableType] = [
        Text(f"{case}, on {found.environment.device.name}"),
        Text(words.verdict_words(found), style="green" if found.passed else "bold red"),
    ]
    parts += [Text(f"  {line}") for errors in found.errors for line in words.output_words(errors)]
    parts += [Text(words.fill_words(found), style="dim"), Text(f"allowed: {found.rule}", style="dim"), Text("")]
    parts.append(console.table(TENSORS, found.tensors))
    for errors in found.errors:
        if errors.worst:
            parts += [Text(""), Text(f"worst of {errors.name}"), console.table(ELEMENTS, errors.worst)]
        if errors.wrong:
            parts += [Text(""), *(Text(line) for line in picture(errors))]
    return Group(*parts)


def picture(errors: OutputErrors) -> Iterator[str]:
    """The error map in characters: one a block, two rows of blocks in one where there are many."""
    grid = errors.map
    yield f"{errors.name}, {words.block_words(grid)} (X wrong, ? never written, · right):"
    step = -(-grid.rows // MAP_ROWS)
    for first in range(0, grid.rows, step):
        cells = (_character(errors, first, step, column) for column in range(grid.columns))
        yield f"  {''.join(cells)}".rstrip()


def _character(errors: OutputErrors, first: int, step: int, column: int) -> str:
    grid = errors.map
    places = [row * grid.columns + column for row in range(first, min(first + step, grid.rows))]
    there = [p for p in places if p < len(grid.wrong)]
    if not there:
        return " "
    if any(grid.unwritten[p] for p in there):
        return "?"
    return "X" if any(grid.wrong[p] for p in there) else "·"
