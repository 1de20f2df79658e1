"""The layer as one module: its kernels with their parts and shares, and the largest ones that belong to no part."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core.workload import Measured, WorkloadGroup, WorkloadResult

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


def group_rows(results: Sequence[WorkloadResult]) -> tuple[GroupRow, ...]:
    """The parts of each variant, in the order of their launches."""
    rows = []
    for result in results:
        whole = layer_time(result)
        for group in result.known_groups:
            known = whole is not None and group.time is not None
            share = group.time.estimate / whole.estimate if known and group.time and whole else None
            rows.append(GroupRow(result.case.variant, group, share))
    return tuple(rows)


def kernel_rows(results: Sequence[WorkloadResult]) -> tuple[KernelRow, ...]:
    """The kernels of each variant, the largest first."""
    rows = []
    for result in results:
        whole = layer_time(result)
        for group in result.known_groups:
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
