"""The text of a kernel's code line by line, with what is known about each line: its place in a source file, and what it does.

Nothing here is inferred from the look of the code: origins come from the line table of a cubin and from `.loc` in PTX.
"""

from __future__ import annotations

from typing import Literal

from kernelviz.core.machine_code import ControlCodes
from kernelviz.core.problem import Struct

ListingKind = Literal["source", "ttir", "ttgir", "ptx", "sass", "main-loop"]
"""What can be shown of a kernel: what a person wrote, Triton's own languages, PTX, SASS, and the part of the SASS that is the
main loop of each warp role."""
LineMark = Literal["tensor", "wide_load", "wide_store", "spill", "copy"]
"""What an instruction does that often explains a difference: a tensor core instruction; a load or store of at least 16 bytes by
one thread; a load from or store to local memory, where spilled registers are; the start of an asynchronous copy."""
LinesUnknown = Literal["no_line_table", "other_files"]
"""Why no line of a listing has a place in the sources: the compiler wrote no lines, or it names files whose text is not among the
artifacts."""
MissingReason = Literal[
    "not_captured", "not_here", "no_tool", "unreadable", "too_large", "no_main_loop", "no_machine_code"
]
"""Why a kernel has no listing of a kind: no compiler made one, or it was not captured; the content is not on this machine;
nvdisasm is not installed, or cannot read the cubin; it is larger than what is shown; the kernel has no loop; or it is for a
CPU."""


class SourceLine(Struct, frozen=True, kw_only=True):
    """A line of a file, as a compiler names them. Lines count from 1."""

    file: str
    line: int


class CodeLine(Struct, frozen=True, kw_only=True):
    """A line of a listing.

    `origins`: where an instruction comes from: its own line, then the lines of the calls that were inlined, from inside to
    outside. `address` in bytes from the start of its kernel (SASS). `role`: the warp role, from 1, in whose main loop it is.
    `number`: the line's number in its own file, where the listing has several files or parts of files.
    """

    text: str
    origins: tuple[SourceLine, ...] = ()
    address: int | None = None
    control: ControlCodes | None = None
    marks: tuple[LineMark, ...] = ()
    role: int | None = None
    number: int | None = None


class CodeListing(Struct, frozen=True, kw_only=True):
    """A text of a kernel. `files`: all that its lines name, in order of their first use. `lines_unknown`: why none of its lines
    has a place in a source of the same kernel; None if some have."""

    kind: ListingKind
    lines: tuple[CodeLine, ...]
    files: tuple[str, ...] = ()
    lines_unknown: LinesUnknown | None = None

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)


class MissingListing(Struct, frozen=True, kw_only=True):
    """Why there is no listing of a kind. `message`: an error with its remedy, if there is one."""

    kind: ListingKind
    reason: MissingReason
    message: str = ""
