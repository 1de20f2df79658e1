"""The kernels of `w4a16_matmul`: results by fibers of the processor, machine code, the choice by size, and what the bound refuses."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from checking import compare, inputs_of
from torch import Tensor

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import KernelFacts
from kernelviz.core.problem import Problem
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import techniques_of
from kernelviz.ops import op_named, refresh
from kernelviz.ops.catalog.variant import Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.w4a16_matmul import gemv, mma
from kernelviz.ops.w4a16_matmul.layout import dequantised, groups, shuffled, unpacked

CUDA = Path(__file__).parent / "cuda"
OP = op_named("w4a16_matmul")
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}
RUN = """
#include "cuda_warps.h"
#include "{source}"
extern "C" const char* run(const char* x, const char* weights, const char* meta, long long scales, char* y, char* workspace,
                           unsigned* arrived, long long weights_size, long long meta_size, int n, int k, int part, int parts,
                           unsigned blocks, unsigned threads, unsigned shared, bool reversed) {{
    first_error.clear();
    in_reverse = copies_at_once = reversed;
    readable_begin[0] = (const unsigned char*)meta, readable_end[0] = readable_begin[0] + meta_size;
    readable_begin[1] = (const unsigned char*)weights, readable_end[1] = readable_begin[1] + weights_size;
    launch(blocks, threads, shared, [=] {{ {call}; }});
    return first_error.c_str();
}}
"""
CALLS = {
    gemv.SOURCE: "w4a16_gemv(x, weights, meta, meta + scales, (ELEMENT*)y, n, k, part)",
    mma.SOURCE: "w4a16_mma(x, weights, meta, meta + scales, (ELEMENT*)y, (float*)workspace, arrived, n, k, part, parts)",
}
GUARD = 64
"""Elements before and after y that must not change."""
MULTIPROCESSORS = 3
AnyTile = gemv.Tile | mma.Tile
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def whole_numbers(sizes: tuple[int, int, int], dtype: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs with which every product and sum is a whole number that fp32 holds, whatever the order: x and scales -1, 0, 1 or 2."""
    m, n, k = sizes
    generator = torch.Generator().manual_seed(m + n + k)
    x, s = (
        torch.randint(-1, 3, shape, generator=generator).to(TORCH[dtype]) for shape in ((m, k), (groups(k), n))
    )
    w, z = (
        torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        for shape in ((n, groups(k), 64), (groups(k), -(-n // 2)))
    )
    return x, w, s, z


def program(source: Path, defines: Mapping[str, str], folder: Path, text: str | None = None) -> ctypes.CDLL:
    """A kernel for the processor, with one function `run`; `text`: of the source, if it is changed."""
    path = source
    if text is not None:
        path = folder / source.name
        path.write_text(text)
    file = folder / "kernel.cpp"
    file.write_text(RUN.format(source=path, call=CALLS[source]))
    command = ["g++", "-std=c++20", "-O1", "-march=native", "-w", "-shared", "-fPIC", "-I", str(CUDA)]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    subprocess.run([*command, str(file), "-o", str(folder / "kernel.so")], check=True)
    library = ctypes.CDLL(str(folder / "kernel.so"))
    library.run.restype = ctypes.c_char_p
    return library


def definitions(dtype: str, tile: AnyTile, sizes: tuple[int, int, int], *, shuffle: bool = False) -> dict[str, str]:
    m, n, k = sizes
    element = nvrtc.element_type(TORCH[dtype])
    if isinstance(tile, gemv.Tile):
        return tile.defines(element, m, n)
    return tile.defines(element, m, n, shuffle=shuffle, copy_x=16 if k % 8 == 0 else 2)


def check(
    dtype: str,
    tile: AnyTile,
    sizes: tuple[int, int, int],
    folder: Path,
    *,
    shuffle: bool = False,
    text: str | None = None,
) -> None:
    m, n, k = sizes
    source = gemv.SOURCE if isinstance(tile, gemv.Tile) else mma.SOURCE
    library = program(source, definitions(dtype, tile, sizes, shuffle=shuffle), folder, text)
    x, w, s, z = whole_numbers(sizes, dtype)
    weights = shuffled(w).contiguous() if shuffle else w
    room = -(-s.numel() * 2 // 16) * 16  # zero points follow the scales in one piece of memory
    meta = torch.zeros(room + z.numel(), dtype=torch.uint8)
    meta[: s.numel() * 2] = s.view(torch.uint8).flatten()
    meta[room:] = z.flatten()
    exact = x.double() @ dequantised(w, s.double(), z, k).t()
    assert exact.abs().max() < 2**15, "not exact in fp32"
    expected = exact.to(TORCH[dtype])
    if isinstance(tile, gemv.Tile):
        blocks, tiles, parts, part, features = tile.blocks(n, MULTIPROCESSORS), 1, 1, -(-k // gemv.PASS), 1
    else:
        (blocks, parts, tiles), part, features = tile.grid(n, k, MULTIPROCESSORS), tile.part_groups(k), tile.features
    arrived = torch.zeros(tiles, dtype=torch.int32)
    threads = 32 * tile.warps
    for reverse in (False, True):  # threads in order and copies that arrive as late as they may; in reverse and at once
        sums = torch.full((tiles * parts * m * features,), float("nan"))
        y = torch.full((m * n + 2 * GUARD,), float("nan"), dtype=TORCH[dtype])
        inside = y[GUARD : GUARD + m * n].view(m, n)
        error = library.run(
            *(ctypes.c_void_p(t.data_ptr()) for t in (x, weights, meta)),
            ctypes.c_longlong(room),
            *(ctypes.c_void_p(t.data_ptr()) for t in (inside, sums, arrived)),
            *map(ctypes.c_longlong, (weights.numel(), meta.numel())),
            *map(ctypes.c_int, (n, k, part, parts)),
            *map(ctypes.c_uint, (blocks, threads, tile.shared_bytes(m, k))),
            ctypes.c_bool(reverse),
        )
        assert error == b"", (sizes, reverse, error)
        assert torch.equal(inside, expected), (sizes, reverse)
        assert y[:GUARD].isnan().all()
        assert y[GUARD + m * n :].isnan().all()
        assert not arrived.any(), "the counters are not zero for the next launch"


def mma_tile(*, tiles: int = 1, deep: int, across: int = 1, stages: int = 4, blocks: int = 1, parts: int = 1) -> mma.Tile:
    return mma.Tile(tiles=tiles, deep=deep, across=across, stages=stages, blocks=blocks, parts=parts)


GEMV = {
    "one number": (gemv.Tile(features=4, warps=4), (1, 1, 1)),
    "several passes and sets": (gemv.Tile(features=4, warps=2), (1, 72, 2304)),
    "two features at a time": (gemv.Tile(features=2, warps=4), (3, 24, 1160)),
    "an odd number of features": (gemv.Tile(features=4, warps=4), (2, 31, 1030)),
    "8 rows": (gemv.Tile(features=4, warps=2), (8, 16, 130)),
    "two of an odd number": (gemv.Tile(features=2, warps=3), (1, 13, 263)),
}
MMA = {
    "one number": (mma_tile(deep=8), (1, 1, 1)),
    "several tiles of a block": (mma_tile(deep=4, stages=3), (1, 136, 1024)),
    "16 warps along K, fewer groups": (mma_tile(deep=16), (3, 40, 1160)),
    "two tiles of a warp": (mma_tile(tiles=2, deep=4, stages=6), (8, 72, 1032)),
    "two blocks, features of their own": (mma_tile(deep=2, across=2, blocks=2), (7, 104, 520)),
    "parts of K": (mma_tile(deep=4, stages=2, parts=3), (1, 88, 2000)),
    "16 rows": (mma_tile(tiles=2, deep=2, across=2), (16, 72, 648)),
    "an odd number of features": (mma_tile(deep=4), (5, 37, 513)),
    "17 rows, scaled weights": (mma_tile(deep=2, across=2, parts=2), (17, 40, 520)),
    "33 rows, no sums of warps": (mma_tile(tiles=2, deep=1, across=4, parts=2), (33, 104, 392)),
    "64 rows": (mma_tile(tiles=4, deep=1, across=2, stages=3), (64, 136, 256)),
}


@needs_compiler
@pytest.mark.parametrize("case", [*GEMV])
def test_the_product_is_right_without_tensor_cores(case: str, tmp_path: Path) -> None:
    check("bf16" if len(case) % 2 else "fp16", *GEMV[case], tmp_path)


@needs_compiler
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("case", [*MMA])
def test_the_product_is_right_on_tensor_cores(case: str, dtype: str, tmp_path: Path) -> None:
    check(dtype, *MMA[case], tmp_path, shuffle=(len(case) % 2 == 0) == (dtype == "bf16"))
