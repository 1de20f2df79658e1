"""Run in a process of its own, with an architecture as argument: every Triton variant "called" on a GPU that is not there.

Triton's driver is replaced through its own seam (`driver.set_active`) by one that names the target, compiles to a cubin as
always, checks shared memory against the target's limit, and launches nothing. So what is compiled is what the product
would compile: the same bind, the same configuration, the same specialisation on sizes and strides.
Prints one JSON line a case: {"case", "ok", "message", "kernels"}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import triton
from cases import compile_problems, variants
from checking import bind, inputs_of
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": shared memory a thread block may have.
SHARED_BYTES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "sm_100": 227 * 1024}
compiled: list[str] = []


class Nothing:
    """What a driver gives for a loaded kernel: properties, and a launcher that does nothing."""

    def __init__(self, arch: str) -> None:
        self.arch = arch

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": SHARED_BYTES[self.arch], "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        compiled.append(f"{name} {len(kernel)} B cubin, {shared} B shared")
        return 1, 1, 0, 0, 1024


class CompileOnlyDriver(DriverBase):
    def __init__(self, arch: str) -> None:
        super().__init__()
        self.target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
        self.utils = Nothing(arch)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError("nothing runs here")

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        return lambda *arguments: None


def main(arch: str) -> None:
    triton.runtime.driver.set_active(CompileOnlyDriver(arch))
    for op, variant in variants("triton"):
        if arch not in variant.targets:
            continue
        for problem in compile_problems(op, variant):
            compiled.clear()
            line: dict[str, object] = {"case": f"{variant.name} | {problem.key}", "ok": True, "message": ""}
            try:
                bind(variant, problem, inputs_of(op, problem))()
                line["kernels"] = list(compiled)
            except Exception as error:  # one kernel that does not compile must not hide the others
                line |= {"ok": False, "message": f"{type(error).__name__}: {error}"[:2000]}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
