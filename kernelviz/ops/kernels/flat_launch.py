"""Launches of kernels over a contiguous vector, with one element or some 16-byte vectors a thread."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.one_element import Index, OneElement
from kernelviz.ops.kernels.vec16 import Layout, whole_vectors

if TYPE_CHECKING:
    from torch import Tensor

THREADS = 256
"""Of a block of kernels that are compiled for no layout."""


@dataclass(frozen=True, slots=True)
class FlatLaunch:
    """Blocks, threads of each, macros that the kernel is compiled with, and what it is told about the length.

    `size`: the number of elements, or for one element a thread the index of the last.
    """

    blocks: int
    threads: int
    size: Index
    defines: Mapping[str, str]


def one_element(x_N: Tensor) -> FlatLaunch:
    """One element a thread."""
    one = OneElement(x_N.numel())
    return FlatLaunch(one.blocks, one.threads, one.last, one.defines)


def one_vector(x_N: Tensor, vectors: int | None = None) -> FlatLaunch:
    """One 16-byte vector a thread, of those of x or that many."""
    count = whole_vectors(x_N) if vectors is None else vectors
    return FlatLaunch(max(1, -(-count // THREADS)), THREADS, ctypes.c_longlong(x_N.numel()), {})


def some_vectors(x_N: Tensor, layout: Layout) -> FlatLaunch:
    """As many 16-byte vectors a thread as the layout has."""
    size = ctypes.c_longlong(x_N.numel())
    return FlatLaunch(layout.blocks(whole_vectors(x_N)), layout.threads, size, layout.defines)
