"""What the driver says of a cubin that it has loaded."""

from __future__ import annotations

from typing import NamedTuple


class Resources(NamedTuple):
    """Registers and bytes of local memory of a thread, and bytes of static shared memory of a block."""

    registers: int
    local_bytes: int
    static_shared_bytes: int


def resources_by_driver(cubin: bytes, kernel: str) -> Resources:
    """Of a kernel of the cubin, in the current context. Raises RuntimeError where the driver refuses the cubin or the name."""
    from cuda.bindings import driver

    def checked(answer: tuple[driver.CUresult, *tuple[object, ...]]) -> object:
        error, *rest = answer
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{kernel}: {error.name}")
        return rest[0] if rest else None

    module = checked(driver.cuModuleLoadData(cubin))
    try:
        function = checked(driver.cuModuleGetFunction(module, kernel.encode()))
        names = driver.CUfunction_attribute
        asked = (
            names.CU_FUNC_ATTRIBUTE_NUM_REGS,
            names.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            names.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        )
        return Resources(*(int(str(checked(driver.cuFuncGetAttribute(name, function)))) for name in asked))
    finally:
        checked(driver.cuModuleUnload(module))
