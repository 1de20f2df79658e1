"""`kernelviz compare`: compare two runs case by case, with an exit code for use in CI."""

import math
from collections.abc import Collection, Iterator, Sequence, Sized
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kernelviz import bench as use_cases
from kernelviz.bench import comparison
from kernelviz.bench.code_changes import changes_of_pairs
from kernelviz.bench.code_changes import record as changes_record
from kernelviz.bench.code_differences import CodeDifference, code_differences
from kernelviz.bench.code_differences import records as code_records
from kernelviz.bench.slowdown import records as slow_records
from kernelviz.bench.slowdown import slowdowns, speedups
from kernelviz.cli import console, options
from kernelviz.core import BadField, Failure, Run, Stage, units
from kernelviz.core.code_changes import CodeChanges
from kernelviz.core.command import commands
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.no_common_case import why_no_common_case
from kernelviz.metrics.slowdown import Slowdown
from kernelviz.metrics.sweep import varying_axes
from kernelviz.tables.column import View
from kernelviz.tables.comparison import pair_columns
from kernelviz.text import describe_mean, describe_noise, describe_refusals, describe_unpaired, format_counts
from kernelviz.text.code_changes import describe_changes
from kernelviz.text.code_differences import UNKNOWN_CODE, describe_compilers, describe_fact_difference
from kernelviz.text.comparison import format_case
from kernelviz.text.differences import differences
from kernelviz.text.no_common_case import describe_no_common_case
from kernelviz.text.slowdown import describe_slowdown, describe_topics_of

SLOWER = 3
"""Exit code if a case is slower, or no longer has a correct time."""
MOST_EXPLAINED = 10
"""Slow cases, and fast ones, with their reasons in the terminal; all are in the JSON."""
NOTHING = 2
"""Exit code if no case is in both runs: a check that compared nothing has not passed."""

FailSlowerThan = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="End with exit code 3 only if the whole confidence interval of a case is slower by more than this, for example 2%. "
        "Default: if any case has the verdict 'slower'.",
    ),
]


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The baseline: the id of a run, or a file with one.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare with it: an id, or a file.")],
    variant_a: Annotated[
        str | None,
        typer.Option("--variant-a", metavar="X", help="Only this variant of A. Default for B: the same variant."),
    ] = None,
    variant_b: Annotated[
        str | None, typer.Option("--variant-b", metavar="Y", help="Variant of B to compare with the variant of A.")
    ] = None,
    l2: options.Headline = "cold",
    fail_slower_than: FailSlowerThan = None,
    code: Annotated[
        bool,
        typer.Option(
            "--code", help="Also compare the machine code: which facts differ, for example between two compilers."
        ),
    ] = False,
    as_json: options.Json = False,
) -> int:
    """Compare run B with run A case by case and list the cases, the largest slow-down first.

    A difference counts only if it is larger than the noise between the two runs. To compare two variants, also of one run, give
    --variant-a and --variant-b. For each slower and each faster case, the likeliest reasons are listed: kernels,
    preconditions, spills, occupancy, error, clock and environment.

    Exit code 0: no case is slower; 3: a case is slower, or has no correct time in B but has one in A; 2: bad usage, or no case
    is in both.
    """
    limit = parse_percent(fail_slower_than)
    first, second = (comparison.opened(use_cases.current(), source) for source in (a, b))
    compared = comparison.compare(first, second, variant_a=variant_a, variant_b=variant_b, l2=l2)
    plan = comparison.plan_of_common_cases(use_cases.current(), compared)
    lines = ["To measure the cases of A with the variants of B:", *commands(plan, second.method)] if plan else []
    return print_comparison(compared, limit, as_json=as_json, lines=lines, with_code=code)


def print_comparison(
    compared: Comparison,
    limit: float | None,
    *,
    as_json: bool,
    untried: Collection[Stage] = (),
    lines: Sequence[str] = (),
    with_code: bool = False,
) -> int:
    """Print the comparison and return the exit code.

    `limit`: fraction by which a case may be slower; None: no limit was given. `untried`: failure stages which mean that a case of
    B was not tried, so that its missing time is no failure. `lines`: commands that measure cases in common, if there are none.
    `with_code`: whether also to say how the machine code differs.
    """
    facts = use_cases.current().history.code_facts
    slow = tuple(one for one in slowdowns(facts, compared) if _stage(one.pair) not in untried)
    fast = speedups(facts, compared)
    code = code_differences(facts, compared) if with_code else ()
    changes = changes_of_pairs(facts, compared, compared.pairs) if with_code else ()
    failing = tuple(p for p in compared.slower_than(limit or 0.0) if _stage(p) not in untried)
    if as_json:
        more = {"failing": [pair.key for pair in failing], "slower": slow_records(slow), "faster": slow_records(fast)}
        if with_code:
            more |= {"code": code_records(code), "code_changes": _change_records(compared, changes)}
        console.print_json(comparison.record(compared) | more)
    else:
        console.show(_report(compared))
        reasons = (*_describe_reasons(slow, compared), *_describe_reasons(fast, compared))
        for line in (*reasons, *_describe_codes(code, changes, compared)):
            console.echo(line)
        if failing:
            console.err().print(_describe_failing(failing, limit or 0.0))
    if not compared.pairs:
        console.err().print(f"nothing was compared: {describe_no_common_case(why_no_common_case(compared))}")
        for line in lines:
            console.echo(line, to_stderr=True)
        return NOTHING
    if limit is not None and compared.only_a:
        console.err().print(f"not compared: {format_cases(compared.only_a)} only in A, which B did not measure")
    return SLOWER if failing else 0


