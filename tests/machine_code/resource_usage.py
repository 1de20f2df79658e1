"""What cuobjdump says about the resources of kernels, to compare `facts_of` with."""

from __future__ import annotations

import re

from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.cubin import Kernel
from kernelviz.machine_code.tools import run_tool

FUNCTION = re.compile(r"Function (\S+):\n\s+(.*)")
VALUE = re.compile(r"([A-Z]+(?:\[\d+\])?):(\d+)")


def resource_usage(cubin: bytes) -> dict[str, dict[str, int]]:
    """The values of ``cuobjdump -res-usage`` by kernel, as in {"REG": 26, "CONSTANT[0]": 392}."""
    text = run_tool("cuobjdump", ("-res-usage",), cubin)
    return {name: {key: int(value) for key, value in VALUE.findall(line)} for name, line in FUNCTION.findall(text)}


def as_cuobjdump_says(facts: KernelFacts | Kernel) -> dict[str, int]:
    """The same values from the facts; textures, surfaces and samplers are not read."""
    constants = {f"CONSTANT[{bank}]": size for bank, size in facts.constant_bytes.items()}
    return {
        "REG": facts.registers or 0,
        "STACK": facts.stack_bytes or 0,
        "SHARED": facts.static_shared_bytes,
        "LOCAL": facts.local_bytes,
        **constants,
        "TEXTURE": 0,
        "SURFACE": 0,
        "SAMPLER": 0,
    }
