"""Triton's own languages (TTIR, TTGIR) line by line, with the source lines that MLIR's locations name.

An operation ends with `loc(#loc12)`, and the aliases are defined elsewhere in the text: `#loc12 = loc("file.py":38:35)`, a name
around another location (`loc("x"(#loc3))`), or a call (`loc(callsite(#loc1 at #loc2))`). Source: MLIR, "Location Dialect".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernelviz.core.code_listing import CodeLine, CodeListing, ListingKind, SourceLine

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'^"(.*?)":(\d+):(\d+)$')
_CALL = re.compile(r"^callsite\((#loc\d*) at (#loc\d*)\)$")
_INNER = re.compile(r'^(?:"[^"]*"\((#loc\d*)\)|fused(?:<.*?>)?\[(#loc\d*).*\])$')
_OPERATION = re.compile(r"loc\((#loc\d*)\)\s*$")
_DEEPEST = 32


def mlir_listing(kind: ListingKind, text: str) -> CodeListing:
    """The listing of TTIR or TTGIR."""
    raw = text.splitlines()
    aliases = {match[1]: match[2] for line in raw if (match := _ALIAS.match(line))}
    lines = []
    for line in raw:
        match = None if _ALIAS.match(line) else _OPERATION.search(line)
        lines.append(CodeLine(text=line, origins=() if match is None else _origins(match[1], aliases)))
    files = tuple(dict.fromkeys(origin.file for line in lines for origin in line.origins))
    return CodeListing(kind=kind, lines=tuple(lines), files=files, lines_unknown=None if files else "no_line_table")


def _origins(alias: str, aliases: Mapping[str, str], depth: int = 0) -> tuple[SourceLine, ...]:
    """The origins that a location stands for, from inside to outside; empty if it is unknown."""
    location = aliases.get(alias, "")
    if depth > _DEEPEST:
        return ()
    if match := _FILE.match(location):
        return (SourceLine(file=match[1], line=int(match[2])),) if int(match[2]) > 0 else ()
    if match := _CALL.match(location):
        return (_origins(match[1], aliases, depth + 1) + _origins(match[2], aliases, depth + 1))[:_DEEPEST]
    if match := _INNER.match(location):
        return _origins(match[1] or match[2], aliases, depth + 1)
    return ()
