"""Kernels of Triton: what `JITFunction.run` returns, and the source of the function with those that it calls.

`run` returns the compiled kernel in Triton 3.6 and 3.7, also one that was compiled before, so a sweep's later sizes are seen too.
Triton's own compilation hooks report only new compilations.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernelviz.core import CodeKind, CompiledCode
from kernelviz.measure.compiled_code.artifacts import Artifacts

KINDS: tuple[CodeKind, ...] = ("ttir", "ttgir", "ptx", "cubin")
"""The keys of a kernel's `asm` that are stored. LLVM's language (``llir``) is left out: few read it, and it is the longest."""


class TritonKernels:
    """See `capture.Watcher`."""

    def __init__(self) -> None:
        self._kernels: list[tuple[Any, Any]] = []
        self._in_bind: list[tuple[Any, Any]] = []
        self._installed = False

    def install(self, undo: ExitStack) -> None:
        jit: Any = sys.modules.get("triton.runtime.jit")
        if jit is None or self._installed:
            return
        self._installed = True
        replace_method(jit.JITFunction, "run", self._after, undo)

    def _after(self, function: Any, kernel: Any) -> None:
        if kernel is not None:
            self._kernels.append((function, kernel))

    def bound(self) -> None:
        self._in_bind, self._kernels = self._kernels, []

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        used = {id(kernel): (function, kernel) for function, kernel in self._kernels or self._in_bind}
        return [code_of(kernel, source_of(function), artifacts) for function, kernel in used.values()]


def replace_method(owner: Any, name: str, after: Callable[[Any, Any], None], undo: ExitStack) -> None:
    """Replace a method by one that passes the object and what the method returned to `after`; `undo` puts it back."""
    original = getattr(owner, name)

    def replaced(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = original(self, *arguments, **keywords)
        after(self, result)
        return result

    setattr(owner, name, replaced)
    undo.callback(setattr, owner, name, original)


def code_of(kernel: Any, source: str | None, artifacts: Artifacts) -> CompiledCode:
    """The description of a compiled kernel of Triton."""
    metadata = kernel.metadata
    asm: Mapping[str, Any] = kernel.asm
    return CompiledCode(
        kernel=str(getattr(metadata, "name", None) or kernel.name),
        compiler="triton",
        version=version(metadata),
        arch=arch_of(getattr(metadata, "target", None)),
        warps=getattr(metadata, "num_warps", None),
        shared_bytes=getattr(metadata, "shared", None),
        artifacts=artifacts.of_kinds((("source", source), *((kind, asm.get(kind)) for kind in KINDS))),
    )


def version(metadata: Any = None) -> str | None:
    """The version of Triton that compiled the kernel."""
    stated = getattr(metadata, "triton_version", None)
    triton: Any = sys.modules.get("triton")
    return stated or getattr(triton, "__version__", None)


def arch_of(target: Any) -> str | None:
    """The architecture of a target, for example ``sm_90``."""
    arch = getattr(target, "arch", None)
    return f"sm_{arch}" if getattr(target, "backend", None) == "cuda" and arch is not None else None


@lru_cache(maxsize=512)
def source_of(function: Any) -> str | None:
    """The source of a JIT function, after that of the JIT functions that it calls; None if it has none.

    First come the constants of their modules that they read, such as the tile sizes of a kernel that Helion generated.
    """
    parts: dict[int, str] = {}
    constants: dict[str, str] = {}
    for one in _called(function, set()):
        text = getattr(one, "src", None)
        if isinstance(text, str):
            constants.update(_constants(getattr(one, "fn", None)))
            language = "gluon" if one.is_gluon() else "triton"
            parts.setdefault(id(one), f"@{language}.jit\n" + text.strip("\n"))
    if not parts:
        return None
    lines = [f"{name} = tl.constexpr({value})" for name, value in constants.items()]
    return "\n\n\n".join([*(["\n".join(lines)] if lines else []), *parts.values()]) + "\n"


def _constants(python: Any) -> dict[str, str]:
    """The values of the constants (``tl.constexpr``) of its module that a function reads, by name."""
    names: Mapping[str, Any] = getattr(python, "__globals__", {})
    read: dict[str, Any] = {
        name: names.get(name) for name in getattr(getattr(python, "__code__", None), "co_names", ())
    }
    return {
        name: repr(value.value)
        for name, value in read.items()
        if type(value).__name__ == "constexpr" and type(value).__module__.startswith("triton.")
    }


def _called(function: Any, seen: set[int]) -> Iterator[Any]:
    """The JIT functions that this one calls, directly or through others, and then itself."""
    seen.add(id(function))
    python = getattr(function, "fn", None)
    code, names = getattr(python, "__code__", None), getattr(python, "__globals__", {})
    if python is not None and code is not None:
        closed = inspect.getclosurevars(python).nonlocals.values()
        values = [*(names.get(name) for name in code.co_names), *closed]
        # A helper may be an attribute of a module of one's own; those of Triton's language are not sources of the user.
        modules = [v for v in values if isinstance(v, types.ModuleType) and not v.__name__.startswith("triton")]
        values += [getattr(module, name, None) for module in modules for name in code.co_names]
        for value in values:
            jitted = hasattr(value, "src") and hasattr(value, "fn") and hasattr(value, "cache_key")
            own = not str(getattr(value, "__module__", "")).startswith("triton.")
            if jitted and own and id(value) not in seen:
                yield from _called(value, seen)
    yield function


def files_in_cache(kernel_hash: str, name: str) -> dict[CodeKind, bytes]:
    """The files that Triton's cache has of exactly this compiled kernel, by kind. Empty if the cache is another one."""
    cache: Any = sys.modules.get("triton.runtime.cache")
    if cache is None:
        return {}
    group = cache.get_cache_manager(kernel_hash).get_group(f"{name}.json") or {}
    files: dict[CodeKind, bytes] = {}
    for kind in KINDS:
        path = group.get(f"{name}.{kind}")
        if path is not None and Path(path).is_file():
            files[kind] = Path(path).read_bytes()
    return files
