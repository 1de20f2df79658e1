"""The columns of the facts that differ between the machine code of two kernels."""

from kernelviz.core import units
from kernelviz.core.machine_code import FactDifference
from kernelviz.tables.column import Column
from kernelviz.text.code_differences import format_fact, format_place, format_value

CODE_DIFFERENCES: tuple[Column[FactDifference], ...] = (
    Column("fact", "Fact", "What differs between the two kernels.", units.OWN_TEXT, format_fact),
    Column("a", "A", "In the kernel of A.", units.OWN_TEXT, lambda row: format_value(row.a)),
    Column("b", "B", "In the kernel of B.", units.OWN_TEXT, lambda row: format_value(row.b)),
    Column("place", "In", "The part of the code that is counted. Each instruction counts once, whatever path a warp takes.",
           units.OWN_TEXT, format_place),
)  # fmt: skip
