"""CUDA C++ kernels of `uniform_fill`, bound to tensors."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.one_element import Index, OneElement
from kernelviz.ops.uniform_fill.formats import bits_of

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256
ROUNDS = 10
CALL_BITS = 128
"""What one call of Philox gives."""


def bind_scalar(like_1: Tensor, n: int) -> Launch:
    """An element a thread, of the format and device of `like_1`.

    Each call of the launch uses a new seed; a captured call keeps the seed of its capture.
    """
    return _bind("fill_scalar", like_1, n, OneElement(n), ROUNDS)


def bind_vec16(like_1: Tensor, n: int, *, rounds: int = ROUNDS) -> Launch:
    """As many elements a thread as a call of Philox gives; the rest as `bind_scalar`."""
    return _bind("fill_vec16", like_1, n, elements_of_call(bits_of(like_1)), rounds)


def elements_of_call(bits: int) -> int:
    """Elements that 128 bits are enough for, in slots of 8, 16 or 32 bits.

    >>> [elements_of_call(bits) for bits in (24, 11, 8)]
    [4, 8, 16]
    """
    return CALL_BITS // next(slot for slot in (8, 16, 32) if slot >= bits)


def defines(like_1: Tensor, rounds: int) -> dict[str, str]:
    """What the kernels are compiled with."""
    return {"ELEMENT": nvrtc.element_type(like_1.dtype), "BITS": str(bits_of(like_1)), "ROUNDS": str(rounds)}


def _bind(name: str, like_1: Tensor, n: int, each: int | OneElement, rounds: int) -> Launch:
    """`each`: elements of a thread."""
    import torch

    out_N = torch.empty(n, dtype=like_1.dtype, device=like_1.device)
    macros = defines(like_1, rounds)
    size: Index = ctypes.c_longlong(n)
    if isinstance(each, OneElement):
        macros |= each.defines
        blocks, threads, size = each.blocks, each.threads, each.last
    else:
        blocks, threads = -(-n // (each * THREADS)), THREADS
    kernel, seeds = nvrtc.kernel(SOURCE, name, macros), itertools.count(1)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, out_N.data_ptr(), size, ctypes.c_ulonglong(next(seeds)))
        return out_N

    return launch
