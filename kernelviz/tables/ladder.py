"""The columns of a ladder: one row for each rung."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import units
from kernelviz.metrics.ladder import Ladder, Step
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.tables.column import Column, View, select
from kernelviz.text import Text, format_badge_of, format_variant
from kernelviz.text.ladder import describe_gain, format_backend, format_gain, format_published
from kernelviz.text.ladder_changes import describe_code_changes, describe_source_changes
from kernelviz.text.times import format_time


@dataclass(frozen=True, slots=True)
class LadderRow:
    """A rung with the ladder that it is part of, and what changed in it."""

    ladder: Ladder
    backend: str
    step: Step
    changes: LadderChanges


def ladder_rows(ladder: Ladder, changes: LadderChanges, backend: str | None = None) -> tuple[LadderRow, ...]:
    """All rungs, or those of one backend, in order."""
    return tuple(
        LadderRow(ladder, of.backend, step, changes)
        for of in ladder.ladders
        if backend in (None, of.backend)
        for step in of.steps
    )


def ladder_columns(rows: Sequence[LadderRow], view: View) -> list[Column[LadderRow]]:
    """The columns; the backend only if there are several."""
    several = len({row.backend for row in rows}) > 1
    everywhere = View.WIDE | View.TERMINAL
    columns: list[Column[LadderRow]] = [
        Column("", "Ladder", "The backend: each has a ladder of its own.", units.OWN_TEXT, lambda r: format_backend(r.backend),
               everywhere if several else View(0)),
        Column("", "Rung", "Its place in the ladder.", units.COUNT, lambda r: r.step.number, everywhere),
        Column("", "Variant", "", units.TEXT, lambda r: r.step.variant, View.TERMINAL),
        Column("", "Variant", "Which implementation of the op.", units.TEXT, lambda r: format_variant(r.step.variant), View.WIDE),
        Column("", "Time", "Device time, with half of its 95 % interval.", units.OWN_NUMBER, _time, everywhere),
        Column("", "Bandwidth", "The least bytes of the problem divided by the time.", units.BYTES_PER_S,
               lambda r: r.step.row.bandwidth_bytes_per_s if r.step.row else None, View.WIDE, optional=True),
        Column("", "Rate", "The operations of the problem divided by the time.", units.FLOP_PER_S,
               lambda r: r.step.row.rate_flop_per_s if r.step.row else None, everywhere, optional=True),
        Column("", "Of the roof", "The time that the measured roofs allow, divided by the time.", units.SHARE,
               lambda r: r.step.row.efficiency if r.step.row else None, everywhere, optional=True),
        Column("", "Gain", "Against the last rung before it with a correct time.", units.OWN_TEXT, lambda r: format_gain(r.step),
               everywhere),
        Column("", "Over", "The rung that the gain refers to.", units.TEXT,
               lambda r: format_variant(r.step.over.name) if r.step.over and r.step.gain else None, View.WIDE),
        Column("", "Published", "What a source reports of the same idea.", units.TEXT, lambda r: format_published(r.step),
               everywhere, optional=True),
        Column("", "Why", "The gain as a sentence, or why there is none.", units.OWN_TEXT, lambda r: describe_gain(r.step),
               View.WIDE, width="large"),
        Column("", "Source", "What changed in the source.", units.TEXT,
               lambda r: str(describe_source_changes(r.changes.sources.get(r.step.variant))) or None, View.WIDE, width="large"),
        Column("", "Machine code", "What changed in the machine code.", units.TEXT,
               lambda r: str(describe_code_changes(r.changes.code.get(r.step.variant))) or None, View.WIDE, width="large"),
        Column("", "Quality", "Whether the time can be trusted, with the worst reason.", units.OWN_TEXT, _quality, View.WIDE),
    ]  # fmt: skip
    return select(columns, rows, view)


def _time(row: LadderRow) -> Text | None:
    figure = None if row.step.row is None else row.step.row.figure or row.step.row.wrong_figure
    return None if figure is None else format_time(figure)


def _quality(row: LadderRow) -> Text | None:
    result = row.step.result
    return None if result is None else format_badge_of(result, row.ladder.headline, row.ladder.run.method.clock)
