"""CUDA C++ with host code through nvcc: compile a file to a shared library, once for each content, and load it.

NVRTC compiles device code alone. Libraries of templates such as CUTLASS also have host code, which chooses the grid and the
parameters of their kernels.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernelviz.core.errors import KernelvizError
from kernelviz.ops.kernels import nvrtc

DIGESTED = ("Build", "flags", "cutlass_headers")
"""What counts for the source digest of a variant: what the compiler gets. The rest caches and loads."""
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
_MOST_ERROR_LINES = 8
_LOG_END_CHARACTERS = 800


class CompilationError(KernelvizError):
    """nvcc failed; the message holds the errors of its log."""


@dataclass(frozen=True, slots=True)
class Build:
    """What nvcc gets: a file, macros, and folders of headers that do not belong to kernelviz."""

    source: Path
    defines: tuple[tuple[str, str], ...]
    includes: tuple[Path, ...]


def flags(arch: str) -> tuple[str, ...]:
    """The options of nvcc for one real architecture (``sm_90a``). The code tells of each instruction which line it is from.

    >>> flags("sm_90a")[:2]
    ('-gencode', 'arch=compute_90a,code=sm_90a')
    """
    virtual = arch.replace("sm_", "compute_")
    return (
        *("-gencode", f"arch={virtual},code={arch}", "-std=c++17", "-O3", "-DNDEBUG", "-lineinfo"),
        *("--expt-relaxed-constexpr", "-cudart", "static", "-shared", "-Xcompiler", "-fPIC"),
    )


def cutlass_headers() -> Path:
    """The folder of CUTLASS's headers in the wheel nvidia-cutlass, which is not imported. Errors: ModuleNotFoundError."""
    spec = importlib.util.find_spec("cutlass_library")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        headers = Path(folder) / "source" / "include"
        if (headers / "cutlass" / "cutlass.h").is_file():
            return headers
    raise ModuleNotFoundError("the headers of CUTLASS are not installed (nvidia-cutlass)", name="cutlass_library")


class Loader(Protocol):
    """Compiles and loads libraries: for torch's GPU, or without a GPU a loader that only compiles."""

    def load(self, build: Build) -> Any: ...

    def stream(self) -> int: ...


class TorchLoader:
    """Libraries for the architecture of torch's current device, in this process."""

    def load(self, build: Build) -> Any:
        import torch

        major, minor = torch.cuda.get_device_capability(torch.cuda.current_device())
        return _loaded(compiled(build, nvrtc.architecture(f"sm_{major}{minor}", specific=True)))

    def stream(self) -> int:
        import torch

        return int(torch.cuda.current_stream().cuda_stream)


active: Loader = TorchLoader()
"""The loader that `load` and `stream` use."""


def load(source: Path, defines: Mapping[str, str], includes: tuple[Path, ...]) -> Any:
    """The library of a file as a `ctypes.CDLL`, compiled first if the cache on disk does not have it (CUTLASS: a minute).

    Errors: CompilationError.
    """
    return active.load(Build(source, tuple(sorted(defines.items())), includes))


def stream() -> int:
    """The handle of torch's current stream, the capturing one while a graph is captured; without a GPU, 0."""
    return active.stream()


def compiled(build: Build, arch: str) -> Path:
    """The path of the library in the cache, whose name is a digest of all that goes into it. The cubin and the PTX lie beside it,
    with the suffixes ``.cubin`` and ``.ptx``. Needs no GPU.

    A process that finds another one at work on the same library waits for it. Errors: CompilationError, OSError.
    """
    version = nvcc_version()
    if version is None:
        raise CompilationError("nvcc is not on PATH, or it does not start")
    library = _cached(build, arch, version)
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        with _alone(library.with_suffix(".lock")):
            if not library.is_file():
                _compile(build, arch, library)
    return library


def nvcc_version() -> str | None:
    """What ``nvcc --version`` states, for example ``13.0.88``; None if there is no nvcc on PATH, or it does not start."""
    program = shutil.which("nvcc")
    return None if program is None else _version_of(program)


@functools.cache
def _version_of(program: str) -> str | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    stated = re.search(r"\bV(\d+(?:\.\d+)+)", answer.stdout)
    return stated[1] if stated and answer.returncode == 0 else None


def _cached(build: Build, arch: str, version: str) -> Path:
    versions = [(f / "cutlass" / "version.h").read_text() for f in build.includes if (f / "cutlass").is_dir()]
    facts = (build.source.read_text(), build.defines, flags(arch), version, versions)
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
    return nvrtc.cache_folder().with_name("nvcc") / f"{build.source.stem}-{arch}-{key}.so"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process is inside with this file. The system ends the lock of a process that dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(build: Build, arch: str, library: Path) -> None:
    """Work in a folder of its own, so that a build that is killed leaves no half of a library under its name."""
    with tempfile.TemporaryDirectory(dir=library.parent) as name:
        folder = Path(name)
        done = subprocess.run(
            [
                *("nvcc", *flags(arch), "--keep", "--keep-dir", name),
                *(f"-I{path}" for path in build.includes),
                *(f"-D{key}={value}" for key, value in build.defines),
                *("-o", str(folder / library.name), str(build.source)),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise CompilationError(f"nvcc failed: {errors_of(done.stderr + done.stdout)}")
        for suffix in (".cubin", ".ptx"):
            _largest(folder, build.source.stem, suffix).replace(library.with_suffix(suffix))
        (folder / library.name).replace(library)  # last, because the others exist where this one does


def _largest(folder: Path, stem: str, suffix: str) -> Path:
    """The file of our code among what nvcc leaves, which includes empty ones of its link step. Errors: CompilationError."""
    files = [path for path in folder.iterdir() if path.suffix == suffix and path.name.startswith(f"{stem}.")]
    if not files:
        raise CompilationError(f"nvcc left no {suffix} file of {stem}")
    return max(files, key=lambda path: path.stat().st_size)


def errors_of(log: str) -> str:
    """The first lines of nvcc's log that name an error, or its end.

    >>> errors_of('a.cu(3): warning: x\\na.cu(7): error: identifier "y" is undefined\\n1 error detected')
    'a.cu(7): error: identifier "y" is undefined; 1 error detected'
    """
    lines = [line.strip() for line in log.splitlines() if _ERROR.search(line)]
    return "; ".join(lines[:_MOST_ERROR_LINES]) or log[-_LOG_END_CHARACTERS:]


@functools.cache
def _loaded(library: Path) -> Any:
    return ctypes.CDLL(str(library))
