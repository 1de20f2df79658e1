"""Times of the wgmma kernels of small products with every tile, and of their parts of K, beside cuBLAS and Triton.

    python tests/gpu/product_sweep.py FILE [MxNxK…]

Each configuration is compared with cuBLAS's product first. FILE gets a line of JSON for each size and direction: the median time
of each in µs behind a flush, or what is wrong. `wgmma_choice.TILES` and `wgmma_skinny.TILES_US` have
their times from such files.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from kernelviz.core.chunks import parts
from kernelviz.measure.session.device_session import open_session
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import MULTIPROCESSORS
from kernelviz.ops.matmul import triton, triton_strided, wgmma, wgmma_choice, wgmma_layouts, wgmma_skinny
from kernelviz.ops.matmul.wgmma import DEPTH, Division, Options

Bind = Callable[[], Callable[[], Any]]
SIZES = (
    *((n, n, n) for n in (512, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 4096)),
    *((512, 512, 1024), (512, 512, 2048), (512, 512, 4096), (256, 1024, 4096), (1024, 512, 4096), (256, 256, 8192)),
    *(
        (1024, 1024, 4096),
        (256, 2048, 2048),
        (256, 4096, 4096),
        (192, 640, 1536),
        (1024, 4096, 512),
        (512, 6144, 4096),
        (2048, 2560, 2560),
    ),
)
PARTS = wgmma_skinny.PARTS[1:]
STAGES = (4, 5, 6, 8)
ROUNDS, AT_ONCE = 12, 50
"""Blocks of each configuration, and configurations of a batch, so that its load is that of a burst."""
ELEMENT = "__nv_bfloat16"


def tiles() -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """Rows, columns, cluster and stages of every tile."""
    for tile in wgmma_choice.TILES:
        for cluster in tile.clusters:
            yield f"{tile.rows}x{tile.columns} cluster {cluster}", (tile.rows, tile.columns, cluster, tile.stages)


def loads_whole_boxes(options: Options) -> bool:
    """Whether the blocks of a cluster can divide the boxes of B, as the kernel for transposed factors does."""
    return options.boxes % options.cluster == 0


def exchanged() -> Iterator[tuple[int, wgmma_skinny.Tile]]:
    """Rows and tiles of the kernel whose blocks add up their parts in shared memory."""
    for rows, columns in wgmma_skinny.TILES_US:
        for count in (1, *PARTS):
            for stages in STAGES:
                tile = wgmma_skinny.Tile(columns=columns, stages=stages, parts=count)
                if tile.resident(rows):
                    yield rows, tile


def sources() -> Iterator[tuple[Path, dict[str, str], str]]:
    """What is compiled, each once, before anything is measured."""
    for _, tile in tiles():
        options = wgmma_choice.options(*tile, split_k=0)
        for one in (options, replace(options, split_k=1)):
            yield wgmma.SOURCE, one.defines(ELEMENT), "matmul_wgmma"
        for k_contiguous in (True, False):
            if not loads_whole_boxes(options):
                continue
            macros = wgmma_layouts.defines(options, ELEMENT, a_k_contiguous=k_contiguous, b_k_contiguous=k_contiguous)
            yield wgmma_layouts.SOURCE, macros, "matmul_wgmma_layouts"
    for rows, tile_in_parts in exchanged():
        yield wgmma_skinny.SOURCE, tile_in_parts.defines(ELEMENT, rows, overlap=True), "matmul_wgmma_skinny"


def compiled(work: tuple[Path, dict[str, str], str]) -> None:
    source, macros, name = work
    nvrtc.compile_cubin(source, "sm_90a", macros, name)


def in_parts(a: torch.Tensor, b: torch.Tensor, options: Options, count: int) -> Callable[[], Any]:
    """The launch with so many parts of every tile."""
    own = wgmma.divided

    def forced(tiles: int, depths: int, clusters: int, options: Options) -> Division:
        return Division(whole=tiles, parts=1) if count == 1 else Division(whole=0, parts=count)

    wgmma.divided = forced
    try:
        return wgmma.bind(a, b, options)
    finally:
        wgmma.divided = own


def forward(a: torch.Tensor, b: torch.Tensor) -> dict[str, Bind]:
    """By name, what binds each call."""
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), device=a.device, dtype=a.dtype)
    calls: dict[str, Bind] = {
        "cuBLAS": lambda: lambda: torch.mm(a, b, out=out),
        "triton_grouped": lambda: triton.bind_grouped(a, b, compute=None),
        "by size": lambda: wgmma.bind(a, b, wgmma_choice.choose(m, n, k, MULTIPROCESSORS)),
        "parts by size": lambda: wgmma_skinny.bind_parts(a, b, {"rows": 0, "columns": 0, "stages": 0, "parts": 0}),
    }
    if m <= wgmma_skinny.MOST_ROWS:
        calls["skinny"] = lambda: wgmma_skinny.bind(a, b, {"columns": 0, "stages": 0, "parts": 0})
    for name, tile in tiles():
        options = wgmma_choice.options(*tile)
        of_all = -(-m // (options.rows * options.cluster)) * -(-n // options.columns)
        for count in (1, *PARTS):
            if count == 1 or (of_all * count * options.cluster <= MULTIPROCESSORS and k >= 2 * DEPTH * count):
                calls[f"{name} parts {count}"] = lambda options=options, count=count: in_parts(a, b, options, count)  # type: ignore[misc]
    for rows, in_cluster in exchanged():
        blocks = -(-m // rows) * -(-n // in_cluster.columns) * in_cluster.parts
        if in_cluster.parts == 1 or (
            blocks <= MULTIPROCESSORS * in_cluster.resident(rows) and k >= 2 * DEPTH * in_cluster.parts
        ):
            how = {"rows": rows, "columns": in_cluster.columns, "stages": in_cluster.stages, "parts": in_cluster.parts}
            name = f"exchanged {rows}x{in_cluster.columns} stages {in_cluster.stages} parts {in_cluster.parts}"
            calls[name] = lambda how=how: wgmma_skinny.bind_parts(a, b, how)  # type: ignore[misc]
    return calls


def backward(a: torch.Tensor, b: torch.Tensor, dc: torch.Tensor) -> dict[str, Bind]:
    """By name, what binds both products of the backward pass."""
    out = torch.empty_like(a), torch.empty_like(b)

    def library() -> Callable[[], Any]:
        return lambda: (torch.mm(dc, b.t(), out=out[0]), torch.mm(a.t(), dc, out=out[1]))

    def both(one: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: (one(), other())

    def own(tile: tuple[int, int, int, int]) -> Bind:
        return lambda: both(wgmma_layouts.bind_nt(dc, b, tile), wgmma_layouts.bind_tn(a, dc, tile))

    return {
        "cuBLAS": library,
        "triton_grouped": lambda: both(
            triton_strided.bind_strided(dc, b.t(), compute=None), triton_strided.bind_strided(a.t(), dc, compute=None)
        ),
        "by size": own((0, 0, 0, 0)),
        **{name: own(tile) for name, tile in tiles() if loads_whole_boxes(wgmma_choice.options(*tile))},
    }


def times_of(session: Any, calls: Mapping[str, Bind], right: Sequence[torch.Tensor]) -> dict[str, object]:
    """By name, the median time in µs, or what is wrong."""
    told: dict[str, object] = {}
    ready: dict[str, Any] = {}
    for name, bind in calls.items():
        try:
            call = bind()
            result = call()
            torch.cuda.synchronize()
            results = result if isinstance(result, tuple) else (result,)
            if all(torch.allclose(x, y, rtol=2e-2, atol=0.5) for x, y in zip(results, right, strict=True)):
                ready[name] = session.timer.prepare(BoundLaunch(call))
            else:
                told[name] = "wrong"
        except Exception as error:
            told[name] = f"{type(error).__name__}: {error}"[:200]
    blocks: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(ROUNDS):
        for names in parts(tuple(ready), AT_ONCE):
            for name, block in zip(names, session.timer.collect([[ready[one] for one in names]])[0], strict=True):
                blocks[name].append(median(block.samples))
    return told | {name: round(median(times) * 1e6, 3) for name, times in blocks.items()}


def main(arguments: Sequence[str]) -> int:
    file = Path(arguments[0])
    sizes = [tuple(map(int, text.split("x"))) for text in arguments[1:]] or SIZES
    with ProcessPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        list(pool.map(compiled, sources()))
    session = open_session("cuda:0")
    with file.open("w") as lines:
        for m, n, k in sizes:
            torch.manual_seed(1)
            a, b, dc = (torch.randn(one, device="cuda", dtype=torch.bfloat16) for one in ((m, k), (k, n), (m, n)))
            for direction, calls, right in (
                ("forward", forward(a, b), (torch.mm(a, b),)),
                ("backward", backward(a, b, dc), (torch.mm(dc, b.t()), torch.mm(a.t(), dc))),
            ):
                told = times_of(session, calls, right)
                lines.write(json.dumps({"m": m, "n": n, "k": k, "direction": direction, "us": told}) + "\n")
                lines.flush()
                numbers = {name: one for name, one in told.items() if isinstance(one, float)}
                for name in sorted(numbers, key=numbers.__getitem__)[:6]:
                    print(f"{m} x {n} x {k} {direction}: {numbers[name]:8.3f} us {name}", flush=True)  # noqa: T201
                wrong = {name: one for name, one in told.items() if name not in numbers}
                print(f"    cuBLAS {numbers.get('cuBLAS')}, by size {numbers.get('by size')}, {wrong}", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
