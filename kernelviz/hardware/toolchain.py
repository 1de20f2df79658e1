"""The software that variants need, detected without importing it."""

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import shutil
import socket
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelviz.core import Device, Environment
from kernelviz.core.backends.backend import Backend
from kernelviz.core.notices import Datum, Notice, NoticeKind
from kernelviz.ops.kernels.nvrtc import include_paths


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """The installed torch: its version, and the CUDA version that it was built for (None: none)."""

    version: str
    cuda: str | None


@functools.cache
def torch_build() -> TorchBuild | None:
    """The installed torch, read from its files (importing it takes seconds); None when there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        return parsed_build((Path(spec.origin).parent / "version.py").read_text())
    except OSError:
        return None


def parsed_build(text: str) -> TorchBuild | None:
    """
    >>> parsed_build("__version__ = '2.13.0+cpu'\\ncuda: Optional[str] = None")
    TorchBuild(version='2.13.0+cpu', cuda=None)
    >>> parsed_build("__version__ = '2.13.0+cu130'\\ncuda: str | None = '13.0'")
    TorchBuild(version='2.13.0+cu130', cuda='13.0')
    """
    version = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return TorchBuild(version.group(1), cuda.group(1) if cuda else None) if version else None


def no_triton() -> Notice | None:
    """Why Triton cannot be used, None when it can. All functions `no_*` return such a notice or None."""
    return None if importlib.util.find_spec("triton") else Notice("no_triton")


def no_nvrtc() -> Notice | None:
    """Why NVRTC cannot be used; it and CUDA's headers are installed as wheels, in the CUDA version of torch.

    Our kernels include no header outside of the wheel of cuda_fp16.h, nvidia-cuda-runtime (tests/ops/test_nvrtc.py).
    """
    lacking = [package for package in ("cuda-core", "nvidia-cuda-nvrtc") if not installed_versions((package,))]
    if not any((folder / "cuda_fp16.h").is_file() for folder in include_paths()):
        lacking.append("CUDA's headers")
    return Notice("no_nvrtc", {"lacking": tuple(lacking)}) if lacking else None


def no_liger() -> Notice | None:
    return None if importlib.util.find_spec("liger_kernel") else Notice("no_liger")


def no_package(backend: Backend) -> Notice | None:
    """Why the Python module or the program that a backend needs cannot be used. Nothing is imported: Triton must not be."""
    top, *path = backend.module.split(".")
    spec = importlib.util.find_spec(top)
    folders = [Path(f).joinpath(*path) for f in (spec.submodule_search_locations or ())] if spec else []
    if any((f / "__init__.py").is_file() or f.with_suffix(".py").is_file() for f in folders):
        return no_program(backend)
    missing: dict[str, Datum] = {"package": backend.title, "installation": backend.installation}
    if backend.download_bytes is None:
        return Notice("no_package", missing)
    return Notice("no_package_of_size", {**missing, "download_bytes": backend.download_bytes})


def no_program(backend: Backend) -> Notice | None:
    """Why the program that a backend needs cannot be started; None also where it needs none."""
    if not backend.program or shutil.which(backend.program):
        return None
    return Notice("no_program", {"program": backend.program, "installation": backend.program_installation})


def installed_versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of the installed ones of these distributions, from their metadata."""
    versions = {}
    for name in distributions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def environment_of(device: Device, distributions: Iterable[str] = ("torch", "triton")) -> Environment:
    """What is known without torch: the device, the host, and the versions of these distributions."""
    import kernelviz

    return Environment(
        device=device,
        host=socket.gethostname(),
        platform=platform.platform(),
        python=platform.python_version(),
        kernelviz=kernelviz.__version__,
        versions=installed_versions(distributions),
        threads=device.threads,
    )


def no_compiler(kind: NoticeKind, variable: str, defaults: tuple[str, ...], builds: str) -> Notice | None:
    """Why there is no compiler: the environment variable names one (``ccache gcc -O2``: its first word), else the tool that
    `builds` something uses the first of its defaults, as in triton.runtime.build."""
    compilers = shlex.split(os.environ.get(variable, ""))[:1] or defaults
    if any(map(shutil.which, compilers)):
        return None
    return Notice(kind, {"compilers": " or ".join(compilers), "builds": builds})


def no_python_headers(included_by: str) -> Notice | None:
    """Why Python.h of this Python is missing: Linux distributions package it separately; conda's and python.org's include it."""
    scheme = sysconfig.get_default_scheme()
    # Debian's own scheme names a folder under /usr/local without headers (triton.runtime.build handles this too).
    folder = Path(sysconfig.get_path("include", "posix_prefix" if scheme == "posix_local" else scheme))
    if (folder / "Python.h").is_file():
        return None
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    return Notice("no_python_headers", {"file": str(folder / "Python.h"), "includes": included_by, "package": package})
