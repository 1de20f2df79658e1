"""Read a cubin: an ELF file whose sections hold the code and the resources of kernels.

Sections: ``.text.K`` the code of kernel K and of the functions that only K calls, ``.nv.info`` and ``.nv.info.K`` attributes,
``.nv.shared.K`` static shared memory, ``.nv.local.K`` local memory, ``.nv.constantN.K`` constant bank N. The format of attributes
is that which ``cuobjdump -elf`` and ``nvdisasm -hex`` print; cuobjdump's own values check it in tests.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelviz.core.errors import UsageError

_MAGIC = b"\x7fELF\x02\x01"
_EM_CUDA = 190
_SYMTAB, _NOBITS = 2, 8
_FUNCTION = 2
_UNDEFINED = 0
"""The section number of a symbol that the file only uses (SHN_UNDEF)."""
_ENTRY = 0x10
"""In a symbol's st_other: a kernel that can be launched (STO_CUDA_ENTRY)."""
_ACCELERATED = 0x800
"""In e_flags of ABI 7: compiled for one architecture only (sm_90a)."""
_ARCHITECTURE_OPTION = re.compile(rb"-arch[ =](sm_\d+[a-z]?)")
# Attributes of .nv.info, by the numbers that nvdisasm names EIATTR_….
_MAX_THREADS, _EXTERNALS, _REQUIRED_THREADS, _FRAME_BYTES = 0x05, 0x0F, 0x10, 0x11
_PARAMETER_BYTES, _MAX_REGISTERS, _REGISTERS = 0x19, 0x1B, 0x2F
_BRANCH_TARGETS, _CLUSTER = 0x34, 0x3D
_BYTE_VALUE = 2


class NotACubin(UsageError):
    """Bytes that are not a cubin, or one that is damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this is not a cubin that can be read: {reason}; give the file that NVRTC, ptxas or Triton wrote"
        )


@dataclass(frozen=True, slots=True)
class Function:
    """Code within a kernel's section, at an offset in bytes."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel with its code and resources. `functions` are those that it calls, within the same section; `external_functions`
    those that the driver adds when it loads the file, as ``__assertfail``: they may need more registers."""

    name: str
    code: bytes
    functions: tuple[Function, ...]
    registers: int | None = None
    stack_bytes: int | None = None
    local_bytes: int = 0
    static_shared_bytes: int = 0
    constant_bytes: dict[int, int] = field(default_factory=dict)
    parameter_bytes: int | None = None
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    max_registers: int | None = None
    cluster: tuple[int, int, int] | None = None
    branch_targets: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Targets of each indirect branch, by its address."""
    external_functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cubin:
    """The kernels of a cubin, in the order of its symbols, and the architecture it was compiled for (``sm_90a``)."""

    architecture: str
    kernels: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    kind: int
    other: int
    section: int
    value: int
    size: int


def read_cubin(content: bytes) -> Cubin:
    """The kernels of a cubin with their resources. Raises NotACubin."""
    try:
        return _read(content)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise NotACubin(f"{type(error).__name__}: {error}") from error


def _read(content: bytes) -> Cubin:
    if not content.startswith(_MAGIC):
        raise NotACubin("it is not a 64-bit little-endian ELF file")
    machine, flags = struct.unpack_from("<H", content, 18)[0], struct.unpack_from("<I", content, 48)[0]
    if machine != _EM_CUDA:
        raise NotACubin(f"it is for machine {machine}, not for CUDA")
    sections = _sections(content)
    symbols = _symbols(content, sections)
    by_name = {s.name: s for s in sections}
    common = _attributes(_bytes_of(content, by_name.get(".nv.info")))
    registers = dict(struct.unpack("<II", v) for a, v in common if a == _REGISTERS)
    frames = dict(struct.unpack("<II", v) for a, v in common if a == _FRAME_BYTES)
    kernels = []
    for index, symbol in enumerate(symbols):
        if symbol.kind == _FUNCTION and symbol.other & _ENTRY and symbol.section < len(sections):
            kernels.append(
                _kernel(content, sections, by_name, symbols, symbol, registers.get(index), frames.get(index))
            )
    return Cubin(_architecture(content, flags, by_name), tuple(kernels))


