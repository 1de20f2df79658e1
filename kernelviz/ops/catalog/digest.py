"""The source digest of a variant: a hash of the code that it runs, so that figures of different code are never merged.

What counts is the closure of imports and ``#include``s, within `kernelviz.ops`, of the function that binds the variant:

- of the module that defines the function: the function itself and those top-level definitions that it uses, directly or through
  others, so that a change of one variant leaves the digest of its neighbours alone;
- every module of `kernelviz.ops` that these import (also inside functions, but not for type checkers only), whole, and what those
  import. `kernelviz.ops.catalog` is left out, because it declares variants and computes nothing, and of `kernels/nvrtc.py` all
  but what the compiler gets (`DIGESTED`): it loads and launches kernels, as Triton and torch do, whose code does not
  count either;
- every kernel file that any of this names by a string (``"cuda.cu"``, beside the Python file), with the headers that it includes;
- if a factory makes the function: the plain values and functions that its closure has from the factory. A function of another
  module counts with that whole module.

Comments, docstrings, formatting and paths do not count (`source_code`), so a moved file keeps its digest. What a decorator
`@variant(…)` is given does not count either: those are facts about the variant, and a result states the configuration apart.
For a plug-in the whole file counts, with the modules and kernel files in its folder that it imports and names.

Nothing is imported: files are only read, so that a process without torch can take the digest.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

from kernelviz.ops.catalog.source_code import FILE_MARK, INCLUDE, Definition, Import, Module, c_lines, python_module

Read = Callable[[Path], str]
"""Returns the text of a file. Errors: OSError if there is no such file."""
PACKAGE = "kernelviz.ops"
ROOT = Path(__file__).parents[1]
DECLARING = ("catalog",)
"""Packages of `kernelviz.ops` whose code is not part of any variant."""
DIGESTED = "DIGESTED"
"""A module that launches kernels names here, in a tuple of strings, those of its functions that decide the machine code. Only
they and what they use count."""
HEADERS = Path("kernels", "headers")
"""The folder of device code that several families include."""


def read_source(path: Path) -> str:
    """The text of a file on disk. Errors: OSError."""
    return path.read_text(encoding="utf-8")


def source_digest(bind: Callable[..., object], name: str, read: Read = read_source) -> str:
    """SHA-256 (16 hex digits) of the code that a bind function runs; of the name alone if its source cannot be read."""
    try:
        return Closure(read).digest(bind)
    except (OSError, TypeError, SyntaxError, ValueError):
        return _hash([name])[:16]


class Closure:
    """The code that a bind function runs. `root`: the folder of the package `kernelviz.ops`, which may be another version."""

    def __init__(
        self,
        read: Read = read_source,
        root: Path = ROOT,
        declaring: tuple[str, ...] = DECLARING,
        headers: Path = HEADERS,
    ) -> None:
        self._root, self._declaring, self._headers = root, declaring, root / headers
        self._read_file = read
        self._texts: dict[Path, str | None] = {}
        self._parts: set[str] = set()
        self._functions: dict[int, str] = {}
        self._wholes: dict[Path, str] = {}
        self._entry: Path | None = None
        self._targets: dict[tuple[Import, Path], tuple[Path | None, str]] = {}
        self.files: dict[Path, None] = {}

    def digest(self, bind: Callable[..., object]) -> str:
        """SHA-256 (16 hex digits). Errors: OSError, SyntaxError; TypeError if it is not a Python function."""
        if not isinstance(_function_in(bind), FunctionType):
            raise TypeError(f"{bind!r} is not a Python function")
        return _hash(sorted({self._value(bind), *self._parts}))[:16]

    # --- values in the closure of a function

    def _value(self, value: object) -> str:
        """The text of a value that is part of the code: the value itself if it is plain, or a hash of the code of a function."""
        match value:
            case functools.partial():
                arguments = (value.func, value.args, sorted(value.keywords.items()))
                return f"partial({self._value(arguments)})"
            case FunctionType():
                if id(value) not in self._functions:
                    self._functions[id(value)] = ""  # it may be in its own closure
                    self._functions[id(value)] = self._function(value)
                return self._functions[id(value)]
            case None | bool() | int() | float() | complex() | str() | bytes():
                return repr(value)
            case tuple() | list():
                return f"({','.join(map(self._value, value))})"
            case dict():
                return f"{{{','.join(f'{self._value(k)}:{self._value(v)}' for k, v in value.items())}}}"
            case ModuleType():
                path = self._module_path(value.__name__)
                return self._whole(path) if path else value.__name__
        function = _function_in(value)
        if isinstance(function, FunctionType):
            return self._value(function)
        kind = value if isinstance(value, type) else type(value)
        path = self._module_path(kind.__module__)
        return f"{kind.__qualname__} {self._whole(path) if path else kind.__module__}"

    def _function(self, function: FunctionType) -> str:
        own = self._module_path(function.__module__)
        path = own or Path(inspect.getsourcefile(function) or inspect.getfile(function))
        module = python_module(self._text(path))
        self.files[path] = None
        definitions = module.functions(function.__qualname__)
        self._entry = self._entry or path
        if own is None or not definitions or path != self._entry:
            self._whole(path)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        captured = sorted(f"{name}={self._value(_content(cell))}" for name, cell in cells)
        defaults = (function.__defaults__, function.__kwdefaults__) if "<locals>" in function.__qualname__ else ()
        texts = [self._definition(one, path) for one in definitions]
        used = [] if own is None else self._used(definitions, module, path)
        return _hash([*texts, *captured, self._value(defaults), *used])

    def _used(self, definitions: Iterable[Definition], module: Module, path: Path) -> list[str]:
        """The top-level definitions and imports that these use, directly or through others."""
        reached = _reached_from({name for one in definitions for name in one.uses}, module)
        texts = {self._definition(one, path) for one in reached.definitions}
        return sorted(texts) + self._imports(reached.imports, path)

    # --- files

    def _whole(self, path: Path) -> str:
        """The hash of a Python file without its imports, which become part of the closure as well."""
        if path in self._wholes:
            return self._wholes[path]
        text = self._text(path)
        self.files[path] = None
        try:
            module = python_module(text)
        except SyntaxError:
            own = self._wholes[path] = _hash([text])
            self._parts.add(own)
            return own
        deciding = _literal(module, DIGESTED)
        if deciding:
            module = _reached_from(deciding, module)
        own = self._wholes[path] = _own_hash(module)
        codes = [self._definition(one, path) for one in module.definitions]
        self._parts.add(_hash([own, *codes, *self._imports(module.imports, path)]))
        return own

    def _definition(self, one: Definition, path: Path) -> str:
        """The text of a definition, with the contents of the files that it names and imports instead of their names."""
        text = FILE_MARK.sub(lambda mark: self._kernel_file(path.parent / mark[1]) or repr(mark[1]), one.text)
        return " ".join([text, *self._imports(one.imports, path)])

    def _imports(self, imports: Iterable[Import], path: Path) -> list[str]:
        return sorted({self._import(one, path) for one in imports})

    def _import(self, one: Import, path: Path) -> str:
        """The content that the import binds and its name; the path only if the module is not read."""
        key = (one, path.parent)
        if key not in self._targets:
            self._targets[key] = self._target(one, path)
        target, symbol = self._targets[key]
        if target is not None:
            return f"import {self._whole(target)} {symbol} {one.bound if symbol or one.symbol else ''}"
        if one.module.partition(".")[0] == PACKAGE.partition(".")[0]:
            return f"import {one.symbol} {one.bound}"
        return f"import {'.' * one.level}{one.module} {one.symbol} {one.bound}"

    def _target(self, one: Import, path: Path) -> tuple[Path | None, str]:
        """The file that is imported (None: it is not read) and the name that is imported from it (empty: the module itself)."""
        if one.level:
            folder = path.parents[one.level - 1]
            bases = [folder.joinpath(*one.module.split("."))] if one.module else [folder]
        elif one.module == PACKAGE or one.module.startswith(f"{PACKAGE}."):
            parts = one.module.split(".")[2:]
            if [*parts, one.symbol][0] in self._declaring:
                return None, one.symbol
            bases = [self._root.joinpath(*parts)]
        elif one.module.partition(".")[0] == PACKAGE.partition(".")[0] or path.is_relative_to(self._root):
            return None, one.symbol
        else:  # a plug-in: modules in its folder, or in the package that it is part of
            parts = one.module.split(".")
            bases = [path.parent.joinpath(*parts)]
            bases += [up.parent.joinpath(*parts) for up in path.parents if up.name == parts[0]]
        for base in bases:
            inner = self._file(base / one.symbol) if one.symbol else None
            if inner is not None:
                return inner, ""
            outer = self._file(base)
            if outer is not None and base != self._root:
                return outer, one.symbol
        return None, one.symbol

    def _module_path(self, name: str) -> Path | None:
        """The file of a module of `kernelviz.ops`; None for others."""
        if not name.startswith(f"{PACKAGE}."):
            return None
        parts = name.split(".")[2:]
        return None if parts[0] in self._declaring else self._file(self._root.joinpath(*parts))

    def _file(self, base: Path) -> Path | None:
        """The Python file of a module, given its path without the suffix."""
        for path in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if self._has(path):
                return path
        return None

    def _kernel_file(self, path: Path, or_in: Path | None = None) -> str | None:
        """The hash of a kernel file without its headers, which become part of the closure as well. None: no such file."""
        if not self._has(path):
            return None if or_in is None else self._kernel_file(or_in)
        lines = c_lines(self._text(path))
        own = _hash(line for line in lines if INCLUDE.match(line) is None)
        if path not in self.files:
            self.files[path] = None
            self._parts.add(own)
            self._parts.add(_hash([own, *(self._line(line, path) for line in lines)]))
        return own

    def _line(self, line: str, path: Path) -> str:
        """A line of C code; that of an ``#include`` with the content of the header instead of its name."""
        included = INCLUDE.match(line)
        if included is None:
            return line
        return self._kernel_file(path.parent / included[1], self._headers / included[1]) or line

    def _has(self, path: Path) -> bool:
        try:
            self._text(path)
        except OSError:
            return False
        return True

    def _text(self, path: Path) -> str:
        """Errors: FileNotFoundError."""
        if path not in self._texts:
            try:
                self._texts[path] = self._read_file(path)
            except (OSError, UnicodeDecodeError):
                self._texts[path] = None
        text = self._texts[path]
        if text is None:
            raise FileNotFoundError(path)
        return text


