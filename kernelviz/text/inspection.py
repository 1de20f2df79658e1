"""An inspection in text, the same on pages, in tables, in a terminal and in alternative texts."""

import math

from kernelviz.core import OCTAVES, Element, ErrorMap, Inspection, OutputErrors, TensorFacts, Value, units
from kernelviz.core.configuration import configuration_text
from kernelviz.core.inspection import MemoryMoment
from kernelviz.core.problem import problem_of_seed
from kernelviz.text.failures import describe_failure
from kernelviz.text.text import Text, join

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SHORT = {-2: "¼", -1: "½", 0: "1", 1: "2", 2: "4", 3: "8"}


def number(given: Value | None, digits: int = 7) -> str:
    """A value with so many significant digits (nine distinguish any two numbers of float32). NaN and Inf by name.

    >>> number(1.0), number(0.1 + 0.2), number(-1e-12), number("NaN"), number(None)
    ('1', '0.3', '-1e-12', 'NaN', '–')
    >>> number(23.344921112060547), number(23.344921112060547, 9)
    ('23.34492', '23.3449211')
    """
    return "–" if given is None else given if isinstance(given, str) else f"{given:.{digits}g}"


def format_share_of_bound(share: float | None) -> Text:
    """An error as a multiple of the allowed one.

    >>> print(*map(format_share_of_bound, (0.0, 0.1234, 5e12, None)), sep=", ")
    0, 0.123, 5e+12, beyond any bound
    """
    return Text("beyond any bound" if share is None else f"{share:.3g}")


def format_shape(shape: tuple[int, ...]) -> Text:
    """
    >>> str(format_shape((4096, 1024))), str(format_shape(()))
    ('4096 × 1024', 'one element')
    """
    return Text(" × ".join(map(str, shape)) or "one element")


def describe_inspection(inspection: Inspection) -> Text:
    """Whether the outputs are right. If they are wrong, the reasons of the correctness gate."""
    if inspection.passed:
        return Text("✓ right: every element of every output lies inside the bound")
    return Text(f"✕ wrong with inputs of fill {inspection.seed}: ") + describe_failure(inspection)


def describe_output(errors: OutputErrors) -> list[Text]:
    """How many elements of an output are wrong, in what way, where they are, and the largest error."""
    elements = units.counted(errors.elements, "element")
    if not errors.wrong:
        return [Text(f"{errors.name}: all {elements} inside the bound; {_largest(errors)}")]
    kinds = {
        "never written": errors.unwritten,
        "NaN or Inf where the reference is not, or the reverse": errors.not_finite - errors.unwritten,
    }
    parts = [f"{count:,} {kind}" for kind, count in kinds.items() if count > 0]
    rest = errors.wrong - max(errors.not_finite, errors.unwritten)
    if rest and parts:
        parts.append(f"{rest:,} too far off")
    listed = f" ({', '.join(parts)})" if parts else ""
    share = _share(errors.wrong / errors.elements)
    lines = (f"{errors.wrong:,} of {elements} outside the bound, {share}{listed}", *_where(errors), _largest(errors))
    return [Text(f"{errors.name}: {line}") for line in lines]


def _share(fraction: float) -> str:
    """Percent. A share that is neither 0 nor 1 is not shown as 0 % or 100 %.

    >>> _share(0.0625), _share(0.99988), _share(1.0), _share(1e-6)
    ('6.2 %', 'over 99.9 %', '100.0 %', 'under 0.1 %')
    """
    if 0.9995 <= fraction < 1:
        return "over 99.9 %"
    return "under 0.1 %" if fraction < 0.0005 else units.percent(fraction)


def _largest(errors: OutputErrors) -> str:
    """The largest error, absolute and as a multiple of the allowed one, over the elements that can be compared."""
    largest = f"largest error {number(errors.max_abs)}"
    if errors.worst_of_bound is not None:
        of = "times" if errors.worst_of_bound > 1 else "of"
        largest += f", {format_share_of_bound(errors.worst_of_bound)} {of} the allowed one"
    elif errors.not_finite:
        largest = f"of the others, {largest}"
    return largest if errors.relative_l2 is None else f"{largest}; relative L2 error {errors.relative_l2:.3g}"


def _where(errors: OutputErrors) -> list[str]:
    """The smallest box that contains all wrong elements, and how many others it contains: a tile, a row and noise differ."""
    if errors.first_wrong is None or errors.last_wrong is None or not errors.shape:
        return []
    spans = list(zip(errors.axes, errors.first_wrong, errors.last_wrong, errors.shape, strict=True))
    box_elements = math.prod(last - first + 1 for _, first, last, _ in spans)
    every = errors.wrong == box_elements
    if box_elements == errors.elements:
        return ["every element is wrong" if every else "they lie all over the output"]
    part = f"{errors.wrong:,} of {units.counted(box_elements, 'element')} there"
    box = ", ".join(_span(*span) for span in spans)
    return [f"they lie within {box}: {'every element there is wrong' if every else part}"]


def _span(axis: str, first: int, last: int, size: int) -> str:
    """
    >>> _span("m", 0, 63, 64), _span("n", 48, 63, 64), _span("n", 5, 5, 64)
    ('all m', 'n 48 to 63 (the last 16 of 64)', 'n 5')
    """
    if first == 0 and last == size - 1:
        return f"all {axis}"
    if first == last:
        return f"{axis} {first}{' (the last one)' if last == size - 1 else ''}"
    return f"{axis} {first} to {last}" + (f" (the last {last - first + 1} of {size})" if last == size - 1 else "")


