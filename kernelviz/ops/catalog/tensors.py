"""The axes, tensors and named sizes of an op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Data

if TYPE_CHECKING:
    from torch import Tensor

Sizes = Mapping[str, int]
"""The size of each axis by its name."""
Tensors: TypeAlias = "tuple[Tensor, ...]"
Ids = Literal["permutation", "labels"]
"""How whole numbers below the size of an axis are drawn. ``permutation``: all of them in random order, repeated if more are
needed, so that exactly min(count, size) different numbers occur (in ascending order if the data are ``sorted``). ``labels``: each
number is drawn independently."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A named dimension. `default`: the sweep that a page offers first; `cpu_default`: the one on a machine without a GPU."""

    name: str
    caption: str
    default: str
    cpu_default: str


@dataclass(frozen=True, slots=True)
class Groups:
    """A dimension that counts groups of `each` neighbours along an axis; the last group may be incomplete.

    >>> Groups("k", 128).count({"k": 300}), str(Groups("k", 128))
    (3, '⌈k/128⌉')
    """

    axis: str
    each: int

    def count(self, sizes: Sizes) -> int:
        return -(-sizes[self.axis] // self.each)

    def __str__(self) -> str:
        return f"⌈{self.axis}/{self.each}⌉"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor of a problem: its dimensions as names of axes, whole numbers or groups along an axis, and its dtype (None: that of
    the problem).

    `below` and `ids`: the tensor holds whole numbers from 0 to below the size of the axis `below`, drawn as `ids` says.
    `data`: the kind of data that it always holds, whatever the problem asks for.

    >>> TensorSpec(name="x_MN", axes=("m", "n")).shape({"m": 2, "n": 3})
    (2, 3)
    >>> TensorSpec(name="counts", axes=(256,), dtype="int64").shape({"n": 3})
    (256,)
    """

    name: str
    axes: tuple[str | int | Groups, ...]
    dtype: str | None = None
    below: str | None = None
    ids: Ids = "permutation"
    data: Data | None = None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        return tuple(_size(a, sizes) for a in self.axes)

    def elements(self, sizes: Sizes) -> int:
        return prod(self.shape(sizes))

    def size_bytes(self, sizes: Sizes, dtype: str) -> int:
        return self.elements(sizes) * dtype_named(self.dtype or dtype).itemsize_bytes


def _size(dimension: str | int | Groups, sizes: Sizes) -> int:
    if isinstance(dimension, Groups):
        return dimension.count(sizes)
    return dimension if isinstance(dimension, int) else sizes[dimension]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Named sizes, for example those of a model: the text that a person would type for each axis."""

    name: str
    caption: str
    sizes: Mapping[str, str]
