"""A loader for libraries of nvcc that compiles them into the cache on disk, and loads nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelviz.ops.kernels import nvcc, nvrtc

Compiled = Callable[[str, bytes, int], object]
"""Is called with each library: the name of its file, its cubin, and 0, because its host code asks for shared memory."""


class CompileOnlyNvcc:
    """See `kernelviz.ops.kernels.nvcc.Loader`; assign it to `nvcc.active`. Needs no GPU."""

    def __init__(self, arch: str, compiled: Compiled = lambda name, cubin, shared: None) -> None:
        """`arch`: for example ``sm_90``."""
        self.arch = arch
        self._compiled = compiled

    def load(self, build: nvcc.Build) -> Any:
        library = nvcc.compiled(build, nvrtc.architecture(self.arch, specific=True))
        self._compiled(build.source.stem, library.with_suffix(".cubin").read_bytes(), 0)
        return _NotLoaded()

    def stream(self) -> int:
        return 0


class _NotLoaded:
    """A library all of whose functions return an empty text, which says that they succeeded."""

    def __getattr__(self, name: str) -> _Function:
        return _Function()


class _Function:
    restype: object = None

    def __call__(self, *arguments: object) -> bytes:
        return b""
