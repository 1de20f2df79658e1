"""What an inspection found, in words and in lines of tables: one place for the page, the terminal and alternative texts."""

import math

from kernelviz.core import OCTAVES, Element, ErrorMap, Inspection, OutputErrors, TensorFacts, Value, units
from kernelviz.core.configuration import configuration_text
from kernelviz.text.failures import describe_failure

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(given: Value | None, digits: int = 7) -> str:
    """A value with so many significant digits (nine tell any two numbers of float32 apart); NaN and Inf by name.

    >>> number(1.0), number(0.1 + 0.2), number(-1e-12), number("NaN"), number(None)
    ('1', '0.3', '-1e-12', 'NaN', '–')
    >>> number(23.344921112060547), number(23.344921112060547, 9)
    ('23.34492', '23.3449211')
    """
    return "–" if given is None else given if isinstance(given, str) else f"{given:.{digits}g}"


def format_share_of_bound(share: float | None) -> str:
    """An error in units of the allowed one.

    >>> format_share_of_bound(0.0), format_share_of_bound(0.1234), format_share_of_bound(5e12), format_share_of_bound(None)
    ('0', '0.123', '5e+12', 'beyond any bound')
    """
    return "beyond any bound" if share is None else f"{share:.3g}"


def format_shape(shape: tuple[int, ...]) -> str:
    """
    >>> format_shape((4096, 1024)), format_shape(())
    ('4096 × 1024', 'one element')
    """
    return " × ".join(str(s) for s in shape) or "one element"


def describe_inspection(inspection: Inspection) -> str:
    """Right or wrong in a sentence; a wrong one in the gate's own words."""
    if inspection.passed:
        return "✓ right: every element of every output lies inside the bound"
    return f"✕ wrong: {describe_failure(inspection)}"


def describe_output(errors: OutputErrors) -> list[str]:
    """What is to be said of one output: how many elements are wrong, how, and where they lie."""
    if not errors.wrong:
        return [f"{errors.name}: all {_count(errors.elements)} inside the bound; {_largest(errors)}"]
    kinds = []
    if errors.unwritten:
        kinds.append(f"{errors.unwritten:,} never written")
    if errors.not_finite > errors.unwritten:
        kinds.append(f"{errors.not_finite - errors.unwritten:,} NaN or Inf where the reference is not, or the reverse")
    rest = errors.wrong - max(errors.not_finite, errors.unwritten)
    if rest and kinds:
        kinds.append(f"{rest:,} too far off")
    said = f" ({', '.join(kinds)})" if kinds else ""
    share = _share(errors.wrong / errors.elements)
    lines = [f"{errors.name}: {errors.wrong:,} of {_count(errors.elements)} outside the bound, {share}{said}"]
    return [*lines, *_where(errors), f"{errors.name}: {_largest(errors)}"]


def _share(fraction: float) -> str:
    """Percent that read neither as none nor as all where they are not.

    >>> _share(0.0625), _share(0.99988), _share(1.0), _share(1e-6)
    ('6.2 %', 'over 99.9 %', '100.0 %', 'under 0.1 %')
    """
    if 0.9995 <= fraction < 1:
        return "over 99.9 %"
    return "under 0.1 %" if fraction < 0.0005 else units.percent(fraction)


def _largest(errors: OutputErrors) -> str:
    """The greatest error, as it is and in units of the allowed one; of what is comparable, where something is not."""
    said = f"largest error {number(errors.max_abs)}"
    if errors.worst_of_bound is not None:
        of = "times" if errors.worst_of_bound > 1 else "of"
        said += f", {format_share_of_bound(errors.worst_of_bound)} {of} the allowed one"
    elif errors.not_finite:
        said = f"of the others, {said}"
    return said if errors.relative_l2 is None else f"{said}; relative L2 error {errors.relative_l2:.3g}"


def _where(errors: OutputErrors) -> list[str]:
    """The smallest box that holds all wrong elements, and whether it holds others too: a tile, a row and noise look different."""
    if errors.first_wrong is None or errors.last_wrong is None or not errors.shape:
        return []
    spans = list(zip(errors.axes, errors.first_wrong, errors.last_wrong, errors.shape, strict=True))
    box_elements = math.prod(last - first + 1 for _, first, last, _ in spans)
    box = ", ".join(_span(*span) for span in spans)
    if box_elements == errors.elements:
        every = errors.wrong == errors.elements
        return [f"{errors.name}: {'every element is wrong' if every else 'they lie all over the output'}"]
    full = (
        "every element there is wrong"
        if box_elements == errors.wrong
        else f"{errors.wrong:,} of {_count(box_elements)} there"
    )
    return [f"{errors.name}: they lie within {box}: {full}"]


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