def describe_inputs(inspection: Inspection) -> Text:
    """The inputs, and which call was made."""
    if inspection.passed:
        other_fills = " and ".join(str(seed) for seed in range(inspection.seeds) if seed != inspection.seed)
        which = f"the timed one; fills {other_fills} came out right too"
    else:
        which = "the first that came out wrong; the table of the run counts the faults of all fills"
    filled = problem_of_seed(inspection.problem, inspection.seed)
    data = (filled.data or "unknown").replace("_", " ")
    call = "the very call that is timed" if inspection.call == "timed" else "bound anew and called eagerly"
    return join(
        " · ",
        (
            f"inputs: {data} data, fill {inspection.seed} ({which})",
            f"{call}, outputs filled with 0xFF bytes before it",
            configuration_text(inspection.configuration or {}),
        ),
    )


def describe_memory(tensor: TensorFacts) -> Text:
    """Device, alignment, and the inputs whose memory it is."""
    aligned = "" if tensor.alignment_bytes is None else f"aligned to {_size(tensor.alignment_bytes)}"
    return join(", ", (tensor.device, aligned, f"memory of {', '.join(tensor.aliases)}" if tensor.aliases else ""))


def _size(count: int) -> str:
    """
    >>> _size(64), _size(2048)
    ('64 B', '2 KiB')
    """
    return f"{count} B" if count < 1024 else f"{count // 1024} KiB" if count < 2**20 else f"{count // 2**20} MiB"


MOMENTS: dict[MemoryMoment, Text] = {
    "before_bind": Text("before binding"),
    "after_bind": Text("after binding"),
    "after_first_call": Text("after the first call"),
    "before_call": Text("before the inspected call"),
    "after_call": Text("after the inspected call"),
}
MEMORY_HELP = (
    "Of the whole measuring process, inputs, outputs and reference included. Allocated: in tensors. Reserved: taken from the "
    "device by torch's allocator, which keeps what is released for later tensors. The most memory of a call is a column of the "
    "table of all times."
)


def describe_unknown_memory(inspection: Inspection) -> Text | None:
    """Why the memory is not known; None if it is."""
    if not inspection.memory:
        return Text(
            "Memory is unknown: this inspection was made by a version that did not read it. Inspect the case again."
        )
    if all(state.allocated_bytes is None for state in inspection.memory):
        return Text("Memory is unknown: torch counts allocated and reserved memory on GPUs only.")
    return None


def format_strides(tensor: TensorFacts) -> Text:
    """Strides in elements, and whether the tensor is contiguous."""
    strides = ", ".join(map(str, tensor.strides)) or "none"
    return Text(strides if tensor.contiguous else f"{strides} (not contiguous)")


def format_index(element: Element) -> Text:
    """
    >>> print(format_index(Element(index=(3, 17), got=0.0, expected=1.0, error=1.0, allowed=0.1, share=10.0)))
    [3, 17]
    """
    return Text(str(list(element.index)))


def format_output_value(element: Element) -> Text:
    return Text("never written" if element.unwritten else number(element.got, 9))


def describe_octave(index: int) -> Text:
    """What a bar of the histogram of errors counts.

    >>> print(*map(describe_octave, (0, OCTAVES, 2 * OCTAVES + 1)), sep="; ")
    up to 2⁻¹² of the allowed error; ½ to 1 of the allowed error; above 2¹² of the allowed error
    """
    if index == 0:
        span = f"up to {format_power_of_two(-OCTAVES)}"
    elif index == 2 * OCTAVES + 1:
        span = f"above {format_power_of_two(OCTAVES)}"
    else:
        span = f"{format_power_of_two(index - OCTAVES - 1)} to {format_power_of_two(index - OCTAVES)}"
    return Text(f"{span} of the allowed error")


def format_power_of_two(exponent: int) -> str:
    """A power of two in the usual form.

    >>> format_power_of_two(-12), format_power_of_two(-1), format_power_of_two(3), format_power_of_two(5)
    ('2⁻¹²', '½', '8', '2⁵')
    """
    return _SHORT.get(exponent, f"2{str(exponent).translate(_RAISED)}")


def describe_cell(errors: OutputErrors, cell: int) -> Text:
    """The indices that a cell of the error map contains."""
    grid = errors.map
    if grid.wraps:
        first = cell * grid.block[1]
        return _range(errors.axes[0] if errors.axes else "", first, min(first + grid.block[1], errors.elements))
    spans = zip(errors.axes[-2:], divmod(cell, grid.columns), grid.block, errors.shape[-2:], strict=True)
    ranges = (_range(axis, i * block, min((i + 1) * block, size)) for axis, i, block, size in spans)
    return join(", ", (*(f"any {axis}" for axis in errors.axes[:-2]), *ranges))


def _range(axis: str, first: int, end: int) -> Text:
    return Text(f"{axis} {first}" if end - first == 1 else f"{axis} {first} to {end - 1}")


def describe_map(errors: OutputErrors) -> Text:
    """The alternative text of the error map."""
    grid = errors.map
    bad = [i for i, wrong in enumerate(grid.wrong) if wrong]
    size = f"Map of the largest error in each of {grid.rows} × {grid.columns} blocks of {errors.name}"
    if not bad:
        return Text(f"{size}: no block holds a wrong element; {_largest(errors)}.")
    first, last, most = (describe_cell(errors, i) for i in (bad[0], bad[-1], max(bad, key=lambda i: grid.wrong[i])))
    counts = f"{len(bad)} of {len(grid.wrong)} hold wrong elements"
    return Text(f"{size}: {counts}, the first at {first}, the last at {last}; most wrong at {most}.")


def describe_block(grid: ErrorMap) -> Text:
    """The part of the output that a cell of the map covers."""
    high, wide = (1, grid.block[1]) if grid.wraps else grid.block
    if high == wide == 1:
        return Text("a cell is one element")
    return Text(f"a cell is {wide:,} consecutive elements" if grid.wraps else f"a cell is {high} × {wide} elements")
