"""Whether a variant has replaced functions of kernelviz or of Python's clock in the process that measures it.

This finds code that patches the clock or the correctness gate. It is no protection against determined code, which can put a
function back before anybody looks, or change what a function reads. `--untrusted` is for code that nobody has read.
"""

import builtins
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

_OURS, _VARIANTS, _TEXT = "kernelviz.", "kernelviz.ops.", "kernelviz.text."
"""No result depends on a function that makes text."""
_FUNCTIONS = (FunctionType, BuiltinFunctionType, classmethod, staticmethod, property)


@dataclass(frozen=True, slots=True)
class _Namespace:
    """A module or a class: what it contains now, and its functions, each with its code, and its size when it was seen first.

    A new function of a class may hide one of its base. A new one of a module is used by nobody unless it hides one of Python's;
    torch.compile adds functions to the module whose code it compiles.
    """

    name: str
    is_class: bool
    members: Mapping[str, Any]
    functions: Mapping[str, tuple[Any, CodeType | None]]
    size: int

    @classmethod
    def of(cls, name: str, members: Mapping[str, Any], *, is_class: bool) -> "_Namespace":
        functions = {n: (value, _code(value)) for n, value in list(members.items()) if _decides(value)}
        return cls(name, is_class, members, functions, len(members))

    def replaced(self) -> Iterator[str]:
        for name, (function, code) in self.functions.items():
            if self.members.get(name) is not function or _code(function) is not code:
                yield f"{self.name}.{name}"
        if len(self.members) != self.size:
            new = [n for n, value in list(self.members.items()) if _decides(value) and n not in self.functions]
            yield from (f"{self.name}.{name}" for name in new if self.is_class or hasattr(builtins, name))


class OwnFunctions:
    """The functions of the modules that measure, as they were when each module was seen first."""

    def __init__(self) -> None:
        self._namespaces: list[_Namespace] = []
        self._modules: set[str] = set()
        self._loaded = 0
        self.replaced()

    def replaced(self) -> tuple[str, ...]:
        """The names of the functions that are others now, or new, in order. A variant that does no such thing costs 1 ms."""
        if len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            for name, module in list(sys.modules.items()):
                ours = name.startswith(_OURS) and not name.startswith((_VARIANTS, _TEXT))
                if (ours or module is time) and name not in self._modules:
                    self._modules.add(name)
                    self._namespaces += _namespaces(module)
        return tuple(sorted(name for one in self._namespaces for name in one.replaced()))


def _namespaces(module: ModuleType) -> Iterator[_Namespace]:
    """Those of the module and of its classes."""
    yield _Namespace.of(module.__name__, vars(module), is_class=False)
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield _Namespace.of(f"{module.__name__}.{name}", vars(value), is_class=True)


def _decides(value: object) -> bool:
    """Whether it is a function on which a result can depend."""
    return isinstance(value, _FUNCTIONS) and not str(getattr(value, "__module__", "")).startswith(_TEXT)


def _code(value: object) -> CodeType | None:
    """The code of a function, which may get other code and stay the same object."""
    return value.__code__ if isinstance(value, FunctionType) else None
