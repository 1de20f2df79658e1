"""Run in a process of its own, with ``interpret`` or ``compile``: configurations of the Triton and Gluon variants of `matmul`.

Prints one JSON line a configuration: {"case", "worst_of_bound"} of Triton's interpreter (TRITON_INTERPRET=1), or
{"case", "shared_bytes", "threads", "spills", "roles"} of the machine code for sm_90, where `roles` are the registers that
setmaxnreg gives.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from checking import bind, checked, inputs_of

from kernelviz.ops import Op, Variant, op_named

INTERPRETED: tuple[tuple[str, dict[str, int]], ...] = (
    ("triton_tuned", {"tile_m": 32, "tile_n": 64, "tile_k_bytes": 64, "warps": 4, "group": 4}),
    ("triton_persistent", {"tile_m": 16, "tile_n": 32, "tile_k_bytes": 64, "flatten": 1, "group": 4}),
    ("triton_persistent", {"tile_m": 64, "tile_n": 32, "flatten": 0, "group": 16}),
    *(
        ("triton_descriptors", {"tile_m": 64, "tile_n": 64, "parts": parts, "flatten": flatten})
        for parts in (1, 2, 4)
        for flatten in (0, 1)
    ),
    ("triton_warp_specialised", {"tile_n": 128}),
)
COMPILED: tuple[tuple[str, dict[str, int]], ...] = (
    ("triton_tuned", {"tile_n": 256, "stages": 4}),
    ("triton_persistent", {"tile_n": 256, "flatten": 1}),
    ("triton_descriptors", {}),
    ("triton_descriptors", {"flatten": 0}),
    ("triton_descriptors", {"stages": 4, "parts": 2, "flatten": 0}),
    ("triton_descriptors", {"stages": 4, "parts": 4}),
    ("triton_descriptors", {"tile_m": 256, "tile_n": 128, "stages": 4, "parts": 2, "flatten": 0}),
    ("triton_warp_specialised", {}),
    ("triton_warp_specialised", {"tile_m": 256, "tile_n": 128}),
    ("gluon_warp_specialised", {}),
    ("gluon_warp_specialised", {"parts": 2, "buffers": 1}),
    ("gluon_warp_specialised", {"stages": 3, "parts": 1, "buffers": 1, "lead": 1}),
    ("gluon_warp_specialised", {"lead": 2, "group": 16}),
    ("gluon_warp_specialised", {"tile_m": 256, "tile_n": 128, "parts": 4, "lead": 1}),
    ("gluon_warp_specialised", {"tile_k": 32, "stages": 8, "lead": 2}),
)


LAYOUTS_INTERPRETED = tuple(
    (op, {"tile_m": 64, "tile_n": 128, "parts": parts, "flatten": flatten})
    for op in ("matmul_nt", "transpose_matmul", "matmul_tt")
    for parts, flatten in ((1, 1), (2, 0), (4, 1))
)
"""Of `triton_descriptors` of the ops with transposed factors."""
LAYOUTS_COMPILED = tuple(
    (op, configuration)
    for op in ("matmul_nt", "transpose_matmul", "matmul_tt")
    for configuration in (
        {},
        {"stages": 4, "parts": 2, "flatten": 0},
        {"stages": 4, "parts": 4},
        {"tile_m": 256, "tile_n": 128, "stages": 4, "parts": 2},
    )
)


def name_of(variant: str, configuration: dict[str, int]) -> str:
    return op_named("matmul").variant_named(variant).named(configuration).name


def chosen_of(kind: str) -> list[tuple[Op, Variant]]:
    """The configurations to be tried, each with its op. `kind`: ``interpret`` or ``compile``."""
    own, layouts = (INTERPRETED, LAYOUTS_INTERPRETED) if kind == "interpret" else (COMPILED, LAYOUTS_COMPILED)
    named = [("matmul", variant, c) for variant, c in own] + [(op, "triton_descriptors", c) for op, c in layouts]
    return [(op_named(op), op_named(op).variant_named(variant).configured(c)) for op, variant, c in named]


def interpret() -> None:
    for op, chosen in chosen_of("interpret"):
        for sizes in ({"m": 129, "n": 264, "k": 136}, {"m": 65, "n": 8, "k": 8}):
            if op.name in ("transpose_matmul", "matmul_tt"):
                sizes = {**sizes, "m": sizes["m"] + 7}  # rows of A that TMA can address
            accuracy = checked(op, chosen, op.problem(sizes, "fp16"))
            assert accuracy.passed, accuracy.reasons
        print_line(case=name_of(chosen.name, dict(chosen.configuration or {})), worst_of_bound=accuracy.worst_of_bound)


def compile_all() -> None:
    import triton

    from kernelviz.machine_code.facts import facts_of
    from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver

    loaded: list[tuple[bytes, int]] = []
    properties = {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}
    driver = CompileOnlyDriver(90, properties, lambda name, cubin, shared_bytes: loaded.append((cubin, shared_bytes)))
    triton.runtime.driver.set_active(driver)
    for op, chosen in chosen_of("compile"):
        problem = op.problem(
            {"m": 256, "n": 512, "k": 512}, "bf16" if "bf16" in (chosen.dtypes or op.dtypes) else "fp16"
        )
        bind(chosen, problem, inputs_of(op, problem))()
        cubin, shared_bytes = loaded.pop()
        (kernel,) = facts_of(cubin)
        print_line(
            case=name_of(chosen.name, dict(chosen.configuration or {})),
            shared_bytes=shared_bytes,
            threads=kernel.required_threads,
            spills=kernel.spill_loads + kernel.spill_stores,
            roles=sorted({role.registers or 0 for role in kernel.roles}),
        )


def print_line(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")


if __name__ == "__main__":
    {"interpret": interpret, "compile": compile_all}[sys.argv[1]]()
