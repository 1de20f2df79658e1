"""CUDA C++ through cuda.core and NVRTC: compile a kernel of a file, launch it into torch's current stream.

Headers come from the CUDA wheels only, so that a machine's own toolkit, of another version, is never mixed in.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

_STANDARD = "c++17"


def include_paths() -> tuple[Path, ...]:
    """Header folders of the CUDA wheels; empty where they are not installed. Imports no CUDA library."""
    spec = importlib.util.find_spec("nvidia")
    found: list[Path] = []
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in ("cu13/include", "cu13/include/cccl"):
            path = Path(root) / folder
            if path.is_dir():
                found.append(path)
    return tuple(found)


def compile_cubin(source: Path, arch: str, defines: Mapping[str, str] | None = None) -> bytes:
    """The cubin of every kernel in a file for one architecture (``sm_90``), from the cache on disk where it is there.

    Needs no GPU. Errors: whatever NVRTC raises, its log in the message.
    """
    from cuda.bindings import nvrtc
    from cuda.core import Program, ProgramOptions

    code = source.read_text()
    macros = dict(defines or {})
    version = ".".join(str(n) for n in nvrtc.nvrtcVersion()[1:])
    key = hashlib.sha256(repr((code, arch, sorted(macros.items()), version, _STANDARD)).encode()).hexdigest()
    cached = cache_folder() / f"{source.stem}-{arch}-{key[:32]}.cubin"
    if cached.is_file():
        return cached.read_bytes()
    options = ProgramOptions(
        name=source.name,
        arch=arch,
        std=_STANDARD,
        include_path=[str(p) for p in include_paths()],
        define_macro=list(macros.items()) or None,
    )
    cubin = bytes(Program(code, "c++", options).compile("cubin").code)
    _keep(cached, cubin)
    return cubin


@functools.cache
def _loaded(source: Path, arch: str, defines: tuple[tuple[str, str], ...]) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(compile_cubin(source, arch, dict(defines)))


@functools.cache
def _kernel(source: Path, name: str, device: int, defines: tuple[tuple[str, str], ...]) -> Any:
    import torch
    from cuda.core import Device

    Device(device).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    return _loaded(source, f"sm_{major}{minor}", defines).get_kernel(name)


def kernel(source: Path, name: str, defines: Mapping[str, str] | None = None) -> Any:
    """The kernel `name` (extern "C") of a file, compiled for torch's current device."""
    import torch

    return _kernel(source, name, torch.cuda.current_device(), tuple(sorted((defines or {}).items())))


def launch(kernel: Any, blocks: int | tuple[int, ...], threads: int | tuple[int, ...], *args: Any) -> None:
    """Enqueue a kernel on torch's current stream (the capturing one while a graph is captured).

    Arguments: ints are pointers; sizes and scalars are ctypes or numpy scalars of the parameter's type.
    """
    import torch
    from cuda import core

    stream = _stream(torch.cuda.current_stream().cuda_stream)
    core.launch(stream, _config(blocks, threads), kernel, *args)


@functools.lru_cache(maxsize=64)
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@functools.lru_cache(maxsize=1024)
def _config(blocks: int | tuple[int, ...], threads: int | tuple[int, ...]) -> Any:
    from cuda.core import LaunchConfig

    return LaunchConfig(grid=blocks, block=threads)


def cache_folder() -> Path:
    """Where cubins are kept: KERNELVIZ_CACHE, else the folder of the user's caches."""
    return Path(os.environ.get("KERNELVIZ_CACHE") or platformdirs.user_cache_dir("kernelviz")) / "cubin"


def _keep(path: Path, content: bytes) -> None:
    """Write through a temporary file, so that another process never reads half of it; a full disk is no reason to fail."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    except OSError:
        return


def element_type(dtype: Any) -> str:
    """The C++ type of a torch dtype's elements; raises KeyError for one without."""
    import torch

    return {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}[dtype]