def _kernel(
    content: bytes,
    sections: list[_Section],
    by_name: dict[str, _Section],
    symbols: list[_Symbol],
    symbol: _Symbol,
    registers: int | None,
    frame_bytes: int | None,
) -> Kernel:
    name = symbol.name
    attributes = _attributes(_bytes_of(content, by_name.get(f".nv.info.{name}")))
    values = dict(attributes)
    constants = {
        int(match[1]): s.size
        for s in sections
        if (match := re.fullmatch(r"\.nv\.constant(\d+)\." + re.escape(name), s.name))
    }
    called = [s for s in symbols if s.kind == _FUNCTION and s.section == symbol.section and s is not symbol]
    return Kernel(
        name=name,
        code=_bytes_of(content, sections[symbol.section]),
        functions=tuple(Function(s.name, s.value, s.size) for s in sorted(called, key=lambda s: s.value)),
        registers=registers,
        stack_bytes=frame_bytes,
        local_bytes=_size_of(by_name.get(f".nv.local.{name}")),
        static_shared_bytes=_size_of(by_name.get(f".nv.shared.{name}")),
        constant_bytes=constants,
        parameter_bytes=_whole_number(values.get(_PARAMETER_BYTES)),
        max_threads=_three(values.get(_MAX_THREADS)),
        required_threads=_three(values.get(_REQUIRED_THREADS)),
        max_registers=_whole_number(values.get(_MAX_REGISTERS)),
        cluster=_three(values.get(_CLUSTER)),
        branch_targets={k: v for a, value in attributes if a == _BRANCH_TARGETS for k, v in _targets(value)},
        external_functions=_external_functions(attributes, symbols),
    )


def _external_functions(attributes: list[tuple[int, bytes]], symbols: list[_Symbol]) -> tuple[str, ...]:
    """The functions that a kernel names as its externals, which the file does not define. Raises IndexError for no symbol."""
    named = [n for a, value in attributes if a == _EXTERNALS for n in struct.unpack(f"<{len(value) // 4}I", value)]
    return tuple(symbols[n].name for n in named if symbols[n].kind == _FUNCTION and symbols[n].section == _UNDEFINED)


def _sections(content: bytes) -> list[_Section]:
    (offset,) = struct.unpack_from("<Q", content, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", content, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", content, offset + i * entry_size) for i in range(count)]
    names_offset = raw[names_index][4]
    return [_Section(_text(content, names_offset + r[0]), r[1], r[4], r[5], r[6]) for r in raw]


def _symbols(content: bytes, sections: list[_Section]) -> list[_Symbol]:
    table = next((s for s in sections if s.kind == _SYMTAB), None)
    if table is None:
        return []
    names_offset = sections[table.link].offset
    symbols = []
    for at in range(table.offset, table.offset + table.size, 24):
        name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", content, at)
        symbols.append(_Symbol(_text(content, names_offset + name), info & 0xF, other, section, value, size))
    return symbols


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    """The attributes of a .nv.info section, in order: number and value."""
    attributes: list[tuple[int, bytes]] = []
    at = 0
    while at + 4 <= len(data):
        form, attribute, small = struct.unpack_from("<BBH", data, at)
        at += 4
        match form:
            case 1 | 2 | 3:  # no value, a byte, two bytes
                attributes.append((attribute, struct.pack("<H", small & 0xFF if form == _BYTE_VALUE else small)))
            case 4:
                attributes.append((attribute, data[at : at + small]))
                at += (small + 3) // 4 * 4
            case _:
                raise NotACubin(f"an attribute of .nv.info has the unknown form {form}")
    return attributes


def _targets(value: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Of each indirect branch its address and its targets, in bytes from the start of the section."""
    at = 0
    while at + 12 <= len(value):
        address, _, count = struct.unpack_from("<IIi", value, at)
        at += 12
        yield address, struct.unpack_from(f"<{count}I", value, at)
        at += 4 * count


def _architecture(content: bytes, flags: int, by_name: dict[str, _Section]) -> str:
    """As in ``sm_90a``: from the options of ptxas where the file has them, else from the flags of the ELF header."""
    option = _ARCHITECTURE_OPTION.findall(_bytes_of(content, by_name.get(".note.nv.tkinfo")))
    if option:
        return str(option[-1].decode())
    if content[8] <= 7:
        return f"sm_{flags & 0xFF}{'a' if flags & _ACCELERATED else ''}"
    return f"sm_{flags >> 8 & 0xFF}"


def _bytes_of(content: bytes, section: _Section | None) -> bytes:
    if section is None or section.kind == _NOBITS:
        return b""
    return content[section.offset : section.offset + section.size]


def _size_of(section: _Section | None) -> int:
    return section.size if section else 0


def _whole_number(value: bytes | None) -> int | None:
    return int.from_bytes(value, "little") if value else None


def _three(value: bytes | None) -> tuple[int, int, int] | None:
    if value is None or len(value) < 12:
        return None
    x, y, z = struct.unpack_from("<III", value)
    return x, y, z


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()
