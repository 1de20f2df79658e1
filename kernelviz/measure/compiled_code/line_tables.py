"""Rewrite the line tables of a cubin: other names of folders, and no times of files.

A table begins with the folders and files that its lines are in (DWARF 4, section 6.2.4), so it becomes shorter or longer, and
what follows it in the file moves. Sections, program headers and the relocations of the table are adapted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

_HEADER, _SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
_PROGRAM, _RELOCATION = struct.Struct("<IIQQQQQQ"), struct.Struct("<QQq")
_NOBITS, _RELA = 8, 4
_PTX_TEXT, _DEBUG_SECTION = ".nv_debug_ptx_txt", b".section\t.debug_"
_VERSIONS = (2, 3, 4)
_MOST_SECTIONS = 10_000
RenameFolder = Callable[[bytes], bytes]


class NotRewritable(Exception):
    """The file, or its line table, has a form that is not known here."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    target: int
    alignment: int
    header: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """A rewritten section, and by how many bytes what is at an old offset or behind it has moved."""

    content: bytes
    moved: tuple[tuple[int, int], ...]

    def new_offset(self, offset: int) -> int:
        return offset + sum(by for start, by in self.moved if offset >= start)


def with_line_tables(cubin: bytes, rename: RenameFolder) -> bytes:
    """The cubin with renamed folders in its line tables, and without the times and sizes of files.

    The text of PTX in it loses the empty lines that stand for DWARF data, whose number depends on the folder. Errors:
    NotRewritable.
    """
    try:
        return _rewritten(cubin, rename)
    except (struct.error, IndexError, ValueError) as error:
        raise NotRewritable(f"{type(error).__name__}: {error}") from error


def _rewritten(cubin: bytes, rename: RenameFolder) -> bytes:
    if not cubin.startswith(b"\x7fELF\x02\x01"):
        raise NotRewritable("it is not a 64-bit little-endian ELF file")
    header = list(_HEADER.unpack_from(cubin))
    sections = _sections(cubin, header)
    contents = [b"" if s.kind == _NOBITS else cubin[s.offset : s.offset + s.size] for s in sections]
    tables = {n: _line_table(contents[n], rename) for n, s in enumerate(sections) if s.name == ".debug_line" and s.size}
    for n, table in tables.items():
        contents[n] = table.content
    for n, section in enumerate(sections):
        if section.kind == _RELA and section.target in tables:
            contents[n] = _relocated(contents[n], tables[section.target])
        elif section.name == _PTX_TEXT:
            contents[n] = _without_dwarf_lines(contents[n])
    return _laid_out(cubin, header, sections, contents)


def _sections(cubin: bytes, header: list[int]) -> list[_Section]:
    offset, entry_bytes, count, names_index = header[6], header[11], header[12], header[13]
    if entry_bytes != _SECTION.size or not 0 < count <= _MOST_SECTIONS:
        raise NotRewritable("its section table has an unknown form")
    raw = [_SECTION.unpack_from(cubin, offset + n * entry_bytes) for n in range(count)]
    names = raw[names_index][4]
    return [
        _Section(_string(cubin, names + r[0]).decode(), r[1], r[4], r[5], r[7], max(1, r[8]), tuple(r)) for r in raw
    ]


def _line_table(section: bytes, rename: RenameFolder) -> _Table:
    """The tables of all units of a section."""
    parts: list[bytes] = []
    moved: list[tuple[int, int]] = []
    at = 0
    while at < len(section):
        unit_bytes, version, header_bytes = struct.unpack_from("<IHI", section, at)
        end, program = at + 4 + unit_bytes, at + 10 + header_bytes
        if version not in _VERSIONS or not at < program <= end <= len(section):
            raise NotRewritable(f"its line table has the unknown version {version}")
        opcode_count = at + 10 + (5 if version == 4 else 4)
        names = opcode_count + section[opcode_count]
        files = _renamed_files(section[names:program], rename)
        header = section[at + 10 : names] + files
        rest = section[program:end]
        by = len(header) - header_bytes
        parts.append(struct.pack("<IHI", unit_bytes + by, version, len(header)) + header + rest)
        moved.append((program, by))
        at = end
    return _Table(b"".join(parts), tuple(moved))


def _renamed_files(data: bytes, rename: RenameFolder) -> bytes:
    """The lists of folders and files of a table's header: renamed folders; times and sizes of files 0, which means unknown.
    NVRTC's headers have four bytes behind the lists, which belong to its table of inlined functions."""
    at, result = 0, b""
    while (folder := _string(data, at)) != b"":
        result += rename(folder) + b"\0"
        at += len(folder) + 1
    at, result = at + 1, result + b"\0"
    while (file := _string(data, at)) != b"":
        at += len(file) + 1
        folder_number, at = _uleb128(data, at)
        _, at = _uleb128(data, at)
        _, at = _uleb128(data, at)
        folder, slash, name = file.rpartition(b"/")
        stated = rename(folder) + slash + name if file.startswith(b"/") else file
        result += stated + b"\0" + _as_uleb128(folder_number) + b"\0\0"
    return result + data[at:]


def _relocated(content: bytes, table: _Table) -> bytes:
    """The relocations of a table, at the new places of what they change."""
    return b"".join(
        _RELOCATION.pack(table.new_offset(offset), info, addend)
        for offset, info, addend in _RELOCATION.iter_unpack(content)
    )


def _without_dwarf_lines(text: bytes) -> bytes:
    """The text of the PTX up to its DWARF sections, whose lines are empty here."""
    start = text.find(_DEBUG_SECTION)
    if start < 0:
        return text
    lines = text[start:].split(b"\0")
    return text[:start] + b"\0".join(line for line in lines if line) + b"\0"


def _laid_out(cubin: bytes, header: list[int], sections: list[_Section], contents: list[bytes]) -> bytes:
    """The file with these contents, in the same order, aligned as before."""
    program_offset, program_bytes, program_count = header[5], header[9], header[10]
    if program_count and program_bytes != _PROGRAM.size:
        raise NotRewritable("its program headers have an unknown form")
    result, new = bytearray(cubin[: _HEADER.size]), list(sections)
    for n in sorted(range(len(sections)), key=lambda n: (sections[n].offset, n)):
        section = sections[n]
        if section.offset == 0:
            continue
        result += bytes(-len(result) % section.alignment)
        size = section.size if section.kind == _NOBITS else len(contents[n])
        new[n] = replace(section, offset=len(result), size=size)
        result += contents[n]
    result += bytes(-len(result) % 8)
    header[6] = len(result)
    for section in new:
        fields = list(section.header)
        fields[4], fields[5] = section.offset, section.size
        result += _SECTION.pack(*fields)
    header[5] = len(result) if program_count else program_offset
    offsets = {old.offset: fresh.offset for old, fresh in zip(sections, new, strict=True)} | {program_offset: header[5]}
    for n in range(program_count):
        fields = list(_PROGRAM.unpack_from(cubin, program_offset + n * program_bytes))
        if fields[2] not in offsets:
            raise NotRewritable("a segment does not begin with a section")
        fields[2] = offsets[fields[2]]
        result += _PROGRAM.pack(*fields)
    _HEADER.pack_into(result, 0, *header)
    return bytes(result)


def _string(data: bytes, at: int) -> bytes:
    return data[at : data.index(b"\0", at)]


def _uleb128(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _as_uleb128(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])
