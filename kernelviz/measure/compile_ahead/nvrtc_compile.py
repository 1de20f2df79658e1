"""Compile a kernel of CUDA C++ into the cache on disk by NVRTC alone.

`kernelviz.ops.kernels.nvrtc.compile_cubin` goes through cuda.core, which opens the CUDA driver's library when it has compiled.
The code, the options and the names of the files are the same; a test compares the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelviz.core import KernelvizError
from kernelviz.hardware.whole_files import write_whole
from kernelviz.ops.kernels import nvrtc


class NvrtcRefused(KernelvizError):
    """NVRTC does not compile the kernel; the message is its log."""


def compile_into_cache(source: Path, arch: str, defines: Mapping[str, str], name: str) -> bytes:
    """The cubin of the kernel `name` of a file for one architecture (``sm_90``), from the cache if it is there.

    Cubin and PTX are stored. Errors: NvrtcRefused.
    """
    cached = nvrtc.cached_code("cubin", source, arch, defines, name)
    if cached.is_file():
        return cached.read_bytes()
    code, options = nvrtc.code_and_options(source, arch, defines, name)
    cubin, ptx = _compiled(code, str(source), options.as_bytes("nvrtc"))
    _store(nvrtc.cached_code("ptx", source, arch, defines, name), ptx)
    _store(cached, cubin)
    return cubin


def _compiled(code: str, name: str, options: list[bytes]) -> tuple[bytes, bytes]:
    """The cubin and the PTX."""
    from cuda.bindings import nvrtc as bindings

    program = _checked(bindings.nvrtcCreateProgram(code.encode(), name.encode(), 0, [], []))
    try:
        (status,) = bindings.nvrtcCompileProgram(program, len(options), options)
        if status != bindings.nvrtcResult.NVRTC_SUCCESS:
            log = _text(bindings.nvrtcGetProgramLogSize, bindings.nvrtcGetProgramLog, program)
            raise NvrtcRefused(log.rstrip(b"\0\n").decode(errors="replace") or str(status))
        cubin = _text(bindings.nvrtcGetCUBINSize, bindings.nvrtcGetCUBIN, program)
        ptx = _text(bindings.nvrtcGetPTXSize, bindings.nvrtcGetPTX, program)
    finally:
        bindings.nvrtcDestroyProgram(program)
    return cubin, ptx.rstrip(b"\0")


def _text(size_of: Any, read: Any, program: Any) -> bytes:
    """What NVRTC writes into a buffer whose size it names."""
    buffer = b" " * int(_checked(size_of(program)))
    read(program, buffer)
    return buffer


def _checked(answer: tuple[Any, ...]) -> Any:
    """The value of an answer of NVRTC. Errors: NvrtcRefused."""
    status, value = answer
    if int(status) != 0:
        raise NvrtcRefused(str(status))
    return value


def _store(path: Path, content: bytes) -> None:
    """Errors of the disk are ignored: the worker compiles what is not there."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
