"""What fusing saves as Markdown: the section of a document that `kernelviz fusion --markdown` prints."""

import math
from collections.abc import Mapping, Sequence

from kernelviz.core import units
from kernelviz.core.fusion import FusionFamily
from kernelviz.metrics.fusion import FusionRow, Payoff
from kernelviz.metrics.fusion_reasons import MOST_ERROR, MOST_FACTOR
from kernelviz.metrics.grouping import grouped
from kernelviz.text.fusion import (
    FAMILIES,
    METHOD_A,
    METHOD_B,
    describe_payoff,
    format_bytes,
    format_error,
    format_line_sizes,
    format_ratio_of_times,
    format_speed_up,
    join_reasons,
)
from kernelviz.text.sizes import format_problem
from kernelviz.text.text import Text
from kernelviz.text.times import format_time

HEADINGS = (
    "problem",
    "not fused",
    "intermediate",
    "saved",
    "not fused, time",
    "fused",
    "fused, time",
    "measured",
    "B",
    "error B",
    "A",
    "error A",
    "why a prediction fails",
)


def format_row(row: FusionRow) -> tuple[str, ...]:
    """The cells of a row."""
    of_cache = f" ({row.intermediate_bytes / row.cache_bytes:.2g} × cache)" if row.cache_bytes else ""
    predictions = ("–" if value is None else f"{units.factor(value)} ×" for value in (row.predicted_b, row.predicted_a))
    b, a = predictions
    reasons = [f"{name}: {join_reasons(of)}" for name, of in (("B", row.reasons_b), ("A", row.reasons_a)) if of]
    return (
        format_problem(row.problem),
        f"`{row.unfused.variant}`",
        f"{format_bytes(row.intermediate_bytes)}{of_cache}",
        f"{format_bytes(row.saved.moved_bytes)}, {row.saved.launches}"
        + (f" ({row.saved.memsets} memset)" if row.saved.memsets else ""),
        str(format_time(row.unfused_figure)),
        f"`{row.fused.variant}`" if row.fused else "none is correct",
        str(format_time(row.fused_figure)) if row.fused_figure else "–",
        f"{format_speed_up(row.speed_up)} {row.verdict.kind if row.verdict else ''}".strip() + _of_times(row),
        b,
        str(format_error(row.error_b)),
        a,
        str(format_error(row.error_a)),
        "; ".join(reasons) or "–",
    )


def _of_times(row: FusionRow) -> str:
    of_times = format_ratio_of_times(row)
    return "" if of_times is None else f"; ratio of the two times: {of_times}"


def markdown(
    rows: Sequence[FusionRow], payoffs: Mapping[FusionFamily, Sequence[Payoff]], *, every: bool = False
) -> str:
    """A section: the method, the table, and a line for each axis about where fusing pays. `every`: also the compositions that
    are not the fastest."""
    selected = [row for row in rows if row.fastest or every]
    of_devices = grouped(selected, key=lambda row: row.device)
    said = [
        f"- {FAMILIES[family]}, {_at(payoff)}{describe_payoff(payoff)}"
        for family, of in payoffs.items()
        for payoff in of
    ]
    tables = [f"Measured on {device}:\n\n{_table(of)}" for device, of in of_devices.items()]
    parts = [METHOD_B, METHOD_A, _errors(selected), *tables, "\n".join(said)]
    return "\n\n".join(map(str, filter(None, parts)))


def _table(rows: Sequence[FusionRow]) -> str:
    heading, *lines = (f"| {' | '.join(cells)} |" for cells in (HEADINGS, *map(format_row, rows)))
    sides = "|".join(["---", "---", "--:", "--:", "--:", "---", "--:", "--:", "--:", "--:", "--:", "--:", "---"])
    return "\n".join((heading, f"|{sides}|", *lines))


def _at(payoff: Payoff) -> str:
    problem = payoff.rows[0].problem
    sizes = format_line_sizes([row.problem for row in payoff.rows], payoff.axis)
    return f"`{problem.op}` {problem.precision} on {payoff.rows[0].device} at {sizes}: "


def _errors(rows: Sequence[FusionRow]) -> str:
    """How well both predictions hold where the intermediate tensors pass through memory whole."""
    return str(describe_errors(rows))


def describe_errors(rows: Sequence[FusionRow]) -> Text:
    """How many predictions are within MOST_ERROR where every intermediate tensor is at least four times the cache."""
    large = [row for row in rows if row.in_memory and row.fastest]
    sentences = []
    for name, errors in (("B", [r.error_b for r in large]), ("A", [r.error_a for r in large])):
        known = [abs(error) for error in errors if error is not None]
        if known:
            right = sum(error <= MOST_ERROR for error in known)
            sentences.append(
                f"prediction {name} is within a factor of {MOST_FACTOR:.2f} of the measured speed-up in {right} of "
                f"{len(known)} cases, and off by a factor of at most {units.factor(math.exp(max(known)))}"
            )
    if not sentences:
        return Text("No case has intermediate tensors of at least four times the last-level cache and a prediction.")
    return Text(
        f"Where the intermediate tensors have at least four times the last-level cache: {'; '.join(sentences)}."
    )
