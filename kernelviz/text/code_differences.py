"""Differences between the machine code of two kernels in text."""

from collections.abc import Iterable

from kernelviz.core import CompiledCode
from kernelviz.core.machine_code import (
    AccessType,
    CopyType,
    FactDifference,
    FactKind,
    FactValue,
    UnknownCode,
)
from kernelviz.text.machine_code import BARRIER_NAMES, CLASS_NAMES, COPY_NAMES, TECHNIQUE_NAMES
from kernelviz.text.text import Text, join

_FACT_NAMES: dict[FactKind, str] = {
    "architecture": "architecture",
    "registers": "registers per thread",
    "stack_bytes": "bytes of stack",
    "local_stores": "stores to local memory",
    "local_loads": "loads from local memory",
    "static_shared_bytes": "bytes of static shared memory",
    "warp_roles": "warp roles",
    "has_loop": "loop",
    "instructions": "instructions",
    "stall_cycles": "cycles to issue",
}


def describe_fact_difference(difference: FactDifference) -> Text:
    """One difference with both values.

    >>> loads = AccessType(space="global", kind="load", width_bytes=16)
    >>> print(describe_fact_difference(FactDifference(region="main_loop", role=1, fact="access", detail=loads, a=0, b=4)))
    global loads of 16 bytes in an iteration of the main loop: 0 → 4
    >>> print(describe_fact_difference(FactDifference(region="kernel", fact="registers", a=32, b=None)))
    registers per thread: 32 → unknown
    """
    place = format_place(difference)
    where = f" in {place}" if difference.region != "kernel" and place else ""
    return Text(f"{format_fact(difference)}{where}: {format_value(difference.a)} → {format_value(difference.b)}")


def describe_compilers(a: CompiledCode, b: CompiledCode) -> Text:
    """Two kernels with the compilers that made them.

    >>> a, b = (CompiledCode(kernel="k", compiler="triton", version=version, arch="sm_90") for version in ("3.6.0", "3.7.1"))
    >>> print(describe_compilers(a, b))
    k (triton 3.6.0) → k (triton 3.7.1)
    """
    return join(
        " → ", (Text(f"{code.kernel} ({code.compiler} {code.version or 'of unknown version'})") for code in (a, b))
    )


UNKNOWN_CODE: dict[UnknownCode, str] = {
    "not_captured": "a side has no machine code: it came compiled with a library, or was measured before code was captured",
    "not_here": "the machine code is not on this machine; on the one that measured the run, write it with kernelviz export RUN "
    "--with-code -o run.json, and import that file here",
    "other_kernels": "the two sides launch kernels that do not correspond",
    "no_tool": "nvdisasm is missing or cannot read a file; install it with `pip install nvidia-cuda-nvdisasm`",
}
"""Why the machine code of two cases cannot be compared."""


def format_fact(difference: FactDifference) -> str:
    """What differs, without its place and values."""
    detail = difference.detail
    if isinstance(detail, AccessType):
        return f"{detail.space} {detail.kind}s of {detail.width_bytes} bytes"
    if isinstance(detail, CopyType):
        width = f" of {detail.width_bytes} bytes" if detail.width_bytes else ""
        return f"{COPY_NAMES[detail.kind]}{width}{' (multicast)' if detail.multicast else ''}"
    match difference.fact:
        case "technique":
            return _named(detail, TECHNIQUE_NAMES.items())
        case "barrier":
            return _named(detail, BARRIER_NAMES.items())
        case "instruction_class":
            return f"{_named(detail, CLASS_NAMES.items())} instructions"
        case "tensor_instruction" | "special_function":
            return f"{detail} instructions"
        case fact:
            return _FACT_NAMES[fact]


def _named(code: str, names: Iterable[tuple[str, str]]) -> str:
    return dict(names).get(code, code)


def format_place(difference: FactDifference) -> str:
    """The part of the code that the fact is about; empty for registers and loops, which a warp role has only once.

    >>> format_place(FactDifference(region="main_loop", role=2, fact="instructions", a=1, b=2))
    'an iteration of the main loop of warp role 2'
    """
    role = f"warp role {difference.role}" if difference.role is not None and difference.role > 1 else ""
    if difference.region == "kernel":
        return "the whole kernel"
    if difference.fact in ("has_loop", "registers"):
        return role
    place = "an iteration of the main loop" if difference.region == "main_loop" else "the whole code"
    return f"{place} of {role}" if role else place


def format_value(value: FactValue) -> str:
    """A value of a fact.

    >>> [format_value(value) for value in (True, None, 1024, "sm_90")]
    ['yes', 'unknown', '1,024', 'sm_90']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else value
