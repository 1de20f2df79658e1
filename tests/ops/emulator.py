"""Kernels of CUDA C++ compiled for the processor and run there: each thread of a block or cluster is a fiber (tests/ops/cuda).

The headers in tests/ops/cuda replace those of kernelviz/ops/kernels/headers. What they call (cuda/runtime) is compiled once a
session, and each kernel once for its text and macros. `asm` statements in a kernel's own text become calls (`STATEMENTS`).
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.tensor_map import Boxes

HEADERS = Path(__file__).parent / "cuda"
RUNTIME = sorted((HEADERS / "runtime").glob("*.cpp"))
COMPILER = ("g++", "-std=c++20", "-march=native", "-w", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-DNDEBUG")
GUARD = 64
"""Elements before and after an output that must not change."""
KERNEL = """
#include "emulator.h"
namespace {{
#include "{text}"
}}
#ifndef DYNAMIC_SHARED_ALIGNMENT
#define DYNAMIC_SHARED_ALIGNMENT 16
#endif
extern "C" const unsigned shared_alignment;
const unsigned shared_alignment = DYNAMIC_SHARED_ALIGNMENT;
extern "C" void call_kernel(unsigned number, const long long* arguments) {{
    switch (number) {{
{calls}
    }}
}}
"""
STATEMENTS = {
    "st.shared.b32": "emulated::store_alone({0}, &(const unsigned&)({1}), 4);",
    "st.shared.f32": "emulated::store_alone({0}, &(const float&)({1}), 4);",
    "ld.shared.b32": "emulated::load_alone(&{0}, {1}, 4);",
    "ld.shared::cluster.v4.f32": "emulated::load_alone(&{0}, {4}, 16, {5});",
    "bar.sync %0, 128": "emulated::barrier_of_threads({0}, 128);",
    "bar.sync 1, %0": "emulated::barrier_of_threads(1, {0});",
    "stmatrix": "{{ const unsigned values[4] = {{{1}, {2}, {3}, {4}}}; emulated::stmatrix({0}, values); }}",
    "setmaxnreg": "",
    "cp.async.bulk.shared": "emulated::copy_bulk({0}, {1}, {2}, {3});",
    "cp.async.bulk.global": "emulated::store_bulk({0}, {1}, {2});",
    "shfl.sync.up": "{0} = emulated::with_lane_below({0}, {1});",
    "max.NaN.f32": "{0} = {1} > 0.0f || {1} != {1} ? {1} : 0.0f;",
}
"""What an `asm` statement of a kernel becomes, by a part of its text; {0}, {1} … are its operands. Others are errors."""
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
Argument = torch.Tensor | int
BOX_BYTES = 128
"""Across a box that is not narrower; boxes are swizzled by 128 bytes."""


class _Launch(ctypes.Structure):
    """`Launch` of cuda/runtime/fibers.h."""

    _fields_ = (
        *(
            (name, ctypes.c_uint)
            for name in (
                "kernel",
                "grid_x",
                "grid_y",
                "threads_x",
                "threads_y",
                "cluster",
                "shared_bytes",
                "reverse",
                "at_once",
            )
        ),
        ("ranges", ctypes.c_ulonglong),
        ("readable", ctypes.POINTER(ctypes.c_void_p)),
        ("arguments", ctypes.POINTER(ctypes.c_longlong)),
    )


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Blocks, threads of a block, and the dynamic shared memory of a block."""

    blocks: int | tuple[int, int]
    threads: int | tuple[int, int]
    shared_bytes: int = 0
    cluster: int = 1


@dataclass(frozen=True, kw_only=True)
class Mode:
    """Whether threads, warps and blocks run in reverse, and whether what is asynchronous happens at once or as late as it may."""

    reverse: bool = False
    at_once: bool = False


LATE, AT_ONCE = Mode(), Mode(reverse=True, at_once=True)
MODES = (LATE, AT_ONCE)
"""A kernel that reads too early is wrong in the first; one that overwrites too early, in the second."""


@dataclass(frozen=True)
class Program:
    """Kernels that were compiled for the processor."""

    library: ctypes.CDLL
    kernels: tuple[str, ...]

    def run(
        self,
        arguments: Sequence[Argument],
        grid: Grid,
        mode: Mode = LATE,
        *,
        kernel: str = "",
        readable: Sequence[torch.Tensor] = (),
    ) -> str:
        """The first error of a launch, or an empty text.

        `readable`: what cp.async may read (anything if it is empty), and from the second tensor on what `load_once` may.
        """
        values = [one.data_ptr() if isinstance(one, torch.Tensor) else one for one in arguments]
        ends = [end for t in readable for end in (t.data_ptr(), t.data_ptr() + t.numel() * t.element_size())]
        blocks, threads = (one if isinstance(one, tuple) else (one, 1) for one in (grid.blocks, grid.threads))
        launch = _Launch(
            self.kernels.index(kernel or self.kernels[0]),
            *blocks,
            *threads,
            grid.cluster,
            grid.shared_bytes,
            mode.reverse,
            mode.at_once,
            len(readable),
            (ctypes.c_void_p * len(ends))(*ends),
            (ctypes.c_longlong * len(values))(*values),
        )
        error: bytes = self.library.run(ctypes.byref(launch))
        return error.decode()


