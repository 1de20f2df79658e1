"""The facts of the kernels of two cases side by side: a row for each fact, which says whether it differs."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.core import units
from kernelviz.tables.code_facts import CODE_FACTS, KernelRow
from kernelviz.tables.column import Column

_NOT_FACTS = frozenset({"Variant", "Techniques"})
"""Columns that do not describe the kernel alone: the heading names the variants, and badges show the techniques."""


@dataclass(frozen=True, slots=True)
class SideFact:
    """A fact of both kernels as text; None is unknown. `differs` is None if a side is unknown."""

    name: str
    help: str
    a: str | None
    b: str | None

    @property
    def differs(self) -> bool | None:
        return None if self.a is None or self.b is None else self.a != self.b


def side_facts(a: KernelRow | None, b: KernelRow | None) -> list[SideFact]:
    """The facts of two kernels, in the order of the table of cases; those that no side has are left out."""
    rows = []
    for column in CODE_FACTS:
        if column.title not in _NOT_FACTS:
            texts = [None if row is None else _text(column, row) for row in (a, b)]
            if any(text is not None for text in texts):
                rows.append(SideFact(column.title, column.help, texts[0], texts[1]))
    return rows


def _text(column: Column[KernelRow], row: KernelRow) -> str | None:
    """The value in its own unit; an empty text means that there is nothing of the kind."""
    if column.value(row) is None:
        return None
    return column.single(row) or "none"


_SIGNS = {True: "≠ differs", False: "= same", None: "? unknown"}
CODE_SIDES: tuple[Column[SideFact], ...] = (
    Column("fact", "Fact", "A fact about the kernel or its launch.", units.OWN_TEXT, lambda row: row.name),
    Column("a", "A", "In the kernel of A.", units.OWN_TEXT, lambda row: row.a, width="medium"),
    Column("b", "B", "In the kernel of B.", units.OWN_TEXT, lambda row: row.b, width="medium"),
    Column("differs", "Differs", "Whether the two values differ.", units.OWN_TEXT, lambda row: _SIGNS[row.differs]),
    Column("meaning", "Meaning", "What the fact says.", units.OWN_TEXT, lambda row: row.help, width="large"),
)  # fmt: skip
ONE_SIDE: tuple[Column[SideFact], ...] = (
    CODE_SIDES[0],
    Column("value", "Value", "Of this kernel.", units.OWN_TEXT, lambda row: row.a, width="medium"),
    CODE_SIDES[4],
)
