"""Times of the wgmma kernel of small products with many tiles, clusters and stages, beside cuBLAS and `triton_grouped`.

    python tests/gpu/product_sweep.py FILE [MxNxK…]

Each configuration is compared with cuBLAS's product first. FILE gets a line of JSON for each size: the median time of each in µs
behind a flush, or what is wrong. The kernel is also tried with tensor maps that are fetched before its barriers are ready.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch

from kernelviz.core.chunks import parts
from kernelviz.measure.session.device_session import open_session
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.matmul import triton, wgmma
from kernelviz.ops.matmul.wgmma import Options

SIZES = (
    *((n, n, n) for n in (512, 768, 1024, 1280, 1536, 2048)),
    *((256, 1024, 4096), (256, 4096, 4096), (1024, 1024, 4096), (512, 512, 4096)),
)
ROUNDS, AT_ONCE = 12, 50
"""Blocks of each configuration, and configurations of a batch, so that its load is that of a burst."""
LATE = "    wait_for_cluster();\n\n#if SPECIALISED\n"
EARLY = """    if (threadIdx.x == (SPECIALISED ? CONSUMERS * WARPGROUP : 0)) {
        acquire_map(maps);
        acquire_map(maps + 128);
        asm volatile("prefetch.tensormap [%0];" ::"l"(maps) : "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(maps + 128) : "memory");
    }
"""
"""Before the blocks of a cluster wait for each other's barriers."""


INCLUDED = '#include "wgmma.cuh"\n'


def narrow() -> str:
    """The instruction for tiles of 64 columns, which no variant has."""
    registers = ", ".join(f"%{i}" for i in range(32))
    operands = ", ".join(f'"+f"(d[{i}])' for i in range(32))
    return f"""
__device__ __forceinline__ void wgmma(float (&d)[32], unsigned long long a, unsigned long long b, int add) {{
    asm volatile(
        "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %34, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32." ELEMENT_PTX "." ELEMENT_PTX " "
        "{{{registers}}}, %32, %33, p, 1, 1, 0, %35;\\n}}\\n"
        : {operands}
        : "l"(a), "l"(b), "r"(add), "n"(B_K_CONTIGUOUS ? 0 : 1));
}}
"""


def configurations() -> Iterator[tuple[str, Options]]:
    """Those whose shared memory fits. C goes to memory from registers by blocks of one tile, or by TMA from persistent ones, in
    the order of groups or of Hilbert's curve."""
    stores = {
        "registers": {"persistent": 0, "c_boxes": 0, "hilbert": 0},
        "tma": {"persistent": 1, "c_boxes": 1, "hilbert": 0},
        "hilbert": {"persistent": 1, "c_boxes": 1, "hilbert": 1},
    }
    for consumers, columns, stages, cluster, store in product((1, 2), (64, 128), (4, 6, 8), (1, 2, 4), stores):
        options = Options(
            consumers=consumers, columns=columns, stages=stages, cluster=cluster, specialised=1, **stores[store]
        )
        if options.shared_bytes <= MOST_SHARED_BYTES and options.rows_of_b % 8 == 0:
            yield f"{options.rows}x{columns} stages {stages} cluster {cluster} {store}", options


def sources(folder: Path) -> Mapping[str, Path]:
    """The kernel with the narrow instruction, and one that fetches its tensor maps early, too."""
    code = wgmma.SOURCE.read_text()
    assert code.count(LATE) == code.count(INCLUDED) == 1
    code = code.replace(INCLUDED, INCLUDED + narrow())
    files = {"": folder / "wgmma.cu", " early maps": folder / "early.cu"}
    for how, file in files.items():
        file.write_text(code.replace(LATE, EARLY + LATE) if how else code)
    return files


def compiled(work: tuple[Path, dict[str, str]]) -> None:
    nvrtc.compile_cubin(work[0], "sm_90a", work[1], "matmul_wgmma")


def bound(a: torch.Tensor, b: torch.Tensor, source: Path, options: Options) -> Callable[[], Any]:
    """The launch of this kernel file."""
    kept = wgmma.SOURCE
    wgmma.SOURCE = source
    try:
        return wgmma.bind(a, b, options)
    finally:
        wgmma.SOURCE = kept


def times_of(session: Any, m: int, n: int, k: int, kernels: Mapping[str, tuple[Path, Options]]) -> dict[str, object]:
    """By name, the median time in µs, or what is wrong."""
    torch.manual_seed(1)
    a, b = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
    right = torch.mm(a, b)
    told: dict[str, object] = {}
    ready: dict[str, Any] = {}
    out = torch.empty_like(right)
    others: dict[str, Callable[[], Any]] = {
        "cuBLAS": lambda: torch.mm(a, b, out=out),
        "triton_grouped": triton.bind_grouped(a, b, compute=None),
    }
    launches = {**others, **dict.fromkeys(kernels)}
    for name, launch in launches.items():
        try:
            call = launch or bound(a, b, *kernels[name])
            result = call()
            torch.cuda.synchronize()
            if not torch.allclose(result, right, rtol=2e-2, atol=1e-1):
                told[name] = "wrong"
                continue
            ready[name] = session.timer.prepare(BoundLaunch(call))
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
    with tempfile.TemporaryDirectory() as folder:
        every = sources(Path(folder))
        kernels = {
            f"{name}{how}": (source, options) for name, options in configurations() for how, source in every.items()
        }
        works = [(source, options.defines("__nv_bfloat16")) for source, options in kernels.values()]
        with ProcessPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
            list(pool.map(compiled, works, chunksize=4))
        session = open_session("cuda:0")
        with file.open("w") as lines:
            for m, n, k in sizes:
                told = times_of(session, m, n, k, kernels)
                lines.write(json.dumps({"m": m, "n": n, "k": k, "us": told}) + "\n")
                lines.flush()
                numbers = {name: one for name, one in told.items() if isinstance(one, float)}
                for name in sorted(numbers, key=numbers.__getitem__)[:6]:
                    print(f"{m} x {n} x {k}: {numbers[name]:8.3f} us {name}", flush=True)  # noqa: T201
                print(f"    cuBLAS {numbers.get('cuBLAS')}, {len(told) - len(numbers)} without a time", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
