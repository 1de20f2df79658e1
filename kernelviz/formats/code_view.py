"""What a browser gets to show code (browser/code_view.js): texts, linked lines, marks, and changes, as packed JSON.

The same content is inside the offline page. Numbers stand for files, source lines and chains of them, so that 5,000 lines are
small.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kernelviz.core.code import Compiler
from kernelviz.core.code_listing import CodeLine, CodeListing, ListingKind, SourceLine
from kernelviz.metrics.line_diff import LineDiff
from kernelviz.text.code_listings import (
    CONTROL_LEGEND,
    HINT,
    KIND_NAMES,
    NO_PLACE,
    describe_line_diff,
    describe_lines_unknown,
    format_control,
    format_listing,
)

_LANGUAGES: dict[ListingKind, str] = {
    "ttir": "mlir",
    "ttgir": "mlir",
    "ptx": "ptx",
    "sass": "sass",
    "main-loop": "sass",
}


def language_of(kind: ListingKind, compiler: Compiler) -> str:
    """The name of the language of a listing in code_languages.js."""
    if kind != "source":
        return _LANGUAGES[kind]
    return "python" if compiler in ("triton", "inductor") else "cpp"


def panes(listings: Sequence[CodeListing], compilers: Mapping[ListingKind, Compiler], *, control: bool = False) -> str:
    """The content of one kernel: its listings side by side, whose lines are linked. `control`: with control codes."""
    origins = _Origins()
    contents = [_pane(listing, compilers[listing.kind], origins, control) for listing in listings]
    return pack(
        {
            "mode": "panes",
            "panes": contents,
            "files": list(origins.files),
            "origins": [list(origin) for origin in origins.origins],
            "chains": [list(chain) for chain in origins.chains],
            "hint": HINT,
            "unknown": NO_PLACE,
            "control_legend": CONTROL_LEGEND,
        }
    )


def diff(
    difference: LineDiff, titles: tuple[str, str], kind: ListingKind, compiler: Compiler, summary: str = ""
) -> str:
    """The content of a difference. `titles`: of both sides. `compiler`: of a source. `summary`: one sentence, by default how many
    lines differ."""
    return pack(
        {
            "mode": "diff",
            "language": language_of(kind, compiler),
            "a": {"title": titles[0], "text": "\n".join(difference.a), "numbers": False},
            "b": {"title": titles[1], "text": "\n".join(difference.b), "numbers": False},
            "changes": [[c.a_first, c.a_end, c.b_first, c.b_end] for c in difference.changes],
            "summary": summary or str(describe_line_diff(difference)),
        }
    )


def pack(content: Mapping[str, Any]) -> str:
    """JSON as base64 of gzip: letters, digits, ``+``, ``/`` and ``=``, so that no element can be closed by it."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)).decode()


class _Origins:
    """Files, origins and chains by the numbers that stand for them."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.origins: dict[tuple[int, int], int] = {}
        self.chains: dict[tuple[int, ...], int] = {}

    def chain(self, line: CodeLine) -> int:
        """The number of the chain of a line; -1 if its origin is not known."""
        if not line.origins:
            return -1
        return self._number(self.chains, tuple(dict.fromkeys(map(self._place, line.origins))))

    def _place(self, origin: SourceLine) -> int:
        return self._number(self.origins, (self._number(self.files, origin.file), origin.line))

    @staticmethod
    def _number(known: dict[Any, int], value: Any) -> int:
        return known.setdefault(value, len(known))


def _pane(listing: CodeListing, compiler: Compiler, origins: _Origins, control: bool) -> dict[str, Any]:
    language = language_of(listing.kind, compiler)
    lines = with_file_names(listing.lines) if listing.kind == "source" and language == "python" else listing.lines
    own_numbers = any(line.number is not None for line in lines)
    codes = [format_control(line.control) if line.control is not None else None for line in lines] if control else []
    return {
        "key": listing.kind,
        "short": KIND_NAMES[listing.kind],
        "title": str(format_listing(listing)),
        "language": language,
        "text": "\n".join(line.text for line in lines),
        # SASS has addresses instead of line numbers.
        "numbers": [line.number for line in lines] if own_numbers else None if _has_addresses(listing) else False,
        "chain": [origins.chain(line) for line in lines],
        "marks": [[number, mark] for number, line in enumerate(lines) for mark in line.marks],
        "loops": [] if listing.kind == "main-loop" else list(_loops(lines)),
        "control": codes if any(codes) else None,
        "note": str(describe_lines_unknown(listing)),
    }


def with_file_names(lines: Sequence[CodeLine]) -> tuple[CodeLine, ...]:
    """The lines of a source of Triton, in which a function may be from any file: a comment with the name of its file before each
    function whose place is known, so that nobody reads the line numbers of several files as those of one.

    >>> def line(text, file=None, number=None):
    ...     return CodeLine(text=text, origins=() if file is None else (SourceLine(file=file, line=number),), number=number)
    >>> source = line("@triton.jit"), line("def f():", "a/x.py", 10), line("@triton.jit"), line("def g():", "a/y.py", 4)
    >>> [one.text for one in with_file_names(source)]
    ['# x.py', '@triton.jit', 'def f():', '# y.py', '@triton.jit', 'def g():']
    """
    named: list[CodeLine] = []
    before: tuple[str, int] | None = None
    for line in lines:
        if line.origins and line.number is not None:
            file = line.origins[0].file
            if before != (file, line.number - 1):
                decorated = bool(named) and named[-1].number is None and named[-1].text.startswith("@")
                named.insert(len(named) - decorated, CodeLine(text=f"# {file.rpartition('/')[2]}"))
            before = file, line.number
        named.append(line)
    return tuple(named)


def _has_addresses(listing: CodeListing) -> bool:
    return listing.kind in ("sass", "main-loop")


def _loops(lines: Sequence[CodeLine]) -> Iterator[tuple[int, int, str]]:
    """First and last line of each part of a main loop, and its warp role if there are several."""
    several = len({line.role for line in lines} - {None}) > 1
    for role, group in groupby(enumerate(lines), key=lambda numbered: numbered[1].role):
        numbers = [number for number, _ in group]
        if role is not None:
            yield numbers[0], numbers[-1], str(role) if several else ""