def describe_inputs(inspection: Inspection) -> str:
    """Which inputs it was given, and which call was made."""
    other_fills = " and ".join(str(s) for s in range(inspection.seeds) if s != inspection.seed)
    fill = f"inputs: {(inspection.problem.data or 'unknown').replace('_', ' ')} data, fill {inspection.seed}"
    fill += (
        f" (the timed one; fills {other_fills} came out right too)"
        if inspection.passed
        else " (the first that came out wrong; the gate counts over all fills)"
    )
    call = "the very call that is timed" if inspection.call == "timed" else "bound anew and called eagerly"
    bound = f" · {configuration_text(inspection.configuration)}" if inspection.configuration else ""
    return f"{fill} · {call}, outputs filled with 0xFF bytes before it{bound}"


def describe_memory(tensor: TensorFacts) -> str:
    """Where it lies: device, alignment, and whose memory it is."""
    aligned = "" if tensor.alignment_bytes is None else f", aligned to {_size(tensor.alignment_bytes)}"
    alias = f", memory of {', '.join(tensor.aliases)}" if tensor.aliases else ""
    return f"{tensor.device}{aligned}{alias}"


def _size(count: int) -> str:
    """
    >>> _size(64), _size(2048)
    ('64 B', '2 KiB')
    """
    return f"{count} B" if count < 1024 else f"{count // 1024} KiB" if count < 2**20 else f"{count // 2**20} MiB"


def format_strides(tensor: TensorFacts) -> str:
    """Strides in elements, and whether they leave nothing between the elements."""
    strides = ", ".join(str(s) for s in tensor.strides) or "none"
    return strides if tensor.contiguous else f"{strides} (not contiguous)"


def format_index(element: Element) -> str:
    """
    >>> format_index(Element(index=(3, 17), got=0.0, expected=1.0, error=1.0, allowed=0.1, share=10.0))
    '[3, 17]'
    """
    return f"[{', '.join(str(i) for i in element.index)}]"


def format_output_value(element: Element) -> str:
    return "never written" if element.unwritten else number(element.got, 9)


def describe_octave(place: int) -> str:
    """What a bar of the histogram of errors holds.

    >>> describe_octave(0), describe_octave(OCTAVES), describe_octave(2 * OCTAVES + 1)
    ('up to 2⁻¹² of the allowed error', '½ to 1 of the allowed error', 'above 2¹² of the allowed error')
    """
    if place == 0:
        span = f"up to {format_power_of_two(-OCTAVES)}"
    elif place == 2 * OCTAVES + 1:
        span = f"above {format_power_of_two(OCTAVES)}"
    else:
        span = f"{format_power_of_two(place - OCTAVES - 1)} to {format_power_of_two(place - OCTAVES)}"
    return f"{span} of the allowed error"


def format_power_of_two(exponent: int) -> str:
    """A power of two as one reads it.

    >>> format_power_of_two(-12), format_power_of_two(-1), format_power_of_two(0), format_power_of_two(3), format_power_of_two(5)
    ('2⁻¹²', '½', '1', '8', '2⁵')
    """
    if -2 <= exponent <= 3:
        return ("¼", "½", "1", "2", "4", "8")[exponent + 2]
    return f"2{str(exponent).translate(_RAISED)}"


def describe_cell(errors: OutputErrors, cell: int) -> str:
    """The indices that a cell of the error map holds."""
    grid = errors.map
    if grid.wraps:
        size = errors.elements
        first = cell * grid.block[1]
        return _range(errors.axes[0] if errors.axes else "", first, min(first + grid.block[1], size))
    row, column = divmod(cell, grid.columns)
    spans = []
    for axis, place, block, size in zip(errors.axes[-2:], (row, column), grid.block, errors.shape[-2:], strict=True):
        spans.append(_range(axis, place * block, min((place + 1) * block, size)))
    return ", ".join([*(f"any {axis}" for axis in errors.axes[:-2]), *spans])


def _range(axis: str, first: int, behind: int) -> str:
    return f"{axis} {first}" if behind - first == 1 else f"{axis} {first} to {behind - 1}"


def describe_map(errors: OutputErrors) -> str:
    """The error map for those who do not see it."""
    grid = errors.map
    bad = [i for i, wrong in enumerate(grid.wrong) if wrong]
    size = f"Map of the largest error in each of {grid.rows} × {grid.columns} blocks of {errors.name}"
    if not bad:
        return f"{size}: no block holds a wrong element; {_largest(errors)}."
    most = max(bad, key=lambda i: grid.wrong[i])
    first = f"the first at {describe_cell(errors, bad[0])}, the last at {describe_cell(errors, bad[-1])}"
    return f"{size}: {len(bad)} of {len(grid.wrong)} hold wrong elements, {first}; most wrong at {describe_cell(errors, most)}."


def describe_block(grid: ErrorMap) -> str:
    """How much of the output a cell of the map stands for."""
    high, wide = grid.block
    if grid.wraps:
        return "a cell is one element" if wide == 1 else f"a cell is {wide:,} consecutive elements"
    return "a cell is one element" if high == wide == 1 else f"a cell is {high} × {wide} elements"


def _count(elements: int) -> str:
    return f"{elements:,} element{'s' if elements != 1 else ''}"
