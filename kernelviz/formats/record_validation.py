"""Checks of records in a backup that the types cannot express: inspections, selftests, tunings. Roofs are checked as in a run."""

import math
import sys
from collections.abc import Sequence
from itertools import chain

from kernelviz.core import DocumentError, Inspection, OutputErrors, Selftest, TensorFacts, Tuning
from kernelviz.core.inspection import MAP_CELLS, OCTAVES, WORST, ErrorMap
from kernelviz.core.tuning import Span
from kernelviz.formats.validation import (
    LEAST_S,
    MAX_COUNT,
    MAX_SIZE,
    MOST_S,
    check_between,
    check_environment,
    check_fields,
    check_moment,
    check_problem,
    refuse,
)

MAX_VALUE = sys.float_info.max
"""The largest absolute value of an element, of a tensor in float64."""
MAX_BINS = 4_096
MAX_DIMENSIONS = 64


def check_inspection(inspection: Inspection) -> None:
    """Errors: DocumentError with the path of the first field of the inspection that has an impossible value."""
    check_moment(inspection.created_at, "$.inspection.created_at")
    check_problem(inspection.problem, "$.inspection.problem")
    check_environment(inspection.environment, "$.inspection.environment")
    # A page says of each other seed that its outputs were right.
    check_between(inspection.seeds, 0, 1_000, "$.inspection.seeds")
    refuse((not inspection.tensors, "an inspection has at least one tensor", "$.inspection.tensors"))
    _check_unlike([t.name for t in inspection.tensors], "$.inspection.tensors")
    _check_unlike([e.name for e in inspection.errors], "$.inspection.errors")
    for i, tensor in enumerate(inspection.tensors):
        _check_tensor(tensor, f"$.inspection.tensors[{i}]")
    _check_unlike([state.moment for state in inspection.memory], "$.inspection.memory")
    for i, state in enumerate(inspection.memory):
        check_fields(state, f"$.inspection.memory[{i}]", 0, MAX_COUNT, "allocated_bytes", "reserved_bytes")
    for i, errors in enumerate(inspection.errors):
        _check_errors(errors, f"$.inspection.errors[{i}]")


def check_selftest(selftest: Selftest) -> None:
    """Errors: DocumentError with the path of the first field of the selftest that has an impossible value."""
    check_moment(selftest.created_at, "$.selftest.created_at")
    check_environment(selftest.environment, "$.selftest.environment")
    for i, check in enumerate(selftest.checks):
        path = f"$.selftest.checks[{i}]"
        check_fields(check, path, -MAX_VALUE, MAX_VALUE, "value", "limit")
        check_fields(check, path, 0.0, MOST_S, "took_s")
        for name, figure in check.figures.items():
            check_between(figure, -MAX_VALUE, MAX_VALUE, f"{path}.figures.{name[:40]}")
    if selftest.timeline is None:
        return
    spans = chain(
        ((f"marks[{i}]", mark.start_s, mark.end_s) for i, mark in enumerate(selftest.timeline.marks)),
        ((f"counted[{i}]", start_s, end_s) for i, (start_s, end_s) in enumerate(selftest.timeline.counted)),
    )
    for name, start_s, end_s in spans:
        path = f"$.selftest.timeline.{name}"
        check_between(start_s, -MOST_S, MOST_S, path)
        check_between(end_s, -MOST_S, MOST_S, path)
        refuse((end_s < start_s, "it ends before it starts", path))


def check_tuning(tuning: Tuning) -> None:
    """Errors: DocumentError with the path of the first field of the tuning that has an impossible value."""
    check_moment(tuning.created_at, "$.tuning.created_at")
    check_problem(tuning.problem, "$.tuning.problem")
    _check_span(tuning.time_s, "$.tuning.time_s", LEAST_S, MOST_S)
    _check_span(tuning.default_s, "$.tuning.default_s", LEAST_S, MOST_S)
    _check_span(tuning.speed_up, "$.tuning.speed_up", LEAST_S / MOST_S, MOST_S / LEAST_S)
    check_fields(tuning, "$.tuning", 0, MAX_SIZE, "space", "tried", "failed")
    check_fields(tuning, "$.tuning", 0.0, MOST_S, "seconds", "preparing_s")
    for field in ("configuration", "default"):
        for name, number in getattr(tuning, field).items():
            check_between(number, -MAX_SIZE, MAX_SIZE, f"$.tuning.{field}.{name[:40]}")


def _check_span(span: Span | None, path: str, low: float, high: float) -> None:
    check_fields(span, path, low, high, "estimate", "low", "high")


def _check_unlike(names: Sequence[str], path: str) -> None:
    """A page draws each in a place of its own, named after it."""
    refuse((len(set(names)) < len(names), "a name is there twice", path))


