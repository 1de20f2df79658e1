"""Resources of a kernel: by its cubin, and by the driver that has loaded it. Imports no torch."""

from __future__ import annotations

from typing import NamedTuple

from kernelviz.core.machine_code import RESERVED_SHARED_BYTES
from kernelviz.machine_code.cubin import read_cubin


class Resources(NamedTuple):
    """Registers and bytes of local memory of a thread, and bytes of static shared memory of a block; and the functions that the
    driver adds when it loads the cubin, which may need more registers."""

    registers: int
    local_bytes: int
    static_shared_bytes: int
    external_functions: tuple[str, ...] = ()


def resources_by_cubin(cubin: bytes, kernel: str) -> Resources:
    """As read from the cubin, without what the system reserves in its static shared memory. Raises StopIteration for an unknown
    name."""
    file = read_cubin(cubin)
    one = next(one for one in file.kernels if one.name == kernel)
    assert one.registers is not None
    reserved = RESERVED_SHARED_BYTES if one.static_shared_bytes and file.architecture >= "sm_90" else 0
    return Resources(
        one.registers,
        max(one.stack_bytes or 0, one.local_bytes),
        max(0, one.static_shared_bytes - reserved),
        one.external_functions,
    )


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
        registers, local_bytes, shared_bytes = (
            int(str(checked(driver.cuFuncGetAttribute(name, function)))) for name in asked
        )
        return Resources(registers, local_bytes, shared_bytes)
    finally:
        checked(driver.cuModuleUnload(module))
