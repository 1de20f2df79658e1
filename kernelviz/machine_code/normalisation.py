"""SASS and PTX without what differs between any two compilations: addresses, numbers of registers and labels, line directives.

Registers are renamed within each instruction, in the order in which it names them, because one more register at the beginning of
a kernel shifts the numbers of all others. So two instructions are equal if they do the same with the same pattern of registers,
offsets and constants. Which register of another instruction is meant is lost.
"""

from __future__ import annotations

import re

from kernelviz.core.code_listing import CodeListing

_ADDRESS = re.compile(r"^/\*[0-9a-f]{4,}\*/\s*")
_SASS_REGISTER = re.compile(r"\b(UR|UP|SB|R|P|B)(\d+)\b")
_SASS_TARGET = re.compile(r"`\([.$\w]+\)")
_SASS_LABEL = re.compile(r"^\.L_x_\d+:$")
_PTX_REGISTER = re.compile(r"%([a-z]+)(\d+)\b")
_PTX_LABEL = re.compile(r"\$L_?_\w+")
_PTX_LEFT_OUT = re.compile(r"^\s*(?:\.loc\b|\.file\b|//|\$L_?_\w+:|$)")
_MLIR_LOCATION = re.compile(r"\s*\bloc\((?:[^()]|\([^()]*\))*\)")
_MLIR_LEFT_OUT = re.compile(r"^#loc\d* = ")
_COMMENT = re.compile(r"\s*//.*$")


def normalised(listing: CodeListing) -> tuple[tuple[str, int], ...]:
    """The lines of a listing without what differs between any two compilations, each with the number of the line (from 0) that it
    stands for. Labels and comments of PTX and SASS, line directives and MLIR's locations are left out. A source stays."""
    if listing.kind in ("sass", "main-loop"):
        return tuple(
            (normalised_sass(line.text), number)
            for number, line in enumerate(listing.lines)
            if not _SASS_LABEL.match(line.text)
        )
    if listing.kind == "ptx":
        return tuple(
            (normalised_ptx(line.text), number)
            for number, line in enumerate(listing.lines)
            if not _PTX_LEFT_OUT.match(line.text)
        )
    if listing.kind in ("ttir", "ttgir"):
        return tuple(
            (normalised_mlir(line.text), number)
            for number, line in enumerate(listing.lines)
            if not _MLIR_LEFT_OUT.match(line.text)
        )
    return tuple((line.text, number) for number, line in enumerate(listing.lines))


def normalised_sass(text: str) -> str:
    """An instruction of SASS without address, register numbers, targets of branches and the hint that an operand is reused.

    >>> normalised_sass("/*0130*/ @!P3 LDG.E.128 R8, desc[UR4][R2.64+0x10]")
    '@!P0 LDG.E.128 R0, desc[UR0][R1.64+0x10]'
    >>> normalised_sass("/*0140*/ FFMA R9, R4.reuse, R7, R9"), normalised_sass("/*0150*/ BRA `(.L_x_3)")
    ('FFMA R0, R1, R2, R0', 'BRA label')
    """
    bare = _SASS_TARGET.sub("label", _ADDRESS.sub("", text)).replace(".reuse", "")
    return _renamed(_SASS_REGISTER, bare, "")


def normalised_mlir(text: str) -> str:
    """An operation of TTIR or TTGIR without its locations.

    >>> normalised_mlir('  %p = tt.get_program_id x : i32 loc(#loc107)')
    '  %p = tt.get_program_id x : i32'
    >>> normalised_mlir('tt.func @k(%x: i32 loc("x"(#loc)), %y: i32 loc(unknown))')
    'tt.func @k(%x: i32, %y: i32)'
    """
    return _MLIR_LOCATION.sub("", text)


def normalised_ptx(text: str) -> str:
    """A line of PTX without register numbers, labels and comments.

    >>> normalised_ptx("\\t@%p12 bra \\t$L__BB0_3; // loop"), normalised_ptx("add.s32 %r41, %r12, 255;")
    ('@%p0 bra label;', 'add.s32 %r0, %r1, 255;')
    """
    bare = " ".join(_PTX_LABEL.sub("label", _COMMENT.sub("", text)).split())
    return _renamed(_PTX_REGISTER, bare, "%")


def _renamed(register: re.Pattern[str], text: str, sign: str) -> str:
    """Each kind of register numbered from 0 in the order in which the text names them."""
    names: dict[tuple[str, str], str] = {}

    def rename(match: re.Match[str]) -> str:
        key = (match[1], match[2])
        if key not in names:
            names[key] = f"{sign}{match[1]}{sum(kind == match[1] for kind, _ in names)}"
        return names[key]

    return register.sub(rename, text)
