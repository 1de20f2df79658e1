"""The transfer matrix of a variant in text."""

from typing import Any

import msgspec

from kernelviz.core import units
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.transfer import Cell, Transfer
from kernelviz.text.failures import format_failure
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Text

METHOD = Text(
    "Each number is the time of the configuration that was tuned for the row's shape, measured at the column's shape, "
    "divided by the time of the column's own configuration: 1.20× means 20 % slower than tuned, and 'same' that both shapes "
    "have the same configuration. Both times come from one "
    "run. A pair that no run has measured is not estimated. Tunings of other code or of another device are not compared."
)
"""How to read the matrix."""


def format_cell(cell: Cell) -> Text:
    """
    >>> from kernelviz.core import Span
    >>> cells = Cell("same"), Cell("measured", Span(estimate=1.234)), Cell("not_measured"), Cell("stopped", Span(estimate=2.04))
    >>> [str(format_cell(cell)) for cell in cells]
    ['same', '1.23×', 'not measured', '≈ 2.0×']
    """
    if cell.state == "same":
        return Text("same")
    if cell.state == "not_measured":
        return Text("not measured")
    if cell.ratio is None:
        return Text("no time")
    return Text(f"≈ {cell.ratio.estimate:.1f}×" if cell.state == "stopped" else f"{units.factor(cell.ratio.estimate)}×")


def describe_cell(cell: Cell) -> Text:
    """A cell as the end of a sentence, with its interval."""
    match cell.state:
        case "same":
            return Text("the shape's own configuration")
        case "not_measured":
            return Text("not measured")
        case "failed":
            return Text("no time there") if cell.failure is None else format_failure(cell.failure, most=160)
        case "stopped":
            ratio = 0.0 if cell.ratio is None else cell.ratio.estimate
            return Text(f"about {ratio:.1f}× the time, by one block: it was stopped early there (run {cell.run_id})")
        case "measured":
            return Text(f"{_interval(cell)} (run {cell.run_id})")


def _interval(cell: Cell) -> str:
    ratio = cell.ratio
    if ratio is None:
        return "unknown"
    if ratio.low is None or ratio.high is None:
        return f"{units.factor(ratio.estimate)}× the time, without an interval"
    factor, low, high = units.factor_with_interval(ratio.estimate, ratio.low, ratio.high)
    return f"{factor}× the time ({low}–{high})"


def describe_other_code(matrix: Transfer) -> Text:
    """How many tunings are left out, because they were measured with other code."""
    count = matrix.other_code
    which = "tuning of this variant is" if count == 1 else "tunings of this variant are"
    return Text(f"{count} {which} left out: measured with other code." if count else "")


def transfer_insight(matrix: Transfer) -> Text:
    """The sentence about a matrix: the worst transfer, or that all do alike."""
    if len(matrix.tunings) < 2:
        return Text("One shape of this variant is tuned with this code on this device.")
    known = [
        (cell.ratio.estimate, a, b)
        for a, row in enumerate(matrix.cells)
        for b, cell in enumerate(row)
        if a != b and cell.ratio is not None and cell.state != "same"
    ]
    missing = len(matrix.missing)
    if len({configuration_text(t.configuration) for t in matrix.tunings}) == 1:
        default = " (the default)" if all(t.configuration == t.default for t in matrix.tunings) else ""
        return Text(
            f"All {len(matrix.tunings)} shapes chose the same configuration{default}, "
            f"{configuration_text(matrix.tunings[0].configuration)}, so there is nothing to compare."
        )
    pairs = len(matrix.tunings) * (len(matrix.tunings) - 1)
    unmeasured = f" {missing} of {pairs} pairs {'is' if missing == 1 else 'are'} not measured." if missing else ""
    if not known:
        return Text(f"No configuration was measured at another shape yet.{unmeasured}")
    worst, a, b = max(known)
    of, at = matrix.tunings[a], matrix.tunings[b]
    if worst <= 1.02:
        return Text(f"Every choice does within 2 % of the best at the other shapes where it was measured.{unmeasured}")
    return Text(
        f"The choice for {format_sizes(of.problem)} ({configuration_text(of.configuration)}) takes {units.factor(worst)}× "
        f"the time at {format_sizes(at.problem)}, the worst transfer.{unmeasured}"
    )


def transfer_record(matrix: Transfer) -> dict[str, Any]:
    """A matrix as plain values: the shapes with their configurations, and each pair."""
    return {
        "insight": str(transfer_insight(matrix)),
        "tunings": [msgspec.to_builtins(t) for t in matrix.tunings],
        "pairs": [
            {
                "tuned_for": matrix.tunings[a].problem.key,
                "measured_at": matrix.tunings[b].problem.key,
                "state": cell.state,
                "ratio": None if cell.ratio is None else cell.ratio.estimate,
                "ratio_low": None if cell.ratio is None else cell.ratio.low,
                "ratio_high": None if cell.ratio is None else cell.ratio.high,
                "run": cell.run_id,
            }
            for a, row in enumerate(matrix.cells)
            for b, cell in enumerate(row)
        ],
        "tunings_of_other_code": matrix.other_code,
    }
