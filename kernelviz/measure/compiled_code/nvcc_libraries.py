"""Libraries that nvcc compiled: the source, the macros, PTX and cubin, by a loader round the one that loads them.

Headers of other projects, such as those of CUTLASS, are not stored; the version of nvcc and the macros say what was compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from kernelviz.core import CompiledCode
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.ops.kernels import nvcc, nvrtc


class NvccLibraries:
    """See `capture.Watcher`. A library that a bind loads is what the first call uses."""

    def __init__(self) -> None:
        self._loader: _WatchingLoader | None = None

    def install(self, undo: ExitStack) -> None:
        if self._loader is None:
            self._loader = _WatchingLoader(nvcc.active)
            undo.callback(setattr, nvcc, "active", nvcc.active)
            nvcc.active = self._loader

    def bound(self) -> None:
        """The first call loads nothing."""

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        if self._loader is None:
            return ()
        return [_code_of(build, self._loader.arch, artifacts) for build in self._loader.loaded]


class _WatchingLoader:
    """Passes everything on to the loader inside, and notes what it loads."""

    def __init__(self, inner: nvcc.Loader) -> None:
        self._inner = inner
        self.loaded: dict[nvcc.Build, None] = {}

    def load(self, build: nvcc.Build) -> Any:
        library = self._inner.load(build)
        self.loaded[build] = None
        return library

    def stream(self) -> int:
        return self._inner.stream()

    @property
    def arch(self) -> str:
        """The architecture that the loader inside compiles for: its own, or that of torch's current device."""
        generation = getattr(self._inner, "arch", None)
        if not isinstance(generation, str):
            import torch

            major, minor = torch.cuda.get_device_capability(torch.cuda.current_device())
            generation = f"sm_{major}{minor}"
        return nvrtc.architecture(generation, specific=True)


def _code_of(build: nvcc.Build, arch: str, artifacts: Artifacts) -> CompiledCode:
    library = nvcc.compiled(build, arch)
    return CompiledCode(
        kernel=build.source.stem,
        compiler="nvcc",
        version=nvcc.nvcc_version(),
        arch=arch,
        defines=dict(build.defines),
        artifacts=(
            *artifacts.add("source", build.source.read_bytes(), name=build.source.name),
            *artifacts.add("ptx", library.with_suffix(".ptx").read_bytes()),
            *artifacts.add("cubin", library.with_suffix(".cubin").read_bytes()),
        ),
    )
