"""The software that variants need, detected without importing it."""

import functools
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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


def no_triton() -> str | None:
    """Why Triton cannot be used, None when it can. All functions `no_*` return such a reason or None."""
    return None if importlib.util.find_spec("triton") else "needs Triton; pip install triton (Linux only)"


def no_nvrtc() -> str | None:
    """Why NVRTC cannot be used; it and CUDA's headers are installed as wheels, in the CUDA version of torch."""
    lacking = [f"{package} is" for package in ("cuda-core", "nvidia-cuda-nvrtc") if not installed_versions((package,))]
    if not any((folder / "cuda_fp16.h").is_file() for folder in include_paths()):
        lacking.append("CUDA's headers are")
    if not lacking:
        return None
    remedy = "pip install cuda-core 'cuda-toolkit[nvrtc,cudart,crt,cccl]==13.0.*'"
    return f"needs NVRTC: {', '.join(lacking)} not installed; {remedy}"


def no_liger() -> str | None:
    if importlib.util.find_spec("liger_kernel"):
        return None
    return "needs Liger's kernels; pip install 'kernelviz[liger]' (or liger-kernel==0.8.*)"


def installed_versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of the installed ones of these distributions, from their metadata."""
    versions = {}
    for name in distributions:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def no_c_compiler(why: str) -> str | None:
    """Why there is no C compiler, by the search of triton.runtime.build: CC, then gcc, then clang."""
    chosen = _command(os.environ.get("CC", ""))
    names = [chosen] if chosen else ["gcc", "clang"]
    if any(shutil.which(n) for n in names):
        return None
    return (
        f"needs a C compiler ({' or '.join(names)}), and none is found: {why}; install one (apt install gcc, or conda "
        "install -c conda-forge gcc), or name one in CC"
    )


def no_cxx_compiler(default: str, why: str) -> str | None:
    """Why there is no C++ compiler: CXX, then the default of the tool that compiles."""
    chosen = _command(os.environ.get("CXX", "")) or default
    if shutil.which(chosen):
        return None
    return (
        f"needs a C++ compiler ({chosen}), and none is found: {why}; install one (apt install g++, or conda install -c "
        "conda-forge gxx), or name one in CXX"
    )


def no_python_headers(what: str) -> str | None:
    """Why Python.h of this Python is missing: Linux distributions package it separately; conda's and python.org's include it."""
    scheme = sysconfig.get_default_scheme()
    # Debian's own scheme names a folder under /usr/local without headers (triton.runtime.build handles this too).
    folder = Path(sysconfig.get_path("include", "posix_prefix" if scheme == "posix_local" else scheme))
    if (folder / "Python.h").is_file():
        return None
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    return (
        f"needs Python's headers ({folder / 'Python.h'}), and they are not there: {what} includes them; install them "
        f"(apt install {package}), or use a Python that has them, such as conda's"
    )


def _command(text: str) -> str:
    """The program of a command line such as ``ccache gcc -O2``'s first word.

    >>> _command("clang -m64"), _command("")
    ('clang', '')
    """
    parts = shlex.split(text)
    return parts[0] if parts else ""