def _literal(module: Module, name: str) -> tuple[str, ...]:
    """The tuple of strings that a module assigns to a name; empty if it does not."""
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=str(target))], value=ast.Tuple() as value) if target == name:
                return tuple(str(one) for one in ast.literal_eval(value))
    return ()


def _reached_from(names: Iterable[str], module: Module) -> Module:
    """A module with only those definitions and imports that these names stand for, and those that they use in turn."""
    pending, seen = set(names), set(names)
    reached: dict[int, Definition] = {}
    while pending:
        name = pending.pop()
        for place, one in enumerate(module.definitions):
            if name in one.binds:
                reached[place] = one
                pending |= one.uses - seen
                seen |= one.uses
    imports = tuple(one for one in module.imports if one.bound.partition(".")[0] in seen or one.symbol == "*")
    return replace(module, definitions=tuple(reached[place] for place in sorted(reached)), imports=imports)


@functools.lru_cache(maxsize=512)
def _own_hash(module: Module) -> str:
    return _hash(FILE_MARK.sub("", one.text) for one in module.definitions)


def _function_in(value: object) -> object:
    """The function inside an object that wraps one: a partial, a method, a cached function, a ``@triton.jit`` function."""
    for name in ("func", "__func__", "fn", "__wrapped__"):
        inner = getattr(value, name, None)
        if inner is not None and not isinstance(value, FunctionType):
            return _function_in(inner)
    return value


def _content(cell: object) -> object:
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:  # not bound yet
        return None


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
