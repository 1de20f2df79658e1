"""Sources of a C++ variant: the C++ files that its source digest follows, or the Python file where it has none."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from kernelviz.core import CompiledCode
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.ops import Variant
from kernelviz.ops.catalog.digest import Closure

_SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")


class ExtensionSources:
    """See `capture.Watcher`. Nothing has to be watched, because the files are known from the variant."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    def install(self, undo: ExitStack) -> None:
        """There is no hook."""

    def bound(self) -> None:
        """There is no hook."""

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        if self._variant.backend != "cpp":
            return ()
        files = _files(self._variant.bind)
        sources = tuple(
            artifact for path in files for artifact in artifacts.add("source", path.read_bytes(), name=path.name)
        )
        kernel = files[0].stem if files else self._variant.name
        return [CompiledCode(kernel=kernel, compiler="c++", version=_compiler_version(), artifacts=sources)]


@functools.lru_cache(maxsize=64)
def _files(bind: Callable[..., object]) -> tuple[Path, ...]:
    closure = Closure()
    closure.digest(bind)
    sources = tuple(path for path in closure.files if path.suffix in _SUFFIXES)
    return sources or tuple(path for path in closure.files if path.suffix == ".py")[:1]


@functools.cache
def _compiler_version() -> str | None:
    """The first line of ``c++ --version``; None if it cannot be asked."""
    command = [*shlex.split(os.environ.get("CXX") or "c++"), "--version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return next(iter(answer.stdout.splitlines()), None) if answer.returncode == 0 else None
