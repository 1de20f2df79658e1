"""Run in a process of its own: write a plug-in with kernels that were compiled otherwise, and use it. Prints JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from checking import bind, inputs_of

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Direction, Problem
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver
from kernelviz.measure.precompiled.kernels import decoded, encoded
from kernelviz.measure.precompiled.plugin import name_of, plugin_text
from kernelviz.measure.precompiled.triton_kernels import collected
from kernelviz.ops import Op, Variant, op_named, with_plugins

COMPILER = "Triton 0.0.0"
OP = "rmsnorm"
loaded: list[bytes] = []
"""The cubins that Triton's driver was given since the list was cleared."""


def driver() -> CompileOnlyDriver:
    properties = {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}
    return CompileOnlyDriver(90, properties, lambda name, cubin, shared_bytes: loaded.append(cubin))


def cubins_of(op: Op, variant: Variant, problem: Problem) -> list[bytes]:
    loaded.clear()
    bind(variant, problem, inputs_of(op, problem))()
    return list(loaded)


def compiled_otherwise(op: Op, variants: list[Variant], problem: Problem) -> Any:
    """The kernels without line information, which is another cubin with the same code."""
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    try:
        with collected() as kernels:
            for variant in variants:
                cubins_of(op, variant, problem)
    finally:
        del os.environ["TRITON_DISABLE_LINE_INFO"]
    return kernels


def answer(direction: Direction, name: str, folder: Path) -> dict[str, Any]:
    op = op_named(OP)
    problem = op.problem({"m": 4, "n": 256}, "fp32", direction=direction)
    variant = op.variant_named(name)
    # The functions keep what they compiled, so the other code is compiled by functions that have compiled nothing yet.
    kernels = compiled_otherwise(op, [variant], problem)
    for function in {id(f): f for f in jitted()}.values():
        function.device_caches.clear()
    file = folder / f"{direction}.py"
    file.write_text(
        plugin_text(op, [variant], list(kernels.values()), arch="sm_90", direction=direction, compiler=COMPILER)
    )
    extended = with_plugins([str(file)])[OP]
    other = extended.variant_named(name_of(name, COMPILER))
    native = cubins_of(op, variant, problem)
    replaced = cubins_of(extended, other, problem)
    again = cubins_of(extended, variant, problem)
    wanted = [kernel.cubin for kernel in kernels.values()]
    refused = ""
    try:
        cubins_of(extended, other, op.problem({"m": 4, "n": 8192}, "fp32", direction=direction))
    except BadField as error:
        refused = str(error)
    return {
        "round trip": decoded(encoded(list(kernels.values()))) == kernels,
        "native are not the file's": bool(native) and not set(native) & set(wanted),
        "all of the file's were loaded": sorted(set(replaced)) == sorted(set(wanted)),
        "same code": [k.code for c in native for k in read_cubin(c).kernels]
        == [k.code for c in replaced for k in read_cubin(c).kernels],
        "the native function keeps its own": again == [],
        "refused": refused,
        "summary": other.summary,
        "digests differ": other.source_digest() != variant.source_digest(),
    }


def jitted() -> list[Any]:
    from triton.runtime.jit import JITFunction

    modules = [module for name, module in sys.modules.items() if name.startswith("kernelviz.ops.")]
    return [value for module in modules for value in vars(module).values() if isinstance(value, JITFunction)]


if __name__ == "__main__":
    triton.runtime.driver.set_active(driver())
    with tempfile.TemporaryDirectory() as folder:
        answers = {
            "forward": answer("forward", "triton_block_per_row", Path(folder)),
            "backward": answer("backward", "triton_persistent", Path(folder)),
        }
    sys.stdout.write(json.dumps(answers))
