"""What an op declares about fusing: the compositions that it replaces, its fused variants, and the sizes that show the effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelviz.core.fusion import FusionFamily, Step, StepKind, smallest_intermediate_bytes
from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.tensors import Sizes

Steps = Callable[[Sizes, int], tuple[Step, ...]]
"""The steps of a composition for (sizes, itemsize_bytes)."""
CACHES = 4
"""From this many times the last-level cache on, an intermediate tensor passes through memory whole."""
_MOST_DOUBLINGS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Composition:
    """Steps that are not fused, and the variants of the op that launch exactly these steps one after the other."""

    variants: tuple[str, ...]
    steps: Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkSweep:
    """An axis that changes the arithmetic of a problem for each byte that fusing saves, with its sizes on a GPU and on a CPU."""

    axis: str
    sizes: tuple[int, ...]
    cpu_sizes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """The fusion that an op stands for.

    `compositions`: what is not fused; the fastest variant of all of them is the unfused time. `fused`: the variants that
    do all steps in one kernel. `grows`: the axis that scales the intermediate tensors. `sizes`: one size of each axis, from which
    `grows` is doubled; `cpu_sizes`: the same on a CPU, where it is not. `work`: a second sweep; None without one.
    """

    family: FusionFamily
    compositions: tuple[Composition, ...]
    fused: tuple[str, ...]
    grows: str
    sizes: Mapping[str, int]
    cpu_sizes: Mapping[str, int]
    work: WorkSweep | None = None
    dtype: str = field(default="bf16")
    cpu_dtype: str = field(default="fp32")

    @property
    def unfused(self) -> tuple[str, ...]:
        """The variants of all compositions."""
        return tuple(name for composition in self.compositions for name in composition.variants)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of its sweeps: the one that scales the intermediate tensors, and the one that changes the arithmetic."""
        return (self.grows,) if self.work is None else (self.grows, self.work.axis)

    def steps_of(self, variant: str, sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...] | None:
        """The steps of a variant that is not fused. None for another variant, and where the composition has a single step."""
        for composition in self.compositions:
            if variant in composition.variants:
                steps = composition.steps(sizes, itemsize_bytes)
                return steps if len(steps) > 1 else None
        return None

    def intermediate_bytes(self, sizes: Sizes, itemsize_bytes: int) -> int:
        """The smallest tensor between two steps over all compositions; 0 where nothing is between them."""
        tensors = (smallest_intermediate_bytes(c.steps(sizes, itemsize_bytes)) for c in self.compositions)
        return min((size for size in tensors if size), default=0)

    def default_sizes(self, itemsize_bytes: int, cache_bytes: int | None) -> dict[str, int]:
        """The sizes at which every intermediate tensor has at least CACHES times the last-level cache: `sizes` with `grows`
        doubled. They are `sizes` themselves where the cache is unknown."""
        sizes = dict(self.sizes)
        for _ in range(_MOST_DOUBLINGS):
            if cache_bytes is None or self.intermediate_bytes(sizes, itemsize_bytes) >= CACHES * cache_bytes:
                break
            sizes[self.grows] *= 2
        return sizes


def elementwise_step(
    kind: StepKind,
    elements: int,
    itemsize_bytes: int,
    *,
    flop: int,
    operand_bytes: int = 0,
    last: bool = False,
) -> Step:
    """A step that reads a tensor of so many elements and writes one of the same size. `flop`: for each element.
    `operand_bytes`: what it reads besides, for example a bias.

    >>> elementwise_step("relu", 8, 2, flop=1).result_bytes, elementwise_step("relu", 8, 2, flop=1, last=True).result_bytes
    (16, 0)
    """
    tensor_bytes = elements * itemsize_bytes
    cost = Cost(work_flop=flop * elements, read_bytes=tensor_bytes + operand_bytes, written_bytes=tensor_bytes)
    return Step(kind=kind, cost=cost, result_bytes=0 if last else tensor_bytes)
