"""The code of a source file without comments, docstrings, formatting and the paths of its imports.

Python code is compared by its syntax tree, written as text here and not by `ast.dump`, whose text differs between versions of
Python. C++ and CUDA code is compared by its tokens, preprocessor lines as lines.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

KERNEL_FILE = re.compile(r"[\w./-]+\.(?:cu|cuh|cpp|cc|h|hpp)")
"""A string constant that may name a kernel file."""
_MARK = "\0"
FILE_MARK = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}")
"""The form of a string that may name a kernel file in the text of Python code; group 1 is the name."""
INCLUDE = re.compile(r'^# ?include "([^"]+)"$')
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, order=True, slots=True)
class Import:
    """One name that an import statement binds. `symbol` is None for ``import module``, `bound` is the name in this module."""

    level: int
    module: str
    symbol: str
    bound: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A part of a module: the names that it binds at the top level and those that it uses, its text, and what it imports."""

    binds: frozenset[str]
    uses: frozenset[str]
    text: str
    imports: tuple[Import, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A Python file: its top-level statements except imports, and its top-level imports."""

    definitions: tuple[Definition, ...]
    imports: tuple[Import, ...]
    tree: ast.Module
    own_decorators: frozenset[str]

    def functions(self, qualified_name: str) -> tuple[Definition, ...]:
        """The function of that qualified name (``_ladder.<locals>.torch_eager``): each of them if a factory defines it
        several times, the enclosing function for a lambda, empty if there is none."""
        nodes: list[ast.AST] = [self.tree]
        for name in qualified_name.replace(".<locals>", "").split("."):
            if name == "<lambda>":
                break
            within = [node for outer in nodes for node in _defined_in(outer) if node.name == name]
            if not within:
                return ()
            nodes = [*within]
        if nodes == [self.tree]:
            return self.definitions
        return tuple(_cached_definition(node, self.own_decorators) for node in nodes)


def _defined_in(outer: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Functions and classes in a body, including its branches and loops, but not inside other functions and classes."""
    for child in ast.iter_child_nodes(outer):
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield child
        elif not isinstance(child, ast.expr):
            yield from _defined_in(child)


@functools.lru_cache(maxsize=512)
def python_module(text: str) -> Module:
    """The definitions and imports of a Python file. Errors: SyntaxError."""
    tree = ast.parse(text)
    own = frozenset(
        one.bound
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelviz.ops")
        for one in _imports(node)
        if one.symbol == "variant"
    )
    definitions = tuple(_definition(node, own) for node in tree.body if not isinstance(node, _IMPORTS))
    imports = tuple(one for node in tree.body if isinstance(node, _IMPORTS) for one in _imports(node))
    return Module(definitions, imports, tree, own)


@functools.lru_cache(maxsize=2048)
def _cached_definition(node: ast.AST, own_decorators: frozenset[str]) -> Definition:
    return _definition(node, own_decorators)


def _definition(node: ast.AST, own_decorators: frozenset[str]) -> Definition:
    reader = _Reader(own_decorators)
    text = reader.text(node)
    return Definition(frozenset(_bound(node)), frozenset(reader.names), text, tuple(sorted(set(reader.imports))))


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a top-level statement binds or changes, including ``TABLE["x"] = 1`` and ``TABLE.update(…)``."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (one.bound.partition(".")[0] for one in _imports(node))
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))
        case ast.Expr():
            yield from (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
        case ast.For(target=target):
            yield from (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name))
    if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.expr)):
        for child in ast.iter_child_nodes(node):
            yield from _bound(child)


class _Reader:
    """Writes syntax trees as text, and collects their names and imports."""

    def __init__(self, own_decorators: frozenset[str]) -> None:
        self.names: set[str] = set()
        self.imports: list[Import] = []
        self._own_decorators = own_decorators

    def text(self, node: object) -> str:
        """The text of a node; empty for docstrings, imports (they are collected separately) and code for type checkers only."""
        match node:
            case ast.Import() | ast.ImportFrom():
                self.imports += _imports(node)
                return ""
            case ast.Expr(value=ast.Constant(value=str())):
                return ""
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return "".join(map(self.text, node.orelse))
            case ast.Constant(value=str() as value) if KERNEL_FILE.fullmatch(value):
                return f"{_MARK}{value}{_MARK}"
            case ast.Constant(value=value):
                return repr(value)
            case ast.Name(id=name):
                self.names.add(name)
                return name
            case ast.AST():
                fields = [f"{name}={text}" for name in node._fields if (text := self._field(node, name))]
                return f"{type(node).__name__}({' '.join(fields)})"
            case list():
                return f"[{','.join(filter(None, map(self.text, node)))}]" if node else ""
        return "" if node is None else repr(node)

    def _field(self, node: ast.AST, name: str) -> str:
        value = getattr(node, name, None)
        if name == "ctx":
            return ""
        if name == "decorator_list":
            value = [one for one in value or () if not self._declares(one)]
        return self.text(value)

    def _declares(self, decorator: ast.expr) -> bool:
        """Whether it is the decorator `variant`, whose arguments are facts about the function and not its code."""
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return isinstance(called, ast.Name) and called.id in self._own_decorators


def _imports(node: ast.Import | ast.ImportFrom) -> list[Import]:
    if isinstance(node, ast.Import):
        return [Import(0, one.name, "", one.asname or one.name) for one in node.names]
    if node.module == "__future__":
        return []
    return [Import(node.level, node.module or "", one.name, one.asname or one.name) for one in node.names]


_C_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |R"(?P<fence>[^()\s]*)\(.*?\)(?P=fence)"   # a raw string
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |\.?\d(?:[eEpP][+-]|'?[\w.])*
    |[A-Za-z_]\w*
    |<<<|>>>|<<=|>>=|<=>|\.\.\.|->\*|\#\#|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=
    |.
    """,
    re.VERBOSE | re.DOTALL,
)


@functools.lru_cache(maxsize=512)
def c_lines(text: str) -> tuple[str, ...]:
    """The code of a C++ or CUDA file: each preprocessor directive, and the tokens between two directives.

    >>> c_lines('#include  "a.cuh" // one\\nint f() { /* two */ return 1; }\\n')
    ('#include "a.cuh"', 'int f ( ) { return 1 ; }')
    """
    lines: list[str] = []
    tokens: list[str] = []
    for line in _without_comments(text.replace("\\\n", " ")).split("\n"):
        if line.lstrip().startswith("#"):
            if tokens:
                lines.append(" ".join(tokens))
            tokens = []
            lines.append(" ".join(line.split()))
        else:
            tokens += [token[0] for token in _C_TOKEN.finditer(line) if token["space"] is None]
    return (*lines, " ".join(tokens)) if tokens else tuple(lines)


def _without_comments(text: str) -> str:
    return "".join(
        " " if token["space"] and token["space"].startswith("/") else token[0] for token in _C_TOKEN.finditer(text)
    )
