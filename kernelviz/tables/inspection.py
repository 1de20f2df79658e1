"""The columns of an inspection: the tensors of a call, the memory around it, and the elements with the largest errors."""

from kernelviz.core import Element, TensorFacts, units
from kernelviz.core.inspection import MemoryState
from kernelviz.tables.column import Column
from kernelviz.text import (
    describe_memory,
    format_index,
    format_output_value,
    format_shape,
    format_share_of_bound,
    format_strides,
)
from kernelviz.text.inspection import MOMENTS, number

_VALUE = units.Unit(form=".7g", single=number)
_FINITE = "Of the finite values, computed in float64."
TENSORS: tuple[Column[TensorFacts], ...] = (
    Column("", "Tensor", "Its name in the op.", units.TEXT, lambda t: t.name),
    Column("", "Role", "Whether the call reads or writes it.", units.OWN_TEXT, lambda t: t.role),
    Column("", "Dtype", "Number format of its elements.", units.OWN_TEXT, lambda t: t.dtype),
    Column("", "Shape", "", units.OWN_TEXT, lambda t: format_shape(t.shape)),
    Column("", "Strides", "Distance in elements between neighbours along each dimension.", units.OWN_TEXT,
           format_strides),
    Column("", "Memory", "Kind of memory, and the largest power of two that divides the address (a 16-byte load needs 16).",
           units.TEXT, describe_memory),
    Column("", "Size", "", units.OWN_NUMBER, lambda t: units.size_bytes(t.size_bytes)),
    Column("", "Min", _FINITE, _VALUE, lambda t: t.minimum),
    Column("", "Max", _FINITE, _VALUE, lambda t: t.maximum),
    Column("", "Mean", _FINITE, _VALUE, lambda t: t.mean),
    Column("", "Std", "Standard deviation of the finite values, computed in float64.", _VALUE,
           lambda t: t.deviation),
    Column("", "Zeros", "Number of elements that are 0.", units.COUNT, lambda t: t.zeros),
    Column("", "NaN", "Number of elements that are not a number.", units.COUNT, lambda t: t.nan),
    Column("", "+Inf", "Number of elements that are positive infinity.", units.COUNT, lambda t: t.positive_infinity),
    Column("", "−Inf", "Number of elements that are negative infinity.", units.COUNT, lambda t: t.negative_infinity),
    Column("", "Unwritten", "Elements that still contain the 0xFF bytes that were written before the call.", units.COUNT,
           lambda t: t.unwritten),
)  # fmt: skip
MEMORY: tuple[Column[MemoryState], ...] = (
    Column("", "When", "", units.OWN_TEXT, lambda m: MOMENTS[m.moment], width="medium"),
    Column("", "Allocated", "Memory in tensors of the measuring process.", units.OWN_NUMBER,
           lambda m: units.size_bytes(m.allocated_bytes)),
    Column("", "Reserved", "Memory that torch's allocator has taken from the device.", units.OWN_NUMBER,
           lambda m: units.size_bytes(m.reserved_bytes)),
)  # fmt: skip
ELEMENTS: tuple[Column[Element], ...] = (
    Column("", "Index", "", units.OWN_TEXT, format_index),
    Column("", "Got", "What the variant wrote.", units.OWN_NUMBER, format_output_value),
    Column("", "Expected", "The float64 reference.", units.OWN_NUMBER, lambda e: number(e.expected, 9)),
    Column("", "|Error|", "", units.OWN_NUMBER, lambda e: number(e.error)),
    Column(
        "",
        "Allowed",
        "The error that the tolerance allows for this element.",
        units.OWN_NUMBER,
        lambda e: number(e.allowed),
    ),
    Column(
        "",
        "|Error| / allowed",
        "An element over 1 is wrong.",
        units.OWN_NUMBER,
        lambda e: format_share_of_bound(e.share),
    ),
)