def tensor_maps(boxes: Sequence[Boxes | tuple[torch.Tensor, int]]) -> torch.Tensor:
    """What the emulated TMA takes as tensor maps of 128 bytes each (`Map` of cuda/runtime/fibers.h).

    A pair is a matrix, and the rows of its boxes.
    """
    maps = torch.zeros((len(boxes), 16), dtype=torch.int64)
    for row, box in zip(maps, boxes, strict=True):
        one = box if isinstance(box, Boxes) else Boxes(*box)
        matrix, columns, itemsize = one.matrix, one.matrix.shape[-1], one.matrix.element_size()
        assert matrix.is_contiguous()
        across = one.columns * itemsize if one.columns else BOX_BYTES
        row[:6] = torch.tensor([matrix.data_ptr(), matrix.numel() // columns, columns, itemsize, one.rows, across])
    return maps


def unwritten(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A matrix that nothing was written to: all bits are 1, which is NaN in every floating-point format."""
    elements = torch.Size(shape).numel()
    return torch.full((elements * dtype.itemsize,), -1, dtype=torch.int8).view(dtype).view(*shape)


class Output:
    """A matrix within a guard, to which a kernel writes."""

    def __init__(self, rows: int, columns: int, dtype: torch.dtype) -> None:
        self._all = unwritten((rows * columns + 2 * GUARD,), dtype)
        self._size = rows * columns
        self.matrix = self._all[GUARD : GUARD + self._size].view(rows, columns)

    def guard_is_unchanged(self) -> bool:
        """Whether every bit of the guard is still 1.

        NaN that arises in a calculation has other bits, and is noticed. NaN that is calculated from the guard may have the same.
        """
        size_bytes = self._all.element_size()
        bits = self._all.view(torch.int8)
        before, after = bits[: GUARD * size_bytes], bits[(GUARD + self._size) * size_bytes :]
        return bool((before == -1).all() and (after == -1).all())


class Emulator:
    """Compiles kernels in a folder that the processes of a test session share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: dict[str, Program] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def program(
        self,
        source: Path,
        kernels: str | tuple[str, ...],
        macros: Mapping[str, str],
        *,
        text: str | None = None,
        optimise: str = "-O1",
    ) -> Program:
        """The kernels of a file. `text`: its text, if that is changed."""
        names = (kernels,) if isinstance(kernels, str) else kernels
        translated = translated_text(source.read_text() if text is None else text)
        defines = [f"-D{name}={value}" for name, value in macros.items()]
        key = hashlib.sha256("\0".join((*names, translated, *defines, optimise)).encode()).hexdigest()[:24]
        if key not in self._programs:
            file = self._folder / f"{source.stem}-{key}.so"
            if not file.exists():
                self._compile(file, names, translated, [*defines, optimise])
            library = ctypes.CDLL(str(file))
            library.run.restype = ctypes.c_char_p
            self._programs[key] = Program(library, names)
        return self._programs[key]

    def _compile(self, file: Path, kernels: tuple[str, ...], text: str, options: list[str]) -> None:
        unique = file.with_suffix(f".{os.getpid()}")
        unique.mkdir()
        (unique / "kernel.cuh").write_text(text)
        calls = "\n".join(f"case {i}: return call_with({name}, arguments);" for i, name in enumerate(kernels))
        (unique / "kernel.cpp").write_text(KERNEL.format(text=unique / "kernel.cuh", calls=calls))
        command = [
            *COMPILER,
            *options,
            "-shared",
            "-I",
            str(HEADERS),
            str(unique / "kernel.cpp"),
            *map(str, self._runtime()),
        ]
        subprocess.run([*command, "-o", str(unique / "kernel.so")], check=True)
        (unique / "kernel.so").rename(file)  # complete, or not there

    def _runtime(self) -> list[Path]:
        file = self._folder / "runtime.o"
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                all_of_it = self._folder / "runtime.cpp"
                all_of_it.write_text("".join(f'#include "{one}"\n' for one in RUNTIME))
                subprocess.run([*COMPILER, "-O2", "-c", str(all_of_it), "-o", str(file)], check=True)
        return [file]


def with_header(source: Path, *names: str) -> str:
    """The text of a kernel file with headers of ours in place of their `#include`, so that a fault can be planted there."""
    text = source.read_text()
    for name in names:
        include = f'#include "{name}"\n'
        assert text.count(include) == 1
        text = text.replace(include, (nvrtc.HEADERS / name).read_text())
    return text


def translated_text(text: str) -> str:
    """A kernel's text for g++: without its declaration of dynamic shared memory, and with calls in place of `asm` statements.

    >>> translated_text('asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");')
    'emulated::barrier_of_threads(group + 1, 128);'
    """
    text = re.sub(r"extern __shared__[^;]*\bmemory\[\];", "", text)
    parts, end = [], 0
    for found in re.finditer(r"\basm(?: volatile)?\(", text):
        close = _closing(text, found.end())
        statement = text[found.end() : close]
        (call,) = (call for part, call in STATEMENTS.items() if part in statement)
        parts += [text[end : found.start()], call.format(*_operands(statement))]
        end = close + 2  # ");"
    return "".join([*parts, text[end:]])


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before `start`. Parentheses within strings are not expected."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("a parenthesis is not closed")


def _operands(statement: str) -> Iterator[str]:
    for found in re.finditer(r'"[=+]?[a-z]"\(', statement):
        yield statement[found.end() : _closing(statement, found.end())]
