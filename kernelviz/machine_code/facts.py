"""Facts about every kernel of a cubin: resources, instruction mix, warp roles and main loops."""

from __future__ import annotations

from collections.abc import Sequence

from kernelviz.core.machine_code import Instruction, KernelFacts
from kernelviz.machine_code.control_flow import control_flow
from kernelviz.machine_code.counting import count
from kernelviz.machine_code.cubin import Kernel, read_cubin
from kernelviz.machine_code.disassembly import instructions_of, instructions_of_many
from kernelviz.machine_code.load_passes import load_passes
from kernelviz.machine_code.main_loop import warp_roles


def facts_of(cubin: bytes) -> tuple[KernelFacts, ...]:
    """Facts about the kernels of a cubin, in the order of its symbols.

    Raises NotACubin for other bytes, ToolUnavailable without nvdisasm, and ToolFailed if no installed nvdisasm can read the file.
    """
    file = read_cubin(cubin)
    instructions = instructions_of(cubin, file)
    return tuple(facts_of_kernel(kernel, file.architecture, instructions[kernel.name]) for kernel in file.kernels)


def facts_of_many(cubins: Sequence[bytes]) -> list[tuple[KernelFacts, ...]]:
    """`facts_of` for many cubins: 60 kernels take 2 s instead of 20. Raises as `facts_of`."""
    files = [read_cubin(cubin) for cubin in cubins]
    return [
        tuple(facts_of_kernel(kernel, file.architecture, instructions[kernel.name]) for kernel in file.kernels)
        for file, instructions in zip(files, instructions_of_many(files), strict=True)
    ]


def facts_of_kernel(kernel: Kernel, architecture: str, instructions: Sequence[Instruction]) -> KernelFacts:
    """Facts about a kernel whose instructions were disassembled (`disassembly.instructions_of`)."""
    flow = control_flow(instructions, kernel.branch_targets, [f.offset for f in kernel.functions])
    return KernelFacts(
        name=kernel.name,
        architecture=architecture,
        registers=kernel.registers,
        stack_bytes=kernel.stack_bytes,
        local_bytes=kernel.local_bytes,
        spill_stores=sum(i.mnemonic == "STL" for i in instructions),
        spill_loads=sum(i.mnemonic == "LDL" for i in instructions),
        static_shared_bytes=kernel.static_shared_bytes,
        constant_bytes=kernel.constant_bytes,
        parameter_bytes=kernel.parameter_bytes,
        max_threads=kernel.max_threads,
        required_threads=kernel.required_threads,
        max_registers=kernel.max_registers,
        cluster=kernel.cluster,
        code_bytes=len(kernel.code),
        indirect_branches_unknown=flow.indirect_branches_unknown,
        external_functions=kernel.external_functions,
        load_passes=load_passes(flow, instructions),
        whole=count(instructions),
        roles=warp_roles(flow, instructions),
    )
