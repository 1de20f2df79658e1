"""`kernelviz compare`: what the page Compare shows, in a terminal, with an exit code for use in CI."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import comparison
from kernelviz.cli import console
from kernelviz.core.errors import BadField
from kernelviz.core.result import Failure, Stage
from kernelviz.core.run import Run
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.sweep import telling_axes
from kernelviz.text.comparison import (
    case_words,
    counts_words,
    mean_words,
    noise_words,
    only_words,
    pair_words,
    refusal_words,
    times_words,
)
from kernelviz.text.differences import differences

SLOWER = 3
"""The exit code when something is slower, or has no correct time any more."""
NOTHING = 2
"""The exit code when no case is in both: a gate that compared nothing has not passed."""
NOTHING_WORDS = (
    "nothing was compared: no case of A is in B; measure B with A's sizes, dtype and variants (`kernelviz regress A` does), or "
    "hold one variant against another with --variant-a and --variant-b"
)

FailSlowerThan = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT", help="as 2%: fail only where the whole interval is slower by more; default: any 'slower'"
    ),
]


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="the baseline: id of a run, or a document")],
    b: Annotated[str, typer.Argument(metavar="B", help="what is held against it: id of a run, or a document")],
    variant_a: Annotated[
        str | None, typer.Option("--variant-a", metavar="X", help="only this variant of A; B's is the same one")
    ] = None,
    variant_b: Annotated[
        str | None, typer.Option("--variant-b", metavar="Y", help="this variant of B, against the one of A")
    ] = None,
    l2: Annotated[str, typer.Option(metavar="cold|warm", help="which time is compared")] = "cold",
    fail_slower_than: FailSlowerThan = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON and nothing else on stdout")] = False,
) -> None:
    """Hold run B against run A case by case, the worst first.

    Exit code 0: nothing is slower; 3: something is slower, or has no correct time in B that it had in A; 2: bad usage, or no
    case is in both.
    """
    limit = None if fail_slower_than is None else fraction(fail_slower_than)
    bench = use_cases.current()
    first, second = (comparison.opened(bench, source) for source in (a, b))
    found = comparison.compare(first, second, variant_a=variant_a, variant_b=variant_b, l2=l2)
    raise typer.Exit(told(found, limit, as_json=as_json))


def told(found: Comparison, limit: float | None, *, as_json: bool, untried: Collection[Stage] = ()) -> int:
    """Print the comparison; the exit code. `limit`: as a fraction, what is slower by less does not fail; None: none was asked
    for. `untried`: stages of B at which a case was not tried, so that its missing time says nothing of it."""
    failing = tuple(p for p in found.slower_than(limit or 0.0) if _stage(p) not in untried)
    if as_json:
        console.print_json(comparison.record(found) | {"failing": [pair.key for pair in failing]})
    else:
        console.show(_report(found))
        if failing:
            console.err().print(_failing_words(failing, limit or 0.0))
    if not found.pairs:
        console.err().print(NOTHING_WORDS)
        return NOTHING
    if limit is not None and found.only_a:
        many = f"{len(found.only_a)} case{'s' if len(found.only_a) != 1 else ''}"
        console.err().print(f"not compared: {many} only in A, which B did not measure")
    return SLOWER if failing else 0


def _stage(pair: Pair) -> Stage | None:
    return pair.after.outcome.stage if isinstance(pair.after.outcome, Failure) else None


def fraction(text: str) -> float:
    """A limit in percent as a fraction. Errors: BadField for what is no percentage from 0 on.

    >>> fraction("2%"), fraction("0.5 %")
    (0.02, 0.005)
    """
    number, percent, rest = text.partition("%")
    try:
        value = float(number) / 100
    except ValueError:
        value = math.nan
    if not percent or rest.strip() or not 0 <= value < math.inf:
        raise BadField("--fail-slower-than", text, "write a percentage, as 2%")
    return value


def _failing_words(failing: tuple[Pair, ...], limit: float) -> str:
    broken = sum(p.broken for p in failing)
    slower = len(failing) - broken
    said = [f"{slower} slower" + (f" by more than {limit * 100:g} %" if limit else "")] if slower else []
    return "failed: " + ", ".join(said + ([f"{broken} without a correct time in B"] if broken else []))


def _report(found: Comparison) -> RenderableType:
    sides = (("A", found.a, found.variant_a), ("B", found.b, found.variant_b))
    parts: list[RenderableType] = [Text(_side_words(side, run, variant)) for side, run, variant in sides]
    parts += [Text(f"≠ {difference.words}", style="red") for difference in differences(found)]
    if found.pairs:
        parts += [Text(""), _table(found), Text("")]
    parts += [Text(line) for line in only_words(found)]
    if not found.pairs:
        return Group(*parts, Text("No case is in both: nothing can be compared."))
    parts += [Text(refusal_words(found))] if refusal_words(found) else []
    parts += [Text(f"{counts_words(found)}."), Text(f"{mean_words(found)}."), Text(noise_words(found))]
    return Group(*parts)


def _side_words(side: str, run: Run, variant: str | None) -> str:
    which = f", only {variant}" if variant else ""
    return f"{side}: {console.plain(run.title) or run.id}{which} · {run.id} · {run.created_at[:16].replace('T', ' ')}"


def _table(found: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for title in ("time A", "time B"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column(f"B against A, {found.headline} L2", overflow="fold")
    axes = telling_axes([p.problem for p in found.pairs])
    for pair in found.pairs:
        style = "red" if pair.word == "slower" or pair.broken else "dim" if pair.word == "not comparable" else ""
        table.add_row(
            Text(case_words(pair, axes, by_problem=found.by_problem)),
            *times_words(pair, found),
            Text(pair_words(pair)),
            style=style,
        )
    return table
