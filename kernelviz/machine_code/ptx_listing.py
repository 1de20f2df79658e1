"""PTX line by line, with the source lines that its `.loc` directives name. Source: PTX ISA, "Debugging Directives".

`.loc FILE LINE COLUMN, function_name …, inlined_at FILE LINE COLUMN` names the call of an inlined function. LLVM, which writes
Triton's PTX, leaves that out and writes it into a comment: `// inner.py:43:17 @[ outer.py:36:24 ]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kernelviz.core.code_listing import CodeLine, CodeListing, LineMark, SourceLine

Location = tuple[str, int, int]
"""File, line and column."""
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"(.*?)"(?:\s|,|$)')
_LOC = re.compile(
    r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:\s*,\s*function_name\s+[^,]+,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?"
)
_CALLS = re.compile(r"@\[\s*([^\s:@\[\]]+):(\d+):(\d+)")
_OPCODE = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)")
_MOST_CALLS = 32
_TENSOR = ("mma", "wmma", "wgmma", "tcgen05")
_BITS = re.compile(r"\.[usbf](8|16|32|64|128)$")


def ptx_listing(text: str) -> CodeListing:
    """The listing of a PTX file. An instruction belongs to the `.loc` before it."""
    raw = text.splitlines()
    files = _files(raw)
    by_name = _by_base_name(files.values())
    inlined: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    origins: tuple[SourceLine, ...] = ()
    lines = []
    for line in raw:
        if match := _LOC.match(line):
            numbers = tuple(int(n) for n in match.groups() if n is not None)
            here = (numbers[0], numbers[1], numbers[2])
            if len(numbers) > 3:
                inlined[here] = (numbers[3], numbers[4], numbers[5])
            else:
                inlined.pop(here, None)
            origins = _origins(here, inlined, files) + _commented(line[match.end() :], by_name)
            lines.append(CodeLine(text=line))
        elif is_instruction(line):
            lines.append(CodeLine(text=line, origins=origins, marks=ptx_marks(line)))
        else:
            lines.append(CodeLine(text=line))
    named = tuple(dict.fromkeys(origin.file for line in lines for origin in line.origins))
    return CodeListing(kind="ptx", lines=tuple(lines), files=named, lines_unknown=None if named else "no_line_table")


def locations(text: str) -> dict[str, set[tuple[int, int]]]:
    """The lines and columns of each file that `.loc` directives and their comments name."""
    raw = text.splitlines()
    files = _files(raw)
    by_name = _by_base_name(files.values())
    result: dict[str, set[tuple[int, int]]] = {}
    for line in raw:
        if match := _LOC.match(line):
            if (file := files.get(int(match[1]))) is not None and int(match[2]) > 0:
                result.setdefault(file, set()).add((int(match[2]), int(match[3])))
            for name, number, column in _CALLS.findall(line[match.end() :]):
                if name in by_name:
                    result.setdefault(by_name[name], set()).add((int(number), int(column)))
    return result


def function_starts(text: str) -> dict[str, SourceLine]:
    """Of each kernel, the line of its definition: that of the first `.loc` in its body, before its first instruction.

    LLVM writes it where a function begins. NVRTC does, too.
    """
    raw = text.splitlines()
    files = _files(raw)
    result: dict[str, SourceLine] = {}
    name: str | None = None
    for line in raw:
        if match := re.match(r"\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", line):
            name = match[1]
        elif name is not None and (match := _LOC.match(line)):
            file = files.get(int(match[1]))
            if file is not None and int(match[2]) > 0:
                result[name] = SourceLine(file=file, line=int(match[2]))
            name = None
        elif name is not None and is_instruction(line):
            name = None
    return result


def is_instruction(line: str) -> bool:
    """Whether a line of PTX is an instruction: no directive, label, comment or brace.

    >>> [is_instruction(line) for line in ("\\tret;", ".reg .b32 %r<3>;", "$L__BB0_1:", "// end", "@%p1 bra $L__BB0_1;")]
    [True, False, False, False, True]
    """
    stripped = line.strip()
    return (
        bool(stripped) and stripped[0] not in "./{}$)(" and _OPCODE.match(stripped) is not None and stripped[-1] != ":"
    )


def ptx_marks(line: str) -> tuple[LineMark, ...]:
    """What an instruction of PTX does that often explains a difference. Registers are spilled later, so PTX shows no spills.

    >>> ptx_marks("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];"), ptx_marks("ld.global.b32 %r1, [%rd1];")
    (('wide_load',), ())
    """
    match = _OPCODE.match(line.strip())
    opcode = match[1] if match else ""
    family = opcode.partition(".")[0]
    if family in _TENSOR and ".mma" in f".{opcode}":
        return ("tensor",)
    if opcode.startswith("cp.async") and "commit" not in opcode and "wait" not in opcode:
        return ("copy",)
    if family in ("ld", "st"):
        bits = _BITS.search(opcode)
        vector = 4 if ".v4." in opcode else 2 if ".v2." in opcode else 8 if ".v8." in opcode else 1
        if bits and int(bits[1]) * vector >= 128:
            return ("wide_load",) if family == "ld" else ("wide_store",)
    return ()


def _files(lines: Iterable[str]) -> dict[int, str]:
    """The names of files by their numbers."""
    return {int(match[1]): match[2] for line in lines if (match := _FILE.match(line))}


def _by_base_name(files: Iterable[str]) -> dict[str, str]:
    """Files by their names without folders, those left out that two files have."""
    names: dict[str, list[str]] = {}
    for file in files:
        names.setdefault(file.rpartition("/")[2], []).append(file)
    return {name: same_name[0] for name, same_name in names.items() if len(same_name) == 1}


def _origins(
    here: tuple[int, int, int],
    inlined: Mapping[tuple[int, int, int], tuple[int, int, int]],
    files: Mapping[int, str],
) -> tuple[SourceLine, ...]:
    """A location and the calls around it, from inside to outside."""
    result: list[SourceLine] = []
    location: tuple[int, int, int] | None = here
    while location is not None and len(result) < _MOST_CALLS:
        file = files.get(location[0])
        if file is not None and location[1] > 0:
            result.append(SourceLine(file=file, line=location[1]))
        location = inlined.get(location)
    return tuple(result)


def _commented(comment: str, by_name: Mapping[str, str]) -> tuple[SourceLine, ...]:
    """The calls that LLVM's comment names, from inside to outside."""
    calls: Sequence[tuple[str, str, str]] = _CALLS.findall(comment)
    return tuple(SourceLine(file=by_name[name], line=int(line)) for name, line, _ in calls if name in by_name)
