"""Lists of problems that are drawn from a seed: over all ops, number formats, compute precisions and directions, at any size.

Each axis is log-uniform from its least size to its memory limit: the largest size with which the problem still takes at most
MOST_BYTES with its reference, and MOST_FLOP. Every second problem has one of the shapes below. Imports no torch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from kernelviz.core import BadField, Problem
from kernelviz.core.problem import Direction
from kernelviz.core.sizes import expand
from kernelviz.ops import Op, catalogue

COUNT = 400
MOST_BYTES = 16 * 2**30
"""Inputs, outputs and float64 reference of a problem: it fits an H100 (80 GB) beside the copies of its tensors."""
MOST_FLOP = 4 * 10**12
"""6 ms of bf16 on tensor cores, and 80 ms of fp32."""
LARGEST = 2**31
Of = TypeVar("Of")
Shape = Literal["any", "powers of two", "multiples of 8", "short rows", "few rows", "one element"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
CHOICES: dict[str, dict[str, tuple[int, ...]]] = {
    "attention": {"hk": (1, 2, 4, 8), "d": (64, 128, 256)},
    "conv": {"r": (1, 3, 5), "s": (1, 2)},
    "strided_copy": {"s": (1, 2, 3, 4, 7, 8, 16, 32, 64)},
    "branch_divergence": {"g": (1, 2, 3, 4, 8, 16, 32, 64, 128)},
    "grouped_matmul": {"s": (1, 2)},
    "varlen_attention": {"u": (1, 2)},
}
"""By a part of an op's name: axes whose sizes are no matter of memory, and what they may be."""
MOST: dict[str, dict[str, int]] = {
    "topk": {"k": 1024},
    "pointwise_chain": {"k": 16},
    "empty_launch": {"k": 256},
    "conv": {"h": 128, "w": 128},
    "grouped_matmul": {"g": 64},
    "rope": {"hq": 64, "hk": 64, "p": 128},
}
"""The same: the largest size of an axis that counts something else than elements."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a problem is of, without its sizes."""

    op: str
    dtype: str
    compute: str | None
    direction: Direction


@dataclass(frozen=True, slots=True)
class Drawn:
    """A problem with its number in the list and its shape."""

    number: int
    shape: Shape
    problem: Problem


def kinds() -> tuple[Kind, ...]:
    """Every op, number format, compute precision and direction."""
    return tuple(
        Kind(op.name, dtype, compute, direction)
        for op in catalogue().values()
        for dtype in op.dtypes
        for compute in op.computes.get(dtype, (None,))
        for direction in op.directions
    )


def is_memory_bound(op: Op) -> bool:
    """Whether no default size of the op has 100 FLOP a byte: an H200 and an H100 do more than 200 of bf16 in the time of one.

    >>> [is_memory_bound(catalogue()[name]) for name in ("softmax", "attention_decode", "matmul", "conv2d", "attention")]
    [True, True, False, False, False]
    """
    dtype = op.dtypes[0]
    sizes = expand(op.axis_names, {axis.name: axis.default for axis in op.axes})
    costs = [op.cost_of(Problem(op=op.name, sizes=one, dtype=dtype)) for one in sizes]
    return all(cost.work_flop < 100 * cost.moved_bytes for cost in costs)


def problems(seed: str, count: int = COUNT) -> tuple[Drawn, ...]:
    """The list of a seed, all problems of an op together. Each kind occurs as often as any other, or once more."""
    every = kinds()
    order = random.Random(f"{seed} order").sample(every, len(every))
    chosen = sorted(
        ((order[number % len(order)], number) for number in range(count)), key=lambda one: (one[0].op, one[1])
    )
    return tuple(Drawn(number, *_problem(seed, number, kind)) for kind, number in chosen)


def _problem(seed: str, number: int, kind: Kind) -> tuple[Shape, Problem]:
    """The first draw that the op allows."""
    op = catalogue()[kind.op]
    draw = random.Random(f"{seed} {number} {kind}")
    # One element is the same problem each time, so it is drawn less often.
    shape = draw.choices(SHAPES, weights=(10, 4, 4, 4, 4, 1))[0]
    for _ in range(1000):
        try:
            sizes = _sizes(op, kind, shape, draw)
            return shape, op.problem(sizes, kind.dtype, compute=kind.compute, direction=kind.direction)
        except BadField:
            continue
    raise AssertionError(f"no draw is a problem of {kind}")


