"""The C++ extension of `scale`: built once for each torch and source, cached on disk, loaded as a Python module.

It is built here with the headers, libraries and flags of `torch.utils.cpp_extension.load`, but not by that function: it needs
ninja and setuptools, and waits for ever on the lock file of a build that was killed, as a worker is at its deadline.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import platformdirs

from kernelviz.core.errors import BadField, KernelvizError
from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "extension.cpp"
NAME = "kernelviz_scale"
FLAGS = ("-O3", "-std=c++20", "-fPIC", "-shared")
LIBRARIES = ("torch", "torch_cpu", "torch_python", "c10")


class CompilationError(KernelvizError):
    """The C++ compiler failed; the message holds the errors of its log."""


def bind_custom_scale(x_N: Tensor, scale: float) -> Launch:
    """Launch of the extension's function, which allocates its result, as the published one does.

    Builds the extension if the cache does not have it yet (about 15 s). Errors: BadField for a tensor that is not on the CPU,
    CompilationError.
    """
    if x_N.device.type != "cpu":
        raise BadField("device", str(x_N.device), "this extension is built for the processor; choose cpu as the device")
    custom_scale = loaded().custom_scale

    def launch() -> Tensor:
        result: Tensor = custom_scale(x_N, scale)
        return result

    return launch


@functools.cache
def loaded() -> ModuleType:
    """The extension's module, built first if the cache on disk does not have it. Errors: CompilationError."""
    import torch  # noqa: F401  the extension's libraries are torch's, which importing it loads

    spec = importlib.util.spec_from_file_location(NAME, built())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built() -> Path:
    """The path of the shared library in the cache, named by its source, its command and the versions of torch and Python."""
    import torch

    command = _command()
    facts = (
        SOURCE.read_text(),
        command,
        torch.__version__,
        torch.version.git_version,
        sysconfig.get_config_var("SOABI"),
    )
    library = _cache() / f"{NAME}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}.so"
    if not library.is_file():
        _build(command, library)
    return library


def _command() -> list[str]:
    import torch

    root = Path(torch.__file__).parent
    includes = (root / "include", root / "include/torch/csrc/api/include", Path(sysconfig.get_paths()["include"]))
    return [
        *shlex.split(os.environ.get("CXX") or "c++"),
        *FLAGS,
        f"-DTORCH_EXTENSION_NAME={NAME}",
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        *(f"-I{folder}" for folder in includes),
        str(SOURCE),
        f"-L{root / 'lib'}",
        *(f"-l{library}" for library in LIBRARIES),
    ]


def _build(command: list[str], target: Path) -> None:
    """Write through a temporary file, so that no process loads half a library and a killed build leaves none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        library = Path(folder) / target.name
        done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CompilationError(f"the C++ compiler {command[0]} failed: {_errors_of(done.stderr)}")
        library.replace(target)


def _errors_of(log: str) -> str:
    """The first lines of a compiler's log that name an error, or its end."""
    errors = [line for line in log.splitlines() if "error" in line]
    return "; ".join(errors[:5]) or log[-500:]


def _cache() -> Path:
    return Path(os.environ.get("KERNELVIZ_CACHE") or platformdirs.user_cache_dir("kernelviz")) / "extensions"