def format_cases(cases: Sized) -> str:
    """How many cases these are.

    >>> format_cases(["add"]), format_cases([])
    ('1 case', '0 cases')
    """
    return f"{len(cases)} case{'s' if len(cases) != 1 else ''}"


def _stage(pair: Pair) -> Stage | None:
    return pair.after.outcome.stage if isinstance(pair.after.outcome, Failure) else None


def parse_percent(text: str | None) -> float | None:
    """A limit in percent as a fraction; None without a text. Errors: BadField if it is not a percentage of at least 0.

    >>> parse_percent("2%"), parse_percent("0.5 %")
    (0.02, 0.005)
    """
    if text is None:
        return None
    number, percent, rest = text.partition("%")
    with suppress(ValueError):
        if percent and not rest.strip() and 0 <= float(number) < math.inf:
            return float(number) / 100
    raise BadField("--fail-slower-than", text, "write a percentage, as 2%")


def _describe_failing(failing: tuple[Pair, ...], limit: float) -> str:
    broken = sum(p.broken for p in failing)
    slower = "slower" + (f" by more than {limit * 100:g} %" if limit else "")
    counts = {slower: len(failing) - broken, "without a correct time in B": broken}
    return "failed: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _report(compared: Comparison) -> RenderableType:
    sides = (("A", compared.a, compared.variant_a), ("B", compared.b, compared.variant_b))
    parts: list[RenderableType] = [Text(_describe_side(side, run, variant)) for side, run, variant in sides]
    parts += [Text(f"≠ {difference.line}", style="red") for difference in differences(compared)]
    if compared.pairs:
        table = console.table(pair_columns(compared, View.TERMINAL), compared.pairs, style=_style)
        parts += [Text(""), table, Text("")]
    parts += [Text(str(line)) for line in describe_unpaired(compared)]
    if not compared.pairs:
        return Group(*parts)
    lines = (
        describe_refusals(compared),
        f"{format_counts(compared)}.",
        f"{describe_mean(compared)}.",
        describe_noise(compared),
    )
    return Group(*parts, *(Text(line) for line in map(str, lines) if line))


def _change_records(compared: Comparison, changes: Sequence[CodeChanges]) -> list[dict[str, Any]]:
    """One record for each pair, with its case."""
    return [
        {
            "problem": pair.problem.key,
            "variant_a": pair.before.variant,
            "variant_b": pair.after.variant,
            **changes_record(of_pair),
        }
        for pair, of_pair in zip(compared.pairs, changes, strict=True)
    ]


def _describe_reasons(explained: Sequence[Slowdown], compared: Comparison) -> Iterator[str]:
    """Lines about the likeliest reasons of the cases of which B is slower, or of those of which it is faster, the largest
    difference first."""
    if not explained:
        return
    axes = varying_axes([pair.problem for pair in compared.pairs])
    yield str(describe_topics_of(explained))
    for one in explained[:MOST_EXPLAINED]:
        yield f"  {format_case(one.pair, axes, by_problem=compared.by_problem)}: {describe_slowdown(one)}"
    if len(explained) > MOST_EXPLAINED:
        yield f"  … and {len(explained) - MOST_EXPLAINED} more (--json lists all)"


def _describe_codes(
    differences: Sequence[CodeDifference], changes: Sequence[CodeChanges], compared: Comparison
) -> Iterator[str]:
    """Lines about the machine code of all pairs of cases; one line for all of which nothing is known for the same reason."""
    explained = [of_pair.known or bool(of_pair.changes) for of_pair in changes]
    for reason, text in UNKNOWN_CODE.items():
        count = sum(one.unknown == reason for one, known in zip(differences, explained, strict=True) if not known)
        if count:
            yield f"Machine code of {units.counted(count, 'case')}: unknown: {text}"
    for one, of_pair, known in zip(differences, changes, explained, strict=True):
        if known:
            yield from _describe_code(one, of_pair, compared)


def _describe_code(difference: CodeDifference, changes: CodeChanges, compared: Comparison) -> Iterator[str]:
    """Lines about the machine code of one pair of cases: what has changed, then all counts that differ."""
    axes = varying_axes([pair.problem for pair in compared.pairs])
    case = format_case(difference.pair, axes, by_problem=compared.by_problem)
    yield f"Machine code of {case}: {describe_changes(changes)}"
    for kernel in difference.kernels:
        if kernel.differences:
            yield f"  {describe_compilers(kernel.a, kernel.b)}"
            yield from (f"    {describe_fact_difference(one)}" for one in kernel.differences)


def _describe_side(side: str, run: Run, variant: str | None) -> str:
    which = f", only {variant}" if variant else ""
    return f"{side}: {console.plain(run.title) or run.id}{which} · {run.id} · {run.created_at[:16].replace('T', ' ')}"


def _style(pair: Pair) -> str:
    return "red" if pair.kind == "slower" or pair.broken else "dim" if pair.kind == "not comparable" else ""
