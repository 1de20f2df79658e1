"""Kernels of our CUDA C++ files: source with headers, PTX and cubin, by a driver round the one that loads and launches them.

NVRTC makes PTX on its way to a cubin, but the cubin alone is stored in the cache of `kernelviz.ops.kernels.nvrtc`. So the program
is watched while the driver compiles, and the PTX is stored beside the cubin. Where the cubin came from the cache and its PTX is
not there, NVRTC makes the PTX alone, once, for the virtual architecture: it is the same, and takes half of the time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelviz.core import CompiledCode
from kernelviz.hardware.whole_files import write_whole
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.ops.kernels import nvrtc


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel as it was requested from the driver."""

    source: Path
    name: str
    defines: tuple[tuple[str, str], ...]
    arch: str


class NvrtcKernels:
    """See `capture.Watcher`."""

    def __init__(self) -> None:
        self._driver: _WatchingDriver | None = None

    def install(self, undo: ExitStack) -> None:
        if self._driver is None:
            self._driver = _WatchingDriver(nvrtc.active)
            undo.callback(setattr, nvrtc, "active", nvrtc.active)
            nvrtc.active = self._driver

    def bound(self) -> None:
        if self._driver is not None:
            self._driver.launched.clear()

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        if self._driver is None:
            return ()
        requested, launched = self._driver.requested, self._driver.launched
        used: dict[_Kernel, int | None] = {}
        for key in [key for key in launched if key in requested] or requested:
            kernel = requested[key][1]
            sizes = [size for size in (used.get(kernel), launched.get(key)) if size is not None]
            used[kernel] = max(sizes, default=None)
        return [_code_of(kernel, shared_bytes, artifacts) for kernel, shared_bytes in used.items()]


class _WatchingDriver:
    """Passes everything on to the driver inside, and notes which kernels it loads and launches."""

    def __init__(self, inner: nvrtc.Driver) -> None:
        self._inner = inner
        self.requested: dict[int, tuple[Any, _Kernel]] = {}
        """By the identity of the loaded kernel, which is held here so that the identity stays its own."""
        self.launched: dict[int, int] = {}
        """By the same identity, the most dynamic shared memory that a block of the kernel was launched with, bytes. A kernel is
        often loaded for more than a launch uses (`nvrtc.kernel`)."""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        with _programs() as programs:
            loaded = self._inner.kernel(source, name, defines, shared_bytes, cluster, specific)
        arch = nvrtc.architecture(_arch(self._inner), specific)
        requested = _Kernel(source, name, tuple(sorted(defines.items())), arch)
        self.requested[id(loaded)] = loaded, requested
        for program in programs:
            with suppress(Exception):  # it is made again where it is needed
                _store(_ptx_path(requested), _ptx_of(program.handle))
        return loaded

    def launch(
        self,
        kernel: Any,
        blocks: nvrtc.Size,
        threads: nvrtc.Size,
        cluster: int,
        shared_bytes: int,
        args: tuple[Any, ...],
    ) -> None:
        self.launched[id(kernel)] = max(shared_bytes, self.launched.get(id(kernel), 0))
        self._inner.launch(kernel, blocks, threads, cluster, shared_bytes, args)

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        return self._inner.resident(kernel, threads, cluster, shared_bytes)


@contextmanager
def _programs() -> Iterator[list[Any]]:
    """The programs of cuda.core that are compiled to a cubin meanwhile."""
    programs: list[Any] = []
    try:
        from cuda import core
    except ImportError:
        yield programs
        return
    original = core.Program

    class Watched:
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            self._program = original(*arguments, **keywords)

        def compile(self, target: str, *arguments: Any, **keywords: Any) -> Any:
            compiled = self._program.compile(target, *arguments, **keywords)
            programs.append(self._program)
            return compiled

        def __getattr__(self, name: str) -> Any:
            return getattr(self._program, name)

    core.Program = Watched
    try:
        yield programs
    finally:
        core.Program = original


def _arch(driver: nvrtc.Driver) -> str:
    """The architecture that a driver compiles for: its own, or that of torch's current device."""
    stated = getattr(driver, "arch", None)
    if isinstance(stated, str):
        return stated
    import torch

    major, minor = torch.cuda.get_device_capability(torch.cuda.current_device())
    return f"sm_{major}{minor}"


def _code_of(kernel: _Kernel, shared_bytes: int | None, artifacts: Artifacts) -> CompiledCode:
    files = nvrtc.with_headers(kernel.source)
    sources = tuple(a for path in files for a in artifacts.add("source", path.read_bytes(), name=path.name))
    cubin = nvrtc.compile_cubin(kernel.source, kernel.arch, dict(kernel.defines), kernel.name)
    return CompiledCode(
        kernel=kernel.name,
        compiler="nvrtc",
        version=_version(),
        arch=kernel.arch,
        shared_bytes=shared_bytes,
        defines=dict(kernel.defines),
        artifacts=(*sources, *artifacts.of_kinds((("ptx", _ptx(kernel)), ("cubin", cubin)))),
    )


def _ptx(kernel: _Kernel) -> bytes | None:
    """The PTX from the cache, or made by NVRTC and stored there; None if NVRTC refuses."""
    path = _ptx_path(kernel)
    with suppress(OSError):
        return path.read_bytes()
    from cuda.bindings import nvrtc as bindings

    virtual = kernel.arch.replace("sm_", "compute_")
    code, stated = nvrtc.code_and_options(kernel.source, virtual, dict(kernel.defines), kernel.name)
    options = stated.as_bytes("nvrtc")
    status, program = bindings.nvrtcCreateProgram(code.encode(), str(kernel.source).encode(), 0, [], [])
    if status != bindings.nvrtcResult.NVRTC_SUCCESS:
        return None
    try:
        (status,) = bindings.nvrtcCompileProgram(program, len(options), options)
        ptx = _ptx_of(program) if status == bindings.nvrtcResult.NVRTC_SUCCESS else None
    finally:
        bindings.nvrtcDestroyProgram(program)
    if ptx is not None:
        _store(path, ptx)
    return ptx


def _ptx_of(program: Any) -> bytes:
    """The PTX of a compiled program. Errors: ValueError."""
    from cuda.bindings import nvrtc as bindings

    status, size = bindings.nvrtcGetPTXSize(program)
    if status != bindings.nvrtcResult.NVRTC_SUCCESS or size < 2:
        raise ValueError(f"NVRTC has no PTX ({status})")
    text: bytes = b" " * size  # the binding writes into it
    bindings.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0")


@functools.cache
def _version() -> str:
    from cuda.bindings import nvrtc as bindings

    return ".".join(str(n) for n in bindings.nvrtcVersion()[1:])


def _ptx_path(kernel: _Kernel) -> Path:
    return nvrtc.cached_code("ptx", kernel.source, kernel.arch, dict(kernel.defines), kernel.name)


def _store(path: Path, content: bytes) -> None:
    """Write the file unless it is there. Errors of the disk are ignored, because it can be made again."""
    if not path.is_file():
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
