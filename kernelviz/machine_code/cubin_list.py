"""Facts of many cubins at once, for a process of its own: a cubin may come from somebody else, and reading it takes time."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from kernelviz.core.code_facts import CubinFacts
from kernelviz.core.errors import KernelvizError
from kernelviz.machine_code.cubin import NotACubin, read_cubin
from kernelviz.machine_code.facts import facts_of, facts_of_many
from kernelviz.machine_code.tools import ToolUnavailable


def facts_of_each(cubins: Sequence[bytes]) -> list[CubinFacts]:
    """The facts of each cubin, or why it has none: one that cannot be read does not affect the others."""
    readable = [cubin for cubin in cubins if _is_cubin(cubin)]
    try:
        known = dict(zip(readable, facts_of_many(readable), strict=True))
        return [CubinFacts(kernels=known[c]) if c in known else _facts_of_one(c) for c in cubins]
    except KernelvizError:
        return [_facts_of_one(cubin) for cubin in cubins]


def from_standard_input(arguments: Sequence[str]) -> bytes:
    """Read a list of cubins (MessagePack) from the standard input; their facts, in order (MessagePack)."""
    return msgspec.msgpack.encode(facts_of_each(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])))


def _is_cubin(content: bytes) -> bool:
    try:
        read_cubin(content)
    except NotACubin:
        return False
    return True


def _facts_of_one(cubin: bytes) -> CubinFacts:
    try:
        return CubinFacts(kernels=facts_of(cubin))
    except ToolUnavailable as error:
        return CubinFacts(reason="no_tool", message=str(error))
    except KernelvizError as error:
        return CubinFacts(reason="unreadable", message=str(error))
