"""Kernels with warpgroups, TMA and clusters, compiled for the processor (tests/ops/cuda/cuda_warpgroups.h), and their calls."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch

CUDA = Path(__file__).parent / "cuda"
RUN = """
#include "{source}"
#include "run.h"
static TensorMap maps[3];
extern "C" void set_map(int at, void* matrix, int rows, int columns, int itemsize, int box_rows) {{
    maps[at] = {{(unsigned char*)matrix, rows, columns, itemsize, box_rows, 1}};
}}
extern "C" const char* run(
    void** pointers, int m, int n, int k, unsigned blocks, unsigned threads, unsigned shared, bool reverse, bool now) {{
    first_error.clear();
    in_reverse = reverse;
    at_once = now;
    launch(blocks, CLUSTER, threads, shared, [=] {{ call({kernel}, (const char*)maps, pointers, m, n, k); }});
    return first_error.c_str();
}}
"""
CALL = """
inline void call(void (*kernel)(const char*, const unsigned*, const float*, const float*, int, int, int), const char* maps,
                 void** p, int m, int n, int k) {
    kernel(maps, (const unsigned*)p[0], (const float*)p[1], (const float*)p[2], m, n, k);
}
inline void call(void (*kernel)(const char*, const unsigned*, float*, int, int, int), const char* maps, void** p, int m,
                 int n, int k) {
    kernel(maps, (const unsigned*)p[0], (float*)p[1], m, n, k);
}
"""
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def program(source: Path, kernel: str, defines: Mapping[str, str], folder: Path) -> ctypes.CDLL:
    """A kernel for the processor."""
    file = folder / "kernel.cpp"
    file.write_text(RUN.format(source=source, kernel=kernel))
    (folder / "run.h").write_text(CALL)
    command = [
        "g++",
        "-std=c++20",
        "-O1",
        "-march=native",
        "-w",
        "-shared",
        "-fPIC",
        "-I",
        str(CUDA),
        "-I",
        str(folder),
    ]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    subprocess.run([*command, str(file), "-o", str(folder / "kernel.so")], check=True)
    library = ctypes.CDLL(str(folder / "kernel.so"))
    library.run.restype = ctypes.c_char_p
    return library


def run(
    library: ctypes.CDLL,
    boxes: Sequence[tuple[torch.Tensor, int]],
    tensors: Sequence[torch.Tensor],
    sizes: tuple[int, int, int],
    grid: tuple[int, int, int],
    *,
    mode: bool,
) -> str:
    """The first error of a call, or an empty text. `boxes`: matrices and the rows of their boxes; `grid`: blocks, threads, bytes.

    `mode`: threads in reverse, and what is asynchronous at once.
    """
    for at, (matrix, rows) in enumerate(boxes):
        library.set_map(at, ctypes.c_void_p(matrix.data_ptr()), *matrix.shape, matrix.element_size(), rows)
    pointers = (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))
    error: bytes = library.run(pointers, *sizes, *map(ctypes.c_uint, grid), ctypes.c_bool(mode), ctypes.c_bool(mode))
    return error.decode()
