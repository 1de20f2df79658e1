"""The columns of what has changed in the machine code between two cases: a row for each change, the likeliest cause first."""

from kernelviz.core import units
from kernelviz.core.code_changes import RankedChange
from kernelviz.tables.column import Column
from kernelviz.text.code_changes import EXPLAINS_NAMES, EXPLAINS_SIGNS, describe_change
from kernelviz.text.code_mechanisms import describe_favour
from kernelviz.text.text import Text

CODE_CHANGES: tuple[Column[RankedChange], ...] = (
    Column("change", "Change from A to B", "Of the kernels that take the longest, and of the calls. ▸ can be the reason, · is no "
           "reason by itself, ◂ favours the slower side.", units.OWN_TEXT,
           lambda row: Text(f"{EXPLAINS_SIGNS[row.explains]} ") + describe_change(row.change), width="large"),
    Column("mechanism", "How it can help", "Such a change can make the side faster that it favours, for this reason. The "
           "sentence begins with that side.",
           units.OWN_TEXT, lambda row: describe_favour(row.change), width="large"),
    Column("explains", "Role", "Whether the change favours the faster side, and is of a kind that makes kernels faster. It is no "
           "proof: only a measurement of this change alone is one.", units.OWN_TEXT,
           lambda row: EXPLAINS_NAMES[row.explains]),
)  # fmt: skip
