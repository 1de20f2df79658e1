"""Sources of ops with one token changed, or with all changed that is no code. Nothing here uses `kernelviz` to read code."""

from __future__ import annotations

import ast
import functools
import io
import keyword
import re
import tokenize
from collections.abc import Iterator

Span = tuple[int, int]
"""From and up to a line, counted from 1."""
C_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def tokens(text: str, suffix: str, within: str | None = None) -> list[tuple[int, int]]:
    """Where the names and numbers of the code are (begin and end in the text), in order.

    `within`: only those inside the function of that qualified name. Left out are paths of our own imports and includes, what only
    type checkers read, and what `@variant(…)` is given.
    """
    if suffix == ".py":
        return list(_python_tokens(text, within))
    blank = C_COMMENT.sub(lambda found: " " * len(found[0]) if found[1] is None else found[0], text)
    blank = re.sub(r'#include "[^"]*"', lambda found: " " * len(found[0]), blank)
    return [found.span() for found in re.finditer(r"\b[A-Za-z_]\w*|\b\d+\b", blank)]


def changed(text: str, at: tuple[int, int]) -> str:
    """The text with another name or number there."""
    begin, _ = at
    return f"{text[:begin]}{'7' if text[begin].isdigit() else 'other_'}{text[begin:]}"


def _python_tokens(text: str, within: str | None) -> Iterator[tuple[int, int]]:
    tree, found = _taken_apart(text)
    begin, end = _span(_function(tree, within)) if within else (0, 10**9)
    return (at for line, at in found if begin <= line <= end)


@functools.cache
def _taken_apart(text: str) -> tuple[ast.Module, list[tuple[int, tuple[int, int]]]]:
    tree = ast.parse(text)
    excluded = {line for begin, end in _excluded(tree) for line in range(begin, end + 1)}
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.type == tokenize.NUMBER and token.string.isdigit()
        name = (
            token.type == tokenize.NAME
            and not keyword.iskeyword(token.string)
            and not keyword.issoftkeyword(token.string)
        )
        if (number or name) and token.start[0] not in excluded:
            begin = starts[token.start[0] - 1]
            found.append((token.start[0], (begin + token.start[1], begin + token.end[1])))
    return tree, found


def _excluded(tree: ast.Module) -> Iterator[Span]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in ("kernelviz", "__future__"):
                yield _span(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield _span(node)
            case ast.FunctionDef():
                yield from (_span(d) for d in node.decorator_list if ast.unparse(d).startswith("variant("))


def _span(node: ast.stmt | ast.expr) -> Span:
    return node.lineno, node.end_lineno or node.lineno


def _function(tree: ast.Module, qualified_name: str) -> ast.FunctionDef:
    node: ast.AST = tree
    for name in qualified_name.split(".<locals>."):
        node = next(n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n.name == name)
    assert isinstance(node, ast.FunctionDef)
    return node


def rewritten(text: str, suffix: str) -> str:
    """The same code with other comments, docstrings, quotes and lines."""
    if suffix == ".py":
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                node.value.value = "Another text."
        return "# Another comment.\n\n" + ast.unparse(tree).replace("\n", "  # a comment\n\n", 1) + "\n# The end.\n"
    other = C_COMMENT.sub(lambda found: found[1] or "/* another comment */", text)
    lines = [line if line.endswith("\\") else f"  {line}  // here" for line in other.split("\n")]
    return "// Another comment.\n\n" + "\n".join(lines)
