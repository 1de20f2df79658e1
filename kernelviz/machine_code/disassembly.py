"""Disassemble a cubin: as text for people, and as typed instructions.

`nvdisasm -json` names opcode, predicate and operands of each instruction in order. The 128 bits of each are those in the cubin,
which `nvdisasm -hex` prints, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core.machine_code import Instruction
from kernelviz.machine_code.control_codes import control_codes
from kernelviz.machine_code.cubin import Cubin, Kernel, NotACubin, read_cubin
from kernelviz.machine_code.tools import run_tool

INSTRUCTION_BYTES = 16
"""From Volta on."""
_WITH_TARGET = frozenset({"BRA", "JMP", "CALL", "BSSY", "WARPSYNC"})
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class _Listed:
    """An instruction as nvdisasm lists it."""

    opcode: str
    operands: str
    predicate: str | None


def disassembly(cubin: bytes) -> str:
    """The SASS of every kernel of a cubin as text, with labels instead of addresses as targets of branches.

    Raises NotACubin, ToolUnavailable and ToolFailed.
    """
    read_cubin(cubin)
    return run_tool("nvdisasm", ("-c",), cubin)


def instructions_of(content: bytes, cubin: Cubin) -> dict[str, tuple[Instruction, ...]]:
    """The instructions of each kernel's section, by the name of the kernel, in the order of addresses: those of the kernel
    itself, of the functions that it calls, and the padding.

    Raises NotACubin where nvdisasm and the file disagree, ToolUnavailable and ToolFailed.
    """
    listed = _listed_functions(run_tool("nvdisasm", ("-json",), content))
    result = {}
    for kernel in cubin.kernels:
        parts = [(0, kernel.name), *((f.offset, f.name) for f in kernel.functions)]
        instructions: list[Instruction] = []
        for offset, name in sorted(parts):
            if (name, offset) not in listed:
                raise NotACubin(f"nvdisasm lists no function {name} at {offset:#x}")
            for i, entry in enumerate(listed[name, offset]):
                instructions.append(_instruction(kernel, offset + i * INSTRUCTION_BYTES, entry, cubin.architecture))
        addresses = [i.address for i in instructions]
        if addresses != list(range(0, len(kernel.code), INSTRUCTION_BYTES)):
            raise NotACubin(
                f"nvdisasm lists {len(addresses)} instructions of {kernel.name}, whose code has {len(kernel.code)} bytes"
            )
        result[kernel.name] = tuple(instructions)
    return result


def instructions_of_many(cubins: Sequence[Cubin]) -> list[dict[str, tuple[Instruction, ...]]]:
    """`instructions_of` for many cubins, with one run of nvdisasm for each architecture, which takes 0.3 s to start.

    The code of all kernels is disassembled as one piece, so calls name addresses instead of functions. Raises as
    `instructions_of`.
    """
    result: list[dict[str, tuple[Instruction, ...]]] = [{} for _ in cubins]
    for architecture in sorted({c.architecture for c in cubins}):
        kernels = [(n, k) for n, c in enumerate(cubins) if c.architecture == architecture for k in c.kernels]
        if not kernels:
            continue
        option = architecture.replace("sm_", "SM")
        text = run_tool("nvdisasm", ("-b", option, "-json"), b"".join(k.code for _, k in kernels))
        (listed,) = _listed_functions(text).values()
        start = 0
        for n, kernel in kernels:
            end = start + len(kernel.code) // INSTRUCTION_BYTES
            if len(listed[start:end]) != end - start:
                raise NotACubin(f"nvdisasm lists {len(listed)} instructions, which is less than the code has")
            result[n][kernel.name] = tuple(
                _rebased(_instruction(kernel, i * INSTRUCTION_BYTES, entry, architecture), start * INSTRUCTION_BYTES)
                for i, entry in enumerate(listed[start:end])
            )
            start = end
    return result


def _rebased(instruction: Instruction, start: int) -> Instruction:
    """An instruction whose target counts from the start of its kernel instead of from the start of all code."""
    operands = instruction.operands
    if instruction.mnemonic not in _WITH_TARGET or not operands or not _ADDRESS.fullmatch(operands[-1]):
        return instruction
    target = int(operands[-1], 16) - start
    return instruction.with_operands((*operands[:-1], hex(target)))


def _listed_functions(text: str) -> dict[tuple[str, int], list[_Listed]]:
    """The instructions of each function, by its name and its offset in its section."""
    try:
        _, functions = json.loads(text)
        return {
            (function["function-name"], function["start"]): [
                _Listed(entry["opcode"], entry.get("operands", ""), entry.get("predicate"))
                for entry in function["sass-instructions"]
            ]
            for function in functions
        }
    except (ValueError, KeyError, TypeError) as error:
        raise NotACubin(f"nvdisasm printed what is not understood ({type(error).__name__}: {error})") from error


def _instruction(kernel: Kernel, address: int, listed: _Listed, architecture: str) -> Instruction:
    encoding = int.from_bytes(kernel.code[address : address + INSTRUCTION_BYTES], "little")
    return Instruction(
        address=address,
        predicate=listed.predicate,
        opcode=listed.opcode,
        operands=split_operands(listed.operands),
        encoding=f"{encoding:032x}",
        control=control_codes(encoding, architecture),
    )


def split_operands(text: str) -> tuple[str, ...]:
    """Operands of an instruction; commas within brackets do not separate.

    >>> split_operands("R4,desc[UR4][R2.64+0x10],{5,4,3}")
    ('R4', 'desc[UR4][R2.64+0x10]', '{5,4,3}')
    """
    operands, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and depth == 0:
            operands.append(text[start:i].strip())
            start = i + 1
    return (*operands, text[start:].strip()) if text else ()
