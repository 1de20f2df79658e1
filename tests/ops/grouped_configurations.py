"""Run in a process of its own, with ``interpret`` or ``compile``: configurations of the Triton variants of `grouped_matmul`.

Prints one JSON line a configuration: of Triton's interpreter (TRITON_INTERPRET=1) {"case", "worst_of_bound", "rows_of_others"},
where the latter counts rows after the last group that were written, or of the machine code for sm_90 {"case", "shared_bytes",
"spills", "techniques"}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from cases import odd_sizes
from checking import bind, checked, inputs_of

from kernelviz.core.errors import BadField
from kernelviz.ops import Variant, op_named
from kernelviz.ops.kernels.groups import group_ends

OP = op_named("grouped_matmul")
INTERPRETED: tuple[tuple[str, dict[str, int]], ...] = (
    ("triton_tiles", {}),
    ("triton_persistent", {}),
    ("triton_persistent", {"tile_m": 16, "tile_n": 64, "tile_k_bytes": 64, "band": 2}),
    ("triton_descriptors", {}),
    ("triton_descriptors", {"tile_m": 64, "tile_n": 128, "parts": 2, "band": 4}),
)
COMPILED: tuple[tuple[str, dict[str, int]], ...] = (
    ("triton_persistent", {}),
    ("triton_persistent", {"tile_n": 256, "stages": 4}),
    ("triton_descriptors", {}),
    ("triton_descriptors", {"stages": 4, "parts": 2}),
    ("triton_descriptors", {"tile_n": 128, "stages": 4}),
    ("triton_descriptors", {"tile_m": 256, "tile_n": 128}),
)


def chosen(name: str, configuration: dict[str, int]) -> Variant:
    variant = OP.variant_named(name)
    return variant.named(configuration) if configuration else variant


def interpret() -> None:
    for name, configuration in INTERPRETED:
        variant, worst = chosen(name, configuration), 0.0
        # test_interpreter.py asks for the last two sizes of the defaults.
        for sizes in odd_sizes(OP) if configuration else odd_sizes(OP)[:-2]:
            try:
                accuracy = checked(OP, variant, OP.problem(sizes, "fp16"))
            except BadField:
                continue  # a size that TMA cannot address
            assert accuracy.passed, (variant.name, sizes, accuracy.reasons)
            worst = max(worst, accuracy.worst_of_bound or 0.0)
        print_line(case=variant.name, worst_of_bound=worst, rows_of_others=_rows_of_others(variant))


def _rows_of_others(variant: Variant) -> int:
    """How many rows after the last group are written where the groups end 30 rows before the end of x."""
    sizes = {"g": 4, "m": 50, "n": 72, "k": 40, "s": 2}
    x, w, offsets = inputs_of(OP, OP.problem(sizes, "fp16"))
    offsets.copy_(torch.tensor(group_ends(4, 50, 2), dtype=torch.int32) - torch.tensor([0, 0, 30, 30]))
    launch = variant.bind(x, w, offsets, **variant.default | dict(variant.configuration or {}))
    y = launch()
    assert isinstance(y, torch.Tensor)
    y.fill_(float("nan"))
    launch()
    assert not y[: offsets[-1]].isnan().any()
    return int((~y[offsets[-1] :].isnan()).any(1).sum())


def compile_all() -> None:
    import triton

    from kernelviz.machine_code.facts import facts_of
    from kernelviz.machine_code.techniques import techniques_of
    from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver

    loaded: list[tuple[bytes, int]] = []
    properties = {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}
    driver = CompileOnlyDriver(90, properties, lambda name, cubin, shared_bytes: loaded.append((cubin, shared_bytes)))
    triton.runtime.driver.set_active(driver)
    problem = OP.problem({"g": 8, "m": 256, "n": 512, "k": 512, "s": 2}, "bf16")
    for name, configuration in COMPILED:
        variant = chosen(name, configuration)
        bind(variant, problem, inputs_of(OP, problem))()
        cubin, shared_bytes = loaded.pop()
        (kernel,) = facts_of(cubin)
        print_line(
            case=variant.name,
            shared_bytes=shared_bytes,
            spills=kernel.spill_loads + kernel.spill_stores,
            techniques=sorted(techniques_of(kernel)),
        )


def print_line(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")


if __name__ == "__main__":
    {"interpret": interpret, "compile": compile_all}[sys.argv[1]]()
