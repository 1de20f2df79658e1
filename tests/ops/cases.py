"""Which problems every variant is tried on: formats, directions, and sizes that kernels get wrong (`sizes`).

Imports no torch, so that tests can be collected without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sizes import COMPILED, LARGE, ODD

from kernelviz.core.backends import BACKENDS
from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Direction, Problem
from kernelviz.core.sizes import OFFSET_AXES
from kernelviz.ops import Op, Variant, catalogue


def odd_sizes(op: Op) -> tuple[dict[str, int], ...]:
    """An op without an entry is tested at sizes 1, 7 and 131 along every axis."""
    return ODD.get(op.name) or tuple(dict.fromkeys(op.axis_names, size) for size in (1, 7, 131))


def same_sizes(op: Op, size: int) -> dict[str, int]:
    """This size along every axis that needs one; offsets are 0."""
    return dict.fromkeys((axis for axis in op.axis_names if axis not in OFFSET_AXES), size)


def large_sizes(op: Op) -> tuple[dict[str, int], ...]:
    return LARGE.get(op.name, ())


def variants(*backends: str) -> list[tuple[Op, Variant]]:
    """Every variant of the catalogue, or those of the given backends."""
    return [(op, v) for op in catalogue().values() for v in op.variants if not backends or v.backend in backends]


def folder_of(op: Op, variant: Variant) -> str:
    """The folder of the variant's kernels; what a folder holds is tried by one process."""
    return Path(inspect.getfile(variant.bind)).parent.name


def compiled_by(compiler: Literal["triton", "nvrtc", "nvcc"]) -> list[tuple[Op, Variant]]:
    """Every variant whose kernels of our own that compiler compiles."""
    return [(op, v) for op, v in variants() if BACKENDS[v.backend].compiler == compiler]


OWN = [(op, v) for op, v in variants() if BACKENDS[v.backend].compiler in ("triton", "nvrtc")]
"""Those whose compilers every developer has; test_cutlass.py compiles what nvcc does where it and CUTLASS are installed."""
SHARDS = 2
"""Kernels are compiled and interpreted in so many processes: each imports torch and triton for 5 s, and there are two cores."""
FOLDERS = sorted({folder_of(o, v) for o, v in OWN})


def shard_of(op: Op, variant: Variant) -> int:
    return FOLDERS.index(folder_of(op, variant)) % SHARDS


def ops_of(shard: int) -> list[str]:
    """The ops whose kernels a shard tries."""
    return sorted({o.name for o, v in OWN if shard_of(o, v) == shard})


WRONG: set[tuple[str, str]] = {
    *(("scatter_add", name) for name in ("torch_index_add_16bit", "cuda_atomics_16bit")),
    *(("add", name) for name in ("torch_aligned", "torch_fp16_compute", "torch_fp16_storage", "torch_combined")),
    ("cumsum", "torch_as_stored"),
    ("matmul", "triton_published_fp32"),
    ("row_sum", "triton_published"),
    ("transpose", "triton_published"),
}
"""Published variants (op, variant) that do not compute their op: the gate must find every one of them wrong, on its own."""
_RIGHT_IN_PART: dict[tuple[str, str], Callable[[Mapping[str, int]], bool]] = {
    ("row_sum", "triton_published"): lambda sizes: sizes["n"] <= 128,
    ("transpose", "triton_published"): lambda sizes: sizes["n"] % 32 == 0,
}
"""Those of WRONG that are right at some sizes: rows of one block of columns, columns of whole tiles."""
WAITS = {("scale", "cuda_published")}
"""Variants that wait for the device in their call, and so for everything that their stream holds."""


def wrong_at(op: Op, variant: Variant, sizes: Mapping[str, int]) -> bool:
    """Whether the gate must find the variant wrong at these sizes."""
    name = op.name, variant.name
    return name in WRONG and not (name in _RIGHT_IN_PART and _RIGHT_IN_PART[name](sizes))


@dataclass(frozen=True, slots=True)
class Way:
    """Everything of a problem but its sizes."""

    dtype: str
    compute: str | None
    direction: Direction

    def problem(self, op: Op, sizes: dict[str, int]) -> Problem:
        return op.problem(sizes, self.dtype, compute=self.compute, direction=self.direction)

    def variant(self, op: Op, variant: Variant) -> Variant:
        """The variant as this direction has it."""
        return op.of(self.problem(op, odd_sizes(op)[0])).variant_named(variant.name)

    def __str__(self) -> str:
        named = (self.dtype, self.compute, self.direction if self.direction == "backward" else None)
        return "-".join(filter(None, named))


def ways(op: Op, variant: Variant) -> Iterator[Way]:
    """Every format, compute precision and direction that the variant solves."""
    sizes = odd_sizes(op)[0]
    for direction in op.directions:
        for dtype in op.dtypes:
            for compute in op.computes.get(dtype, (None,)):
                problem = op.problem(sizes, dtype, compute=compute, direction=direction)
                if variant.refuses(problem) is None:
                    yield Way(dtype, problem.compute, direction)


INTERPRETED = ("fp32", "fp16", "uint8")
"""Formats that Triton's interpreter computes in: bf16 is silently wrong there, and so are conversions to bf16 and fp8."""


def problems(op: Op, variant: Variant) -> Iterator[Problem]:
    """Odd problems that the variant solves: every size in one way of each direction, two sizes in the others.

    On a GPU every size is tried in fp32 and in one of the 16-bit formats, in each direction (docs/gpu-report.json).
    """
    seen: set[Direction] = set()
    for way in ways(op, variant):
        for sizes in odd_sizes(op)[-2:] if way.direction in seen else odd_sizes(op):
            yield way.problem(op, sizes)
        seen.add(way.direction)


def interpreted_problems(op: Op, variant: Variant) -> Iterator[Problem]:
    """Those that Triton's interpreter can be trusted with; none of a backend that it has no operations of."""
    if BACKENDS[variant.backend].interpreted and not any(t.dtype in ("bf16", "fp8") for t in op.outputs):
        yield from (p for p in problems(op, variant) if p.dtype in INTERPRETED)


MAIN_TARGET = "sm_90"


def compile_problems(op: Op, variant: Variant, arch: str = MAIN_TARGET) -> Iterator[Problem]:
    """Problems that between them compile every kernel and configuration of the variant in each direction.

    On the main target each size in one precision, and the first size in a precision of another width; on the others one size.
    Every precision is run on a GPU, each size in fp32 and in one of the 16-bit formats (docs/gpu-report.json).
    """
    for direction in op.directions:
        mine = [w for w in ways(op, variant) if w.direction == direction]
        sizes = COMPILED.get(op.name) or odd_sizes(op)[-1:]
        if not mine:
            continue
        yield from (mine[0].problem(op, s) for s in (sizes if arch == MAIN_TARGET else sizes[:1]))
        if arch == MAIN_TARGET:
            width = dtype_named(mine[0].dtype).itemsize_bytes
            other = next((w for w in mine if dtype_named(w.dtype).itemsize_bytes != width), None)
            yield from (w.problem(op, sizes[0]) for w in (other,) if w is not None)