def _check_shape(shape: Sequence[int], path: str) -> None:
    refuse((len(shape) > MAX_DIMENSIONS, f"{len(shape)} dimensions; at most {MAX_DIMENSIONS} are read", path))
    for i, size in enumerate(shape):
        check_between(size, 0, MAX_SIZE, f"{path}[{i}]")


def _check_tensor(tensor: TensorFacts, path: str) -> None:
    _check_shape(tensor.shape, f"{path}.shape")
    counts = ("size_bytes", "nan", "positive_infinity", "negative_infinity", "zeros", "unwritten", "alignment_bytes")
    check_fields(tensor, path, 0, MAX_COUNT, *counts)
    check_fields(tensor, path, -MAX_VALUE, MAX_VALUE, "minimum", "maximum", "mean", "deviation")
    if tensor.histogram is None:
        return
    inside, histogram = f"{path}.histogram", tensor.histogram
    check_fields(histogram, inside, -MAX_VALUE, MAX_VALUE, "low", "high")
    bins = len(histogram.counts)
    refuse(
        (histogram.high < histogram.low, "its upper end is below its lower end", inside),
        (math.isinf(histogram.high - histogram.low), "its width is not finite", inside),
        (not 1 <= bins <= MAX_BINS, f"it has {bins} bins; 1 to {MAX_BINS} can be", f"{inside}.counts"),
    )
    _check_counts(histogram.counts, f"{inside}.counts")


def _check_errors(errors: OutputErrors, path: str) -> None:
    _check_shape(errors.shape, f"{path}.shape")
    dimensions = len(errors.shape)
    check_fields(errors, path, 0, errors.elements, "wrong", "not_finite", "unwritten")
    check_fields(errors, path, 0.0, MAX_VALUE, "max_abs", "max_relative", "relative_l2", "worst_of_bound")
    octaves, bins = len(errors.counts.octaves), 2 * OCTAVES + 2
    refuse(
        (len(errors.axes) != dimensions, f"{len(errors.axes)} axes cannot be those of {dimensions} sizes", f"{path}.axes"),
        (octaves != bins, f"it has {octaves} bins; {bins} are read", f"{path}.counts.octaves"),
        (len(errors.worst) > WORST, f"it lists {len(errors.worst)} elements; at most {WORST} are read", f"{path}.worst"),
    )  # fmt: skip
    _check_counts((errors.counts.exact, errors.counts.beyond, *errors.counts.octaves), f"{path}.counts")
    for i, element in enumerate(errors.worst):
        inside = f"{path}.worst[{i}]"
        _check_index(element.index, errors.shape, f"{inside}.index")
        check_fields(element, inside, 0.0, MAX_VALUE, "error", "allowed", "share")
    for name, corner in (("first_wrong", errors.first_wrong), ("last_wrong", errors.last_wrong)):
        if corner is not None:
            _check_index(corner, errors.shape, f"{path}.{name}")
    _check_map(errors.map, dimensions, f"{path}.map")


def _check_map(grid: ErrorMap, dimensions: int, path: str) -> None:
    check_fields(grid, path, 0 if not grid.shares else 1, MAP_CELLS, "rows", "columns")
    for i, side in enumerate(grid.block):
        check_between(side, 1, MAX_SIZE, f"{path}.block[{i}]")
    most = grid.rows * grid.columns
    lengths = {len(grid.shares), len(grid.wrong), len(grid.unwritten)}
    short = bool(grid.shares) and not grid.wraps and len(grid.shares) < most
    refuse(
        (len(lengths) > 1, "its lists have different lengths", path),
        (max(lengths) > most, f"{max(lengths)} cells do not fit into {grid.rows} rows of {grid.columns}", path),
        (short, f"it has {len(grid.shares)} of {most} cells", path),
        (not grid.wraps and dimensions < 2, "only the map of a vector wraps", f"{path}.wraps"),
    )
    _check_counts((*grid.wrong, *grid.unwritten), path)
    for i, share in enumerate(grid.shares):
        if share is not None:
            check_between(share, 0.0, MAX_VALUE, f"{path}.shares[{i}]")


def _check_index(index: Sequence[int], shape: Sequence[int], path: str) -> None:
    inside = len(index) == len(shape) and all(0 <= i < size for i, size in zip(index, shape, strict=True))
    if not inside:
        raise DocumentError(f"{str(list(index))[:60]} is outside the shape {str(list(shape))[:60]}", path=path)


def _check_counts(counts: Sequence[int], path: str) -> None:
    for count in counts:
        check_between(count, 0, MAX_COUNT, path)
