"""Run in a process of its own: bind cases to ordinary tensors and call them under drivers that only compile, as a worker would.

Standard input: a list of [op, variant, sizes, dtype] as JSON. Prints, for each, how many kernels it used and how many files were
written into the caches, whose folders are the arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import triton

from kernelviz.measure.compile_ahead.nvrtc_driver import CompileOnlyNvrtc
from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver
from kernelviz.measure.session.inputs import allocate
from kernelviz.ops import catalogue, refresh
from kernelviz.ops.kernels import nvrtc

kernels: list[str] = []


def note(kernel: str, cubin: bytes, shared_bytes: int) -> None:
    kernels.append(kernel)


def called(op_name: str, name: str, sizes: dict[str, int], dtype: str) -> None:
    op = catalogue()[op_name]
    problem = op.problem(sizes, dtype)
    variant = op.variant_named(name)
    launch = variant.bind(*allocate(op.inputs, problem, torch.device("cpu")), **variant.keywords(problem))
    refresh(launch)
    launch()


def files() -> set[Path]:
    return {path for folder in sys.argv[1:] for path in Path(folder).rglob("*") if path.is_file()}


if __name__ == "__main__":
    properties = {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32}
    triton.runtime.driver.set_active(CompileOnlyDriver(90, properties, note))
    nvrtc.active = CompileOnlyNvrtc("sm_90", 132, note)
    answer = []
    for case in json.loads(sys.stdin.read()):
        kernels.clear()
        before = files()
        called(*case)
        answer.append([len(kernels), len(files() - before)])
    sys.stdout.write(json.dumps(answer))
