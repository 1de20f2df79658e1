"""The columns of what has changed in the machine code between two cases: a row for each change, the likeliest cause first."""

from kernelviz.core import units
from kernelviz.core.code_changes import RankedChange
from kernelviz.tables.column import Column
from kernelviz.text.code_changes import EXPLAINS_NAMES, EXPLAINS_SIGNS, describe_change
from kernelviz.text.text import sentence_case

CODE_CHANGES: tuple[Column[RankedChange], ...] = (
    Column("change", "Change from A to B", "What differs between the kernels that take the longest, and between the calls.",
           units.OWN_TEXT, lambda row: sentence_case(describe_change(row.change)), width="large"),
    Column("explains", "Role", "Whether the change favours the faster side, and is of a kind that makes kernels faster. It is no "
           "proof: only a measurement of this change alone is one.", units.OWN_TEXT,
           lambda row: f"{EXPLAINS_SIGNS[row.explains]} {EXPLAINS_NAMES[row.explains]}"),
)  # fmt: skip