def _sizes(op: Op, kind: Kind, shape: Shape, draw: random.Random) -> dict[str, int]:
    choices, most = _of_name(CHOICES, op.name), _of_name(MOST, op.name)
    least = {a: choices[a][0] if a in choices else 0 if a == "o" else 1 for a in op.axis_names}
    sizes = dict(least)
    if "hk" in choices and "hq" in sizes:
        sizes["hk"] = draw.choice(choices["hk"])
        sizes["hq"] = sizes["hk"] * draw.choice((1, 2, 4, 8))
        sizes["d"] = draw.choice([d for d in choices["d"] if kind.direction == "forward" or d <= 128])
    free = [a for a in op.axis_names if a not in ("o", *(("hk", "hq", "d") if "hk" in choices else ()))]
    short = _short(op, shape)
    for axis in draw.sample(free, len(free)):
        if axis in choices:
            sizes[axis] = draw.choice(choices[axis])
            continue
        limit = largest(op, kind, sizes, axis, most.get(axis, LARGEST))
        if shape == "one element":
            continue
        if axis == short:
            limit = min(limit, 32)
        sizes[axis] = _rounded(log_uniform(draw, 1, limit), shape, limit)
    if "hk" in sizes and "hk" not in choices:  # rope: any heads, but query heads are no fewer
        sizes["hq"], sizes["hk"] = max(sizes["hq"], sizes["hk"]), min(sizes["hq"], sizes["hk"])
    if op.name == "topk":
        sizes["k"] = min(sizes["k"], sizes["n"])
    for axis, of in (("u", "b"), ("s", "g")):  # the longest sequence and the largest group are a part of all
        if axis in sizes and of in sizes and op.name in CHOICES:
            sizes[axis] = min(sizes[axis], sizes[of])
    if not fits(op, kind, sizes):
        raise BadField("sizes", str(sizes), "draw again")
    return sizes


def _of_name(table: Mapping[str, Mapping[str, Of]], name: str) -> dict[str, Of]:
    """What the table says of the axes of an op."""
    return {axis: value for part, values in table.items() if part in name for axis, value in values.items()}


def _short(op: Op, shape: Shape) -> str | None:
    """The axis of which a shape has few: the last dimension of the first input, or its first one."""
    dimensions = [axis for axis in op.inputs[0].axes if isinstance(axis, str)] if op.inputs else list(op.axis_names)
    if len(dimensions) < 2 or shape not in ("short rows", "few rows"):
        return None
    return dimensions[-1] if shape == "short rows" else dimensions[0]


def largest(op: Op, kind: Kind, sizes: dict[str, int], axis: str, most: int = LARGEST) -> int:
    """The memory limit of an axis: its largest size, at most `most`, with which the problem fits, with the other sizes
    as they are."""
    least, beyond = 1, most + 1
    while beyond - least > 1:
        middle = (least + beyond) // 2
        if fits(op, kind, {**sizes, axis: middle}):
            least = middle
        else:
            beyond = middle
    return least


def fits(op: Op, kind: Kind, sizes: dict[str, int]) -> bool:
    """Whether the problem takes at most MOST_BYTES and MOST_FLOP."""
    problem = Problem(op=op.name, sizes=sizes, dtype=kind.dtype, compute=kind.compute, direction=kind.direction)
    return op.needed_bytes(problem) <= MOST_BYTES and op.cost_of(problem).work_flop <= MOST_FLOP


def log_uniform(draw: random.Random, least: int, most: int) -> int:
    """A whole number from `least` to `most`, log-uniform."""
    return min(most, max(least, round(math.exp(draw.uniform(math.log(least), math.log(most))))))


def _rounded(size: int, shape: Shape, limit: int) -> int:
    if shape == "powers of two":
        return int(min(2 ** round(math.log2(size)), 2 ** int(math.log2(limit))))
    if shape == "multiples of 8":
        return max(1, min(-(-size // 8) * 8, limit // 8 * 8))
    return size
