"""The layer as one module: its kernels with their parts and shares, and the largest ones that belong to no part."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core.errors import UsageError
from kernelviz.core.workload import Measured, WorkloadGroup, WorkloadResult
from kernelviz.models.parts import LayerPart, checked_call, layer_parts
from kernelviz.models.presets import preset_named

LARGE_SHARE = 0.02
"""A kernel with a larger share of the layer must belong to a part."""
MOST_REST = 0.10
"""The rest that the parts may leave unexplained, as a share of the layer."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A kernel of the layer. `parts`: empty if it belongs to none. `time_s`: within the whole layer."""

    variant: str
    name: str
    parts: tuple[str, ...]
    time_s: float
    share: float | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A part of the layer as the module launches it. `share`: of the layer's time."""

    variant: str
    group: WorkloadGroup
    share: float | None


def layer_time(result: WorkloadResult) -> Measured | None:
    """The time of the whole layer; None for a failed case, of which a wrong one must not be compared."""
    value = result.values.get("layer_s")
    return value if isinstance(value, Measured) and result.failure is None else None


def measured_value(result: WorkloadResult, name: str) -> Measured | None:
    """A measured figure of the result; None if it has none."""
    value = result.values.get(name)
    return value if isinstance(value, Measured) else None


def groups_of(result: WorkloadResult) -> tuple[WorkloadGroup, ...]:
    """The parts of the layer as it was launched. With torch 2.11, the compiler named no part for a product that it joined with an
    addition; such documents name the parts by the order in which a layer must run."""
    values = result.case.values
    try:
        preset = preset_named(str(values["model"]))
        call = checked_call(
            preset, str(values["phase"]), int(values["batch"]), int(values["context"]), str(values["dtype"])
        )
    except (KeyError, ValueError, UsageError):
        return result.known_groups  # of another version of the workload
    return with_missing_parts(result.known_groups, layer_parts(preset, call))


def with_missing_parts(groups: Sequence[WorkloadGroup], parts: Sequence[LayerPart]) -> tuple[WorkloadGroup, ...]:
    """The groups, where a product and its additions that no group names are added to the group that must do them. `parts`: those
    of the layer, in their order.

    A part needs the result of the part before it and is needed by the part behind it. If one group without parts lies between
    theirs, it is that one. Otherwise it is the last group of the part before, if that launches several kernels, because a kernel
    that the compiler generated is alone and names all its parts. In any other case, the parts stay unknown.
    """
    order, products = [part.name for part in parts], {part.name for part in parts if part.role == "matmul"}
    in_one_call = {part.name for part in parts if part.role == "glue"} | products
    named = {part for group in groups for part in group.parts}
    filled = [list(group.parts) for group in groups]
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and order[end] not in named:
            end += 1
        missing = order[begin:end]
        if begin > 0 and in_one_call.issuperset(missing) and [name in products for name in missing].count(True) == 1:
            after = max(i for i, of in enumerate(filled) if order[begin - 1] in of)
            until = min(
                (i for i, of in enumerate(filled) if order[end : end + 1] and order[end] in of),
                default=len(groups),
            )
            without = [i for i in range(after + 1, until) if not groups[i].parts]
            if len(without) == 1:
                filled[without[0]] += missing
            elif not without and len(groups[after].kernels) > 1:
                filled[after] += missing
        begin = end + 1
    return tuple(
        group if len(names) == len(group.parts) else msgspec.structs.replace(group, parts=tuple(names))
        for group, names in zip(groups, filled, strict=True)
    )


def group_rows(results: Sequence[WorkloadResult]) -> tuple[GroupRow, ...]:
    """The parts of each variant, in the order of their launches."""
    rows = []
    for result in results:
        whole = layer_time(result)
        for group in groups_of(result):
            known = whole is not None and group.time is not None
            share = group.time.estimate / whole.estimate if known and group.time and whole else None
            rows.append(GroupRow(result.case.variant, group, share))
    return tuple(rows)


def kernel_rows(results: Sequence[WorkloadResult]) -> tuple[KernelRow, ...]:
    """The kernels of each variant, the largest first."""
    rows = []
    for result in results:
        whole = layer_time(result)
        for group in groups_of(result):
            for name, time_s in zip(group.kernels, group.kernels_s, strict=False):
                share = None if whole is None else time_s / whole.estimate
                rows.append(KernelRow(result.case.variant, name, group.parts, time_s, share))
    order = {variant: number for number, variant in enumerate(dict.fromkeys(row.variant for row in rows))}
    return tuple(sorted(rows, key=lambda row: (order[row.variant], -row.time_s)))


def large_without_part(rows: Sequence[KernelRow]) -> tuple[KernelRow, ...]:
    """Kernels above LARGE_SHARE of the layer that belong to no part.

    >>> rows = [KernelRow("eager", "a", (), 1.0, 0.5), KernelRow("eager", "b", ("up",), 1.0, 0.5)]
    >>> [row.name for row in large_without_part(rows)]
    ['a']
    """
    return tuple(row for row in rows if not row.parts and row.share is not None and row.share > LARGE_SHARE)
