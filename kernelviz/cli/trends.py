"""`kernelviz trends`: how the times of cases change from run to run."""

from typing import Annotated

import typer

from kernelviz import bench as use_cases
from kernelviz.bench.regression import must_be_op
from kernelviz.bench.trends import CaseTrend
from kernelviz.cli import console, options
from kernelviz.cli.compare import SLOWER
from kernelviz.core import UnknownName, units
from kernelviz.metrics.trend import Change
from kernelviz.tables.column import Column
from kernelviz.text import describe_change, describe_trend, format_difference, format_problem


def trends(
    op: Annotated[str | None, typer.Argument(metavar="[OP]", help="Only this op. Default: all.")] = None,
    variant: options.OnlyVariant = None,
    regressions: Annotated[
        bool,
        typer.Option(
            "--regressions",
            help="Only cases that are slower now than at their best level. Exit code 3 if there are any.",
        ),
    ] = False,
    l2: options.Headline = "cold",
    device: options.DeviceId = None,
    as_json: options.Json = False,
) -> int:
    """Show how the times of cases changed over the runs that are stored here.

    For each case it lists the present level (the median of the runs since the last change), its state, and the last change of
    the level with the date of the run in which it began.
    """
    bench = use_cases.current()
    where = device or bench.default_device()
    if op is not None:
        must_be_op(bench, op)
    stored = bench.trends.cases(where, op=op, l2=l2)
    known = dict.fromkeys(c.variant for c in stored)
    if variant is not None and variant not in known:
        # A misspelt name must not give the answer "nothing is slower".
        raise UnknownName("measured variant", variant, known, of=f"op {op!r} on {where}" if op else where)
    chosen = [c for c in stored if variant is None or c.variant == variant]
    if regressions:
        chosen = list(bench.trends.slower(chosen))
    nothing = "nothing is slower than it was" if stored else f"no {l2} time is stored of {where}"
    console.show_rows(_COLUMNS, chosen, record, as_json=as_json, nothing=nothing)
    return SLOWER if regressions and chosen else 0


def record(case: CaseTrend) -> dict[str, object]:
    """One case in SI base units, for JSON. An unknown value is None."""
    trend = case.trend
    return {
        "op": case.problem.op,
        "sizes": case.problem.sizes,
        "dtype": case.problem.dtype,
        "precision": case.problem.precision,
        "variant": case.variant,
        "setup": case.setup,
        "left_out": case.left_out,
        "level_s": trend.level_s,
        "noise_fraction": trend.noise,
        "state": str(describe_trend(trend)),
        "changes": [_change(c, case) for c in trend.changes],
        "regression": trend.regression and _change(trend.regression, case),
        "unconfirmed": trend.unconfirmed and _change(trend.unconfirmed, case),
        "points": [
            {"run": p.run_id, "at": p.at, "time_s": p.time_s, "low_s": p.low_s, "high_s": p.high_s}
            for p in trend.points
        ],
    }


def _change(change: Change, case: CaseTrend) -> dict[str, object]:
    point = case.trend.points[change.index]
    return {
        "since": point.at,
        "run": point.run_id,
        "before_s": change.before_s,
        "after_s": change.after_s,
        "ratio": change.ratio,
        "because": [str(format_difference(d)) for d in change.because],
    }


def _last_change(case: CaseTrend) -> str | None:
    change = case.trend.regression or (case.trend.changes[-1] if case.trend.changes else None)
    return str(describe_change(change, case.trend)) if change else None


_COLUMNS: tuple[Column[CaseTrend], ...] = (
    Column("", "Case", "", units.TEXT, lambda c: format_problem(c.problem)),
    Column("", "Variant", "", units.TEXT, lambda c: c.variant),
    Column("", "Runs", "", units.COUNT, lambda c: len(c.trend.points)),
    Column("", "Level", "", units.SECONDS, lambda c: c.trend.level_s),
    Column("", "State", "", units.TEXT, lambda c: describe_trend(c.trend)),
    Column("", "Last change", "", units.TEXT, _last_change),
)
