"""The columns of an inspection: the tensors of a call, and the elements of an output with the largest errors."""

from __future__ import annotations

from kernelviz.core import units
from kernelviz.core.inspection import Element, TensorFacts
from kernelviz.tables.column import Column
from kernelviz.text.inspection import (
    got_words,
    index_words,
    layout_words,
    memory_words,
    number,
    shape_words,
    times_words,
)

_VALUE = units.Unit(form=".7g", single=number)
_FINITE = "Of its finite values, in float64."
TENSORS: tuple[Column[TensorFacts], ...] = (
    Column("", "Tensor", "Its name in the op.", units.TEXT, lambda t: t.name),
    Column("", "Role", "Whether the call reads or writes it.", units.OWN_TEXT, lambda t: t.role),
    Column("", "Dtype", "Number format of its elements.", units.OWN_TEXT, lambda t: t.dtype),
    Column("", "Shape", "", units.OWN_TEXT, lambda t: shape_words(t.shape)),
    Column("", "Strides", "How many elements are between neighbours along each dimension.", units.OWN_TEXT,
           layout_words),
    Column("", "Memory", "Where it is, and the largest power of two that divides its address (a 16-byte load needs 16).",
           units.TEXT, memory_words),
    Column("", "Size", "", units.OWN_NUMBER, lambda t: units.size_bytes(t.size_bytes)),
    Column("", "Min", _FINITE, _VALUE, lambda t: t.minimum),
    Column("", "Max", _FINITE, _VALUE, lambda t: t.maximum),
    Column("", "Mean", _FINITE, _VALUE, lambda t: t.mean),
    Column("", "Std", "Standard deviation about the mean, of all its finite values, in float64.", _VALUE,
           lambda t: t.deviation),
    Column("", "Zeros", "How many elements are 0.", units.COUNT, lambda t: t.zeros),
    Column("", "NaN", "How many elements are no number.", units.COUNT, lambda t: t.nan),
    Column("", "+Inf", "How many elements are infinite.", units.COUNT, lambda t: t.positive_infinity),
    Column("", "−Inf", "How many elements are negative and infinite.", units.COUNT, lambda t: t.negative_infinity),
    Column("", "Unwritten", "Elements that still hold the 0xFF bytes put there before the call.", units.COUNT,
           lambda t: t.unwritten),
)  # fmt: skip
ELEMENTS: tuple[Column[Element], ...] = (
    Column("", "Index", "", units.OWN_TEXT, index_words),
    Column("", "Got", "What the variant wrote.", units.OWN_NUMBER, got_words),
    Column("", "Expected", "The float64 reference.", units.OWN_NUMBER, lambda e: number(e.expected, 9)),
    Column("", "|Error|", "", units.OWN_NUMBER, lambda e: number(e.error)),
    Column("", "Allowed", "The error that the bound allows there.", units.OWN_NUMBER, lambda e: number(e.allowed)),
    Column("", "|Error| / allowed", "Over 1 is wrong.", units.OWN_NUMBER, lambda e: times_words(e.share)),
)
