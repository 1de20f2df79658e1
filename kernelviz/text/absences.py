"""Text of missing figures: what was asked for, has no value, and why."""

from collections.abc import Mapping, Sequence

from kernelviz.core import Result, Run
from kernelviz.core import notes as n
from kernelviz.core.problem import FigureName
from kernelviz.metrics import absences as a
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.quality import notes_on_other_figures
from kernelviz.text.failures import describe_failure
from kernelviz.text.notes import describe_no_naive_timing, format_note
from kernelviz.text.text import Template, Text, fill, join, on_one_line

FIGURES: Mapping[FigureName, str] = {
    "cold": "device cold",
    "warm": "device warm",
    "call": "call eager",
    "graph": "call by graph",
    "loop": "loop",
    "energy": "energy",
    "naive": "naive protocol",
}
"""The figures by the names of their columns."""
MORE: tuple[FigureName, ...] = ("energy", "naive")
"""The figures that are measured on request only."""
ABSENCES: Mapping[type, Template] = {
    a.SustainedLoad: "not measured under sustained load, because the device would be idle between these calls",
    a.NoGraphs: "a CPU has no CUDA graphs",
    a.NotYet: "not measured yet",
    a.Ended: "the run ended before it was measured",
    a.Unrecorded: "no reason was recorded",
    n.NotCapturable: "the call cannot be captured as a graph: {0.error}",
    n.CallTooLong: "not measured, because one call takes {0.call_s:.2g} s",
    n.NoEnergyCounter: "this device has no energy counter",
    n.EnergyCounterStill: "the energy counter of the board did not change twice in {0.seconds:.0f} s",
    n.NoNaiveTiming: describe_no_naive_timing,
    n.LaterFailure: lambda note: f"its measurement failed ({note.stage}): {describe_failure(note)}",
    n.ForeignNote: "{0.text}",
}
_MOST_REASONS = 2
"""Reasons of one kind that are listed for a run; a call that is too long has a reason for each case."""


def describe_figures_notes(result: Result, run: Run) -> Text:
    """Remarks on the figures of a case other than the two device times, and why figures that were asked for are missing."""
    absences = a.absences(result, run)
    reasons = {absence.reason for absence in absences}
    remarks = [format_note(note) for note in notes_on_other_figures(result) if note not in reasons]
    by_reason = grouped(absences, key=lambda absence: absence.reason)
    missing = [_line([one.figure for one in group], describe_absence(reason)) for reason, group in by_reason.items()]
    return join(" · ", [*missing, *remarks])


def describe_missing_figures(
    results: Sequence[Result], run: Run, of: Sequence[FigureName] = tuple(FIGURES)
) -> list[Text]:
    """A line for each kind of reason: the figures without a value, why, and in how many cases if not in all with a time."""
    timed = sum(result.timing is not None for result in results)
    missing = [(one, result.case.key) for result in results for one in a.absences(result, run) if one.figure in of]
    lines = []
    kinds: dict[str, list[tuple[a.Absence, str]]] = grouped(missing, key=lambda pair: type(pair[0].reason).__name__)
    for group in kinds.values():
        texts = list(dict.fromkeys(str(describe_absence(one.reason)) for one, _ in group))
        reasons = " / ".join([*texts[:_MOST_REASONS], *(["…"] if len(texts) > _MOST_REASONS else [])])
        cases = len({key for _, key in group})
        count = f" ({cases} of {timed} cases)" if cases < timed else ""
        lines.append(_line([one.figure for one, _ in group], f"{reasons}{count}"))
    return lines


def describe_absence(reason: a.AbsenceReason) -> Text:
    """Why a figure has no value, on one line.

    >>> str(describe_absence(n.NoEnergyCounter(figure="energy")))
    'this device has no energy counter'
    """
    return on_one_line(fill(ABSENCES, reason))


def _line(figures: Sequence[FigureName], reason: str | Text) -> Text:
    names = [name for name in FIGURES if name in figures]
    return Text(f"{', '.join(FIGURES[name] for name in names)}: {reason}")
