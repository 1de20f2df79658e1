"""Where the lines of the source artifacts of a kernel are in the files that line tables name.

- NVRTC and nvcc: an artifact is a whole file, so its lines are those of the file with its name.
- Triton: an artifact has the source of the kernel's function and of the functions that it calls, each from its `def` on. PTX says
  in which line of which file the kernel's function begins. Of another function, nothing says that. Its place is derived only if
  exactly one position makes every line and column that the compiler names in that file the beginning of an expression or a
  statement of the function; otherwise it is unknown.
- Inductor: the artifact is a module, in which the kernel is a string, so its lines are not those that the compiler names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from warnings import catch_warnings, simplefilter

from kernelviz.core.code import Compiler
from kernelviz.core.code_listing import CodeLine, CodeListing, LinesUnknown, SourceLine
from kernelviz.machine_code.ptx_listing import function_starts, locations

_DEFINITION = re.compile(r"def\s+(\w+)\s*\(")
_DECORATOR = re.compile(r"@(?:triton|gluon)\.jit$")
_MOST_PARSED_BYTES = 200_000
_FEWEST_LINES = 3
"""A function is placed by at least so many lines that the compiler names."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source artifact: the name of its file, which Triton's have not, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class _Function:
    """A function in a source of Triton: its lines there (from 1, both included), and of which source."""

    name: str
    first: int
    last: int


def source_listing(
    sources: Sequence[Source], compiler: Compiler, kernel: str, files: Collection[str], ptx: str | None
) -> CodeListing:
    """The sources of a kernel in one listing, each file after a comment with its name. `files`: those that the line tables of its
    PTX and its cubin name. `ptx`: the text of its PTX, which says where Triton's functions are."""
    lines: list[CodeLine] = []
    for source in sources:
        if len(sources) > 1:
            if lines:
                lines.append(CodeLine(text=""))
            lines.append(CodeLine(text=f"// {source.name or 'source'}"))
        texts = source.text.splitlines()
        origins = _origins(source, texts, compiler, kernel, files, ptx)
        for number, text in enumerate(texts, start=1):
            origin = origins.get(number)
            own = origin.line if origin is not None else None if origins else number
            lines.append(CodeLine(text=text, origins=() if origin is None else (origin,), number=own))
    known = tuple(dict.fromkeys(origin.file for line in lines for origin in line.origins))
    unknown: LinesUnknown | None = None if known else "other_files" if files else "no_line_table"
    return CodeListing(kind="source", lines=tuple(lines), files=known, lines_unknown=unknown)


def _origins(
    source: Source, texts: Sequence[str], compiler: Compiler, kernel: str, files: Collection[str], ptx: str | None
) -> Mapping[int, SourceLine]:
    """The origin of each line of a source, by its number from 1."""
    if compiler in ("nvrtc", "nvcc"):
        named = [file for file in files if file.rpartition("/")[2] == source.name]
        if len(named) != 1:
            return {}
        return {number: SourceLine(file=named[0], line=number) for number in range(1, len(texts) + 1)}
    if compiler == "triton" and ptx is not None:
        return dict(_lines_of_functions(texts, kernel, ptx))
    return {}


def _lines_of_functions(texts: Sequence[str], kernel: str, ptx: str) -> Iterator[tuple[int, SourceLine]]:
    functions = list(_functions(texts))
    beginning = function_starts(ptx).get(kernel)
    own = next((f for f in functions if f.name == kernel), None)
    named = locations(ptx)
    if beginning is not None and own is not None:
        shift = beginning.line - own.first
        yield from _shifted(own, beginning.file, shift)
        inside = range(own.first + shift, own.last + shift + 1)
        named[beginning.file] = {(line, column) for line, column in named.get(beginning.file, ()) if line not in inside}
    for function in functions:
        if function is own:
            continue
        positions = _positions("\n".join(texts[function.first - 1 : function.last]))
        fits = [(file, shift) for file, stated in named.items() for shift in _fitting(positions, stated)]
        if len(fits) == 1:
            file, shift = fits[0]
            yield from _shifted(function, file, shift - (function.first - 1))


def _shifted(function: _Function, file: str, shift: int) -> Iterator[tuple[int, SourceLine]]:
    for number in range(function.first, function.last + 1):
        if number + shift > 0:
            yield number, SourceLine(file=file, line=number + shift)


def _functions(texts: Sequence[str]) -> Iterator[_Function]:
    """The functions of a source, each from its `def` up to the next decorator."""
    starts = [n for n, text in enumerate(texts) if _DECORATOR.match(text)]
    for start, end in pairwise([*starts, len(texts)]):
        if start + 1 < len(texts) and (match := _DEFINITION.match(texts[start + 1])):
            last = end
            while last > start + 2 and not texts[last - 1].strip():
                last -= 1
            yield _Function(match[1], start + 2, last)


def _positions(source: str) -> frozenset[tuple[int, int]]:
    """Lines (from 1) and columns at which an expression or a statement begins. Empty if Python cannot read it."""
    if len(source) > _MOST_PARSED_BYTES:
        return frozenset()
    try:
        with catch_warnings():
            simplefilter("ignore")  # of an invalid escape in a foreign text
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(_beginnings(ast.walk(tree)))


def _beginnings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, int]]:
    for node in nodes:
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        if isinstance(line, int) and isinstance(column, int):
            yield line, column


def _fitting(positions: frozenset[tuple[int, int]], stated: Collection[tuple[int, int]]) -> list[int]:
    """By how much lines of the function have to be shifted so that all that the compiler names are positions in it."""
    if not positions or len({line for line, _ in stated}) < _FEWEST_LINES:
        return []
    first = min(stated)
    candidates = {first[0] - line for line, column in positions if column == first[1]}
    return [
        shift
        for shift in sorted(candidates)
        if shift >= 0 and all((line - shift, column) in positions for line, column in stated)
    ]
