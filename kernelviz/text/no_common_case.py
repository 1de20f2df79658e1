"""Why two runs have no case in common, in text."""

from collections.abc import Mapping, Sequence

from kernelviz.core import Problem, units
from kernelviz.metrics import no_common_case as n
from kernelviz.text.results import format_variant
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import Template, Text, fill, join

_MOST_SIZES = 3
_NAMES: Mapping[n.Part, str] = {
    "op": "ops", "dtype": "data types", "compute": "compute precisions", "direction": "directions", "variant": "variants",
}  # fmt: skip


def _part(reason: n.OtherPart) -> str:
    a, b = (", ".join(_value(reason.what, value) for value in values) for values in (reason.a, reason.b))
    return f"the {_NAMES[reason.what]} differ ({a} in A, {b} in B)"


def _value(what: n.Part, value: str | None) -> str:
    return "usual" if value is None else format_variant(value) if what == "variant" else value


def _sizes(problems: Sequence[Problem], axes: Sequence[str]) -> str:
    """The sizes of these axes, each once."""
    sizes = tuple(dict.fromkeys(format_sizes(p, axes) for p in problems))
    listed = "; ".join(sizes[:_MOST_SIZES])
    more = len(sizes) - _MOST_SIZES
    return f"{listed} and {units.counted(more, 'more size')}" if more > 0 else listed


def _other_sizes(reason: n.OtherSizes) -> str:
    """The axes that differ alone: of a sweep over sequence lengths with other heads, the heads."""
    a, b = (_sizes(problems, reason.axes) for problems in (reason.a, reason.b))
    return f"the sizes differ (A: {a}; B: {b})"


_REASONS: Mapping[type, Template] = {
    n.NoResults: lambda reason: f"{' and '.join(reason.sides)} {'have' if len(reason.sides) > 1 else 'has'} no result",
    n.OtherPart: _part,
    n.OtherSizes: _other_sizes,
    n.NoCombination: "op, variants and sizes overlap, but no combination of them is in both",
}


def describe_no_common_case(reasons: Sequence[n.NoCommonCase]) -> Text:
    """One sentence with every reason.

    >>> print(describe_no_common_case((n.OtherPart("op", ("softmax",), ("add",)),)))
    A and B have no case in common: the ops differ (softmax in A, add in B).
    >>> small, large = (Problem(op="add", sizes={"n": size}, dtype="fp32") for size in (4096, 8192))
    >>> print(describe_no_common_case((n.OtherPart("dtype", ("fp32",), ("bf16",)), n.OtherSizes((small,), (large,)))))
    A and B have no case in common: the data types differ (fp32 in A, bf16 in B); the sizes differ (A: n = 4,096; B: n = 8,192).
    """
    return Text("A and B have no case in common: ") + join("; ", (fill(_REASONS, reason) for reason in reasons)) + "."
