"""The SASS of kernels line by line: addresses, control codes, and the source lines that the cubin's line table names.

`nvdisasm -gi -c` prints each instruction with its address, and before it a comment for each source line that it comes from, with
the calls that were inlined. A cubin without a line table has no such comments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kernelviz.core.code_listing import CodeLine, CodeListing, LineMark, MissingReason, SourceLine
from kernelviz.core.errors import KernelvizError
from kernelviz.core.machine_code import Instruction, KernelFacts
from kernelviz.core.problem import Struct
from kernelviz.machine_code.control_codes import control_codes
from kernelviz.machine_code.counting import copy_kind, memory_access
from kernelviz.machine_code.cubin import Kernel, read_cubin
from kernelviz.machine_code.disassembly import INSTRUCTION_BYTES, split_operands
from kernelviz.machine_code.opcodes import class_of
from kernelviz.machine_code.tools import ToolUnavailable, run_tool

_SECTION = re.compile(r"//-+ \.text\.(\S+)\s+-+")
_OTHER_SECTION = re.compile(r"//-{5,} ")
_ORIGIN = re.compile(r'//## File "(.*?)", line (\d+)')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?$")
_LABEL = re.compile(r"[.$\w]+:$")
_PREDICATED = re.compile(r"(?:(@!?U?P[T\d]+)\s+)?(\S+)\s*(.*)$")
WIDE_BYTES = 16


class SassLines(Struct, frozen=True, kw_only=True):
    """The lines of the SASS of each kernel of a cubin, by its name, or why there are none."""

    kernels: dict[str, tuple[CodeLine, ...]] = msgspec.field(default_factory=dict)
    reason: MissingReason | None = None
    message: str = ""


def sass_lines(cubin: bytes) -> SassLines:
    """The SASS of every kernel of a cubin, without its main loops. Raises NotACubin, ToolUnavailable and ToolFailed."""
    file = read_cubin(cubin)
    by_name = {kernel.name: kernel for kernel in file.kernels}
    text = run_tool("nvdisasm", ("-gi", "-c"), cubin)
    return SassLines(
        kernels={
            name: tuple(_lines(section, by_name[name], file.architecture))
            for name, section in _sections(text)
            if name in by_name
        }
    )


def from_standard_input(arguments: Sequence[str]) -> bytes:
    """Read a cubin from the standard input; its lines, or why it has none (MessagePack). For a process of its own."""
    try:
        lines = sass_lines(sys.stdin.buffer.read())
    except ToolUnavailable as error:
        lines = SassLines(reason="no_tool", message=str(error))
    except KernelvizError as error:
        lines = SassLines(reason="unreadable", message=str(error))
    return msgspec.msgpack.encode(lines)


def sass_listing(
    lines: Mapping[str, Sequence[CodeLine]], facts: Sequence[KernelFacts] = (), *, main_loop_only: bool = False
) -> CodeListing:
    """The listing of some kernels of a cubin, by their lines (`sass_lines`).

    `facts`: of the same cubin, from which the main loops are marked. `main_loop_only`: only the instructions of main loops.
    """
    loops = {one.name: _loop_addresses(one) for one in facts}
    result: list[CodeLine] = []
    for name, of_kernel in lines.items():
        marked = _with_roles(of_kernel, loops.get(name, {}))
        if main_loop_only:
            marked = _main_loops(marked)
        if len(lines) > 1:
            result.append(CodeLine(text=f"// {name}"))
        result += marked
    files = tuple(dict.fromkeys(origin.file for line in result for origin in line.origins))
    return CodeListing(
        kind="main-loop" if main_loop_only else "sass",
        lines=tuple(result),
        files=files,
        lines_unknown=None if files else "no_line_table",
    )


def _with_roles(lines: Sequence[CodeLine], loops: Mapping[int, int]) -> list[CodeLine]:
    """`loops`: the warp role of each address in a main loop."""
    return [
        replace(line, role=loops[line.address]) if line.address is not None and line.address in loops else line
        for line in lines
    ]


def _main_loops(lines: Sequence[CodeLine]) -> list[CodeLine]:
    """The instructions of the main loop of each warp role, role by role. A label belongs to the instruction behind it."""
    roles = sorted({line.role for line in lines if line.role is not None})
    belongs: list[int | None] = []
    following: int | None = None
    for line in reversed(lines):
        following = line.role if line.address is not None else following
        belongs.append(following)
    result: list[CodeLine] = []
    for role in roles:
        if len(roles) > 1:
            result.append(CodeLine(text=f"// warp role {role}", role=role))
        result += [line for line, of in zip(lines, reversed(belongs), strict=True) if of == role]
    return result


def _loop_addresses(facts: KernelFacts) -> dict[int, int]:
    """The number of the warp role of each address that is in its main loop."""
    return {
        address: number
        for number, role in enumerate(facts.roles, start=1)
        if role.main_loop is not None
        for part in role.main_loop.ranges
        for address in range(part.first, part.last + 1, INSTRUCTION_BYTES)
    }


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the lines of each section of code."""
    name: str | None = None
    section: list[str] = []
    for line in text.splitlines():
        if match := _SECTION.match(line):
            if name is not None:
                yield name, section
            name, section = match[1], []
        elif _OTHER_SECTION.match(line):
            if name is not None:
                yield name, section
            name = None
        elif name is not None:
            section.append(line.strip())
    if name is not None:
        yield name, section


def _lines(section: Sequence[str], kernel: Kernel, architecture: str) -> Iterator[CodeLine]:
    origins: tuple[SourceLine, ...] = ()
    collecting = False
    for line in section:
        if match := _ORIGIN.match(line):
            origin = SourceLine(file=match[1], line=int(match[2]))
            origins = (*origins, origin) if collecting else (origin,)
            collecting = True
            continue
        collecting = False
        if match := _INSTRUCTION.match(line):
            address = int(match[1], 16)
            instruction = _instruction(kernel, address, match[2], architecture)
            yield CodeLine(
                text=f"/*{match[1]}*/ {match[2]}",
                origins=tuple(p for p in origins if p.line > 0),
                address=address,
                control=instruction.control,
                marks=marks_of(instruction),
            )
        elif _LABEL.fullmatch(line) and not line.startswith(".text."):
            yield CodeLine(text=line)


def _instruction(kernel: Kernel, address: int, text: str, architecture: str) -> Instruction:
    encoding = int.from_bytes(kernel.code[address : address + INSTRUCTION_BYTES], "little")
    match = _PREDICATED.match(text)
    assert match is not None  # it also matches an opcode alone
    predicate, opcode, operands = match.groups()
    return Instruction(
        address=address,
        predicate=predicate,
        opcode=opcode,
        operands=split_operands(operands),
        encoding=f"{encoding:032x}",
        control=control_codes(encoding, architecture),
    )


def marks_of(instruction: Instruction) -> tuple[LineMark, ...]:
    """What an instruction does that often explains a difference. One that is never executed has no mark.

    >>> marks_of(Instruction(address=0, opcode="LDG.E.128.CONSTANT", encoding=""))
    ('wide_load',)
    >>> marks_of(Instruction(address=0, predicate="@!PT", opcode="LDS", encoding=""))
    ()
    """
    if instruction.is_never_executed:
        return ()
    if class_of(instruction) == "tensor":
        return ("tensor",)
    if copy_kind(instruction) is not None:
        return ("copy",)
    match memory_access(instruction):
        case ("local", _, _):
            return ("spill",)
        case (_, "load", width) if width >= WIDE_BYTES:
            return ("wide_load",)
        case (_, "store", width) if width >= WIDE_BYTES:
            return ("wide_store",)
    return ()
