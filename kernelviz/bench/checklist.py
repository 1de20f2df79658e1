"""The checklist of the cases of a run, for page, command line and Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import cast, get_args

from kernelviz.bench.bench import Bench
from kernelviz.bench.roofline import with_empty_kernel
from kernelviz.core import Problem, Roof, Run, check_name
from kernelviz.metrics.checklist import Check, Unknown, checklist
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row, rows
from kernelviz.tables.checklist import CheckedCase
from kernelviz.text.checklist import describe_fact
from kernelviz.text.roofs import format_roof_name


def checked_cases(
    bench: Bench, run: Run, *, variant: str | None = None, problem: Problem | None = None, l2: str = "cold"
) -> tuple[CheckedCase, ...]:
    """The cases of a run with their points, in the order of the plan; only of this variant and problem if they are given.

    Errors: UnknownName for a variant that the run does not have, or for `l2`.
    """
    check_name("l2", l2, get_args(Headline))
    if variant is not None:
        check_name("variant", variant, run.plan.variants, of=f"run {run.id!r}")
    headline = cast(Headline, l2)
    roofs = bench.roofs_of(run)
    return of_rows(
        run,
        [
            row
            for row in rows(run, roofs, headline)
            if variant in (None, row.result.variant) and problem in (None, row.result.problem)
        ],
        roofs,
        headline,
    )


def of_rows(run: Run, table: Sequence[Row], roofs: Sequence[Roof], headline: Headline) -> tuple[CheckedCase, ...]:
    """These cases of a run with their points. `roofs`: those of the run."""
    device = run.environment.device
    known = with_empty_kernel(roofs, device.name)
    return tuple(CheckedCase(row.result, checklist(row, device, known, headline)) for row in table)


def newest_run(bench: Bench) -> str | None:
    """The id of the newest stored run that has results; None if there is none."""
    return next((run.id for run in bench.runs(8) if run.done), None)


def records(cases: Sequence[CheckedCase]) -> list[dict[str, object]]:
    """One record for each point of each case: its tick, the fact and its numbers, in SI base units. Unknown is None."""
    return [
        {
            "op": case.result.problem.op,
            **case.result.problem.sizes,
            "dtype": case.result.problem.dtype,
            "variant": case.result.variant,
            "check": check.name,
            "tick": check.tick,
            "fact": str(describe_fact(check.fact)),
            "why_unknown": check.fact.why if isinstance(check.fact, Unknown) else None,
            "values": None if isinstance(check.fact, Unknown) else _values(check),
        }
        for case in cases
        for check in case.checks
    ]


def _values(check: Check) -> dict[str, object]:
    """The numbers of a fact by their names."""
    values: dict[str, object] = asdict(check.fact)
    roof = values.get("roof")
    return values | ({"roof": format_roof_name(roof)} if isinstance(roof, Roof) else {})
