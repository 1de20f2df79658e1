"""Compile cases for a GPU that need not be there, and write the plug-in with their kernels. For a process without a GPU.

    python -m kernelviz.measure.precompiled < REQUEST > ANSWER

Request and answer are one JSON object each.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

from kernelviz.core.errors import BadField
from kernelviz.core.run import Device
from kernelviz.machine_code.occupancy import LIMITS, REGISTERS_PER_SM, WARP_THREADS
from kernelviz.measure.compile_ahead.case_compiler import CaseCompiler
from kernelviz.measure.compile_ahead.device_facts import device_facts
from kernelviz.measure.compile_ahead.messages import DeviceFacts
from kernelviz.measure.precompiled.messages import Answer, Request
from kernelviz.measure.precompiled.plugin import plugin_text
from kernelviz.measure.precompiled.triton_kernels import collected
from kernelviz.ops import op_named

PTXAS = "TRITON_PTXAS_PATH"
"""Triton's own variable for another ptxas."""


def answer(request: Request) -> Answer:
    """Errors: BadField for a GPU whose limits are not known."""
    op = op_named(request.op)
    facts = facts_of(request.device)
    compiler = CaseCompiler(facts)
    failures: dict[str, str] = {}
    with collected() as kernels:
        for problem in request.problems:
            for name in request.variants:
                variant = op.variant_named(name)
                if variant.refuses(problem) is not None:
                    continue
                bound = variant.of_backward() if request.direction == "backward" else variant
                try:
                    compiler.compile(op.of(problem), bound, problem)
                except Exception as error:
                    failures[f"{problem.key}, {name}"] = f"{type(error).__name__}: {error}"[:500]
    name = compiler_name()
    text = plugin_text(
        op,
        [op.variant_named(name) for name in request.variants],
        list(kernels.values()),
        arch=f"sm_{facts.arch}",
        direction=request.direction,
        compiler=name,
    )
    return Answer(text=text, kernels=len(kernels), compiler=name, failures=failures)


def facts_of(device: Device) -> DeviceFacts:
    """What variants ask of a GPU before they compile, from what a run says of it. Errors: BadField."""
    major, minor = device.compute_capability or (0, 0)
    limits = LIMITS.get(10 * major + minor)
    if limits is None or not device.multiprocessors:
        raise BadField(
            "device",
            device.name,
            "its compute capability or number of multiprocessors is not known; name a run of a GPU",
        )
    return device_facts(
        0,
        10 * major + minor,
        {
            "name": device.name,
            "major": major,
            "minor": minor,
            "multi_processor_count": device.multiprocessors,
            "total_memory": device.memory_bytes or 0,
            "L2_cache_size": device.last_level_cache_bytes or 0,
            "warp_size": WARP_THREADS,
            "regs_per_multiprocessor": REGISTERS_PER_SM,
            "max_threads_per_multi_processor": limits.threads,
            "shared_memory_per_block_optin": limits.shared_bytes_per_block,
            "shared_memory_per_multiprocessor": limits.shared_bytes,
        },
    )


def compiler_name() -> str:
    """Triton with its version, and that of ptxas if another one is named by TRITON_PTXAS_PATH. Errors: BadField."""
    import triton

    package: Any = triton
    name = f"Triton {package.__version__}"
    path = os.environ.get(PTXAS)
    if not path:
        return name
    try:
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    except OSError as error:
        raise BadField("ptxas", path, f"it cannot be started: {error.strerror}") from None
    version = re.search(r"V(\d+(?:\.\d+)+)", printed)
    if version is None:
        raise BadField("ptxas", path, "it does not say its version; name a ptxas of the CUDA toolkit")
    return f"{name}, ptxas {version[1]}"
