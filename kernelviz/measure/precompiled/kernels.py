"""What a plug-in file holds of one kernel, and how it is written as text."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence

import msgspec

from kernelviz.core.problem import Struct

_COLUMNS = 120


class PrecompiledKernel(Struct, frozen=True, kw_only=True):
    """One compiled kernel of Triton.

    `specialisation`: digest of what was compiled (see `specialisation`). `version`: of Triton. `arch`: the compute capability as
    one number (90). `metadata`: the facts of Triton
    that its launcher needs. `ptx` and `cubin`: what the compiler made.
    """

    specialisation: str
    kernel: str
    version: str
    arch: int
    metadata: dict[str, object]
    ptx: str
    cubin: bytes


def encoded(kernels: Sequence[PrecompiledKernel]) -> str:
    """The kernels as text: JSON, compressed, base 64, in lines. `decoded` reads it."""
    text = base64.b85encode(zlib.compress(msgspec.json.encode(kernels), 9)).decode()
    return "\n".join(text[at : at + _COLUMNS] for at in range(0, len(text), _COLUMNS))


def decoded(text: str) -> Mapping[str, PrecompiledKernel]:
    """The kernels by their specialisation. Errors: zlib.error, msgspec.ValidationError for a text that was changed.

    >>> decoded(encoded([]))
    {}
    """
    content = zlib.decompress(base64.b85decode("".join(text.split())))
    return {one.specialisation: one for one in msgspec.json.decode(content, type=tuple[PrecompiledKernel, ...])}
