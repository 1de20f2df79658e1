"""Measure what the tables of docs/kernels.md, "Matrix products" and "Weights of 4 bits", show, and store each run.

    python tests/gpu/documented_runs.py FOLDER [NAME ...]

Writes FOLDER/CARD-NAME.kvz, a compact file for each run, as soon as it has ended, and prints its times. About 7 minutes on an
H200 without `sustained-8192`, which takes two more. The roofs are calibrated first, and kept in FOLDER/store for a next call.
`python tests/documented_tables.py FOLDER` copies the files into docs/runs and writes the tables.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.core import Method, Run, RunRequest, Timing
from kernelviz.formats import compact
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.samples import by_block
from kernelviz.store import Store

LIBRARY = "torch_eager"
BEST = (
    LIBRARY,
    "cuda_wgmma_tma_store",
    "cuda_wgmma_hilbert",
    "cuda_wgmma_by_size",
    "triton_descriptors",
    "gluon_warp_specialised",
    "cutlass_builder",
)
BF16_LADDER = (
    *(LIBRARY, "cuda_wgmma", "cuda_wgmma_two_warpgroups", "cuda_wgmma_specialised", "cuda_wgmma_wide"),
    *("cuda_wgmma_persistent", "cuda_wgmma_cluster", "cuda_wgmma_tma_store", "cuda_wgmma_hilbert"),
    "cuda_wgmma_by_size",
)
FP32_LADDER = (
    *(LIBRARY, "cuda_rows_across_threads", "cuda_naive", "cuda_tiled", "cuda_register_column", "cuda_register_tile"),
    *("cuda_register_vec16", "cuda_warp_tile", "cuda_double_buffer", "cuda_async_copy", "cuda_larger_thread_tile"),
)
FEW_ROWS = (
    *(LIBRARY, "cuda_gemv", "cuda_skinny", "cuda_wgmma_skinny"),
    *("cuda_wgmma_hilbert", "cuda_wgmma_by_size", "gluon_warp_specialised"),
    *("triton_descriptors", "triton_tile_by_size"),
)
GROUPED = (
    *(LIBRARY, "torch_grouped_mm", "triton_descriptors"),
    *("cuda_wgmma_tma_store", "cuda_wgmma_halves", "cuda_wgmma_cluster"),
)
SECONDS = Method(budget_s=0.4)
ENERGY = Method(figures=("cold", "energy"))
SUSTAINED = Method(figures=("cold", "energy"), clock="sustained", load_s=10.0)


@dataclass(frozen=True)
class Documented:
    """A run of a table. `variants`: None is what the op measures by default."""

    op: str
    sizes: dict[str, str]
    variants: tuple[str, ...] | None = None
    dtype: str | None = "bf16"
    compute: str | None = None
    direction: str = "forward"
    method: Method = field(default=SECONDS)


def cube(side: int) -> dict[str, str]:
    return dict.fromkeys("mnk", str(side))


def rows(n: int, k: int) -> dict[str, str]:
    return {"m": "1,16,64,512,4096", "n": str(n), "k": str(k)}


RUNS = {
    "matmul-bf16-ladder": Documented("matmul", cube(4096), BF16_LADDER),
    "matmul-fp32-ladder": Documented("matmul", cube(4096), FP32_LADDER, "fp32", "ieee"),
    "matmul-bf16-4096": Documented("matmul", cube(4096), BEST),
    "matmul-bf16-8192": Documented("matmul", cube(8192), BEST),
    "matmul-bf16-16384x4096x4096": Documented("matmul", {"m": "16384", "n": "4096", "k": "4096"}, BEST),
    "matmul-tf32-8192": Documented(
        "matmul", cube(8192), (LIBRARY, "cuda_wgmma_tf32", "triton_persistent"), "fp32", "tf32"
    ),
    "scaled-matmul-fast-8192": Documented("scaled_matmul", cube(8192), None, "fp8", "fast_accumulation"),
    "scaled-matmul-fp32-8192": Documented("scaled_matmul", cube(8192), None, "fp8", "fp32_accumulation"),
    "block-scaled-matmul-8192": Documented("block_scaled_matmul", cube(8192), None, "fp8"),
    "matmul-rows-14336x4096": Documented("matmul", rows(14336, 4096), FEW_ROWS),
    "matmul-rows-6144x4096": Documented("matmul", rows(6144, 4096), FEW_ROWS),
    "matmul-rows-4096x14336": Documented("matmul", rows(4096, 14336), FEW_ROWS),
    "matmul-rows-28672x4096": Documented("matmul", rows(28672, 4096), FEW_ROWS),
    "read-of-as-many-bytes": Documented("sum", {"n": "25165824,58720256,117440512"}, (LIBRARY, "cuda_persistent")),
    "linear-gelu-4096": Documented("linear_gelu", cube(4096)),
    "grouped-matmul": Documented(
        "grouped_matmul", {"g": "8", "m": "256,1024", "n": "4096", "k": "4096", "s": "1,2"}, GROUPED
    ),
    "matmul-as-many-rows": Documented("matmul", {"m": "2048,8192", "n": "4096", "k": "4096"}, (LIBRARY,)),
    "transpose-matmul-4096": Documented("transpose_matmul", cube(4096)),
    "matmul-nt-4096": Documented("matmul_nt", cube(4096)),
    "matmul-tt-4096": Documented("matmul_tt", cube(4096)),
    "matmul-backward-4096": Documented("matmul", cube(4096), direction="backward"),
    "w4a16-28672x4096": Documented("w4a16_matmul", {"m": "1,4,8,16,64,512,4096", "n": "28672", "k": "4096"}),
    "w4a16-8192x8192": Documented("w4a16_matmul", {"m": "1,8,16,64", "n": "8192", "k": "8192"}),
    "matmul-one-row-28672x4096": Documented(
        "matmul", {"m": "1", "n": "28672", "k": "4096"}, (LIBRARY, "cuda_gemv", "cuda_wgmma_skinny")
    ),
    "matmul-one-row-8192x8192": Documented(
        "matmul", {"m": "1", "n": "8192", "k": "8192"}, (LIBRARY, "cuda_gemv", "cuda_wgmma_skinny")
    ),
    "burst-8192": Documented("matmul", cube(8192), (LIBRARY, "cuda_wgmma_tma_store"), method=ENERGY),
    "sustained-8192": Documented("matmul", cube(8192), (LIBRARY, "cuda_wgmma_tma_store"), method=SUSTAINED),
}


def request_of(one: Documented) -> RunRequest:
    return RunRequest(
        op=one.op,
        sizes=one.sizes,
        variants=one.variants,
        dtype=one.dtype,
        compute=one.compute,
        direction=one.direction,
        device="cuda:0",
    )


def measured(bench: Bench, one: Documented) -> Run:
    run_id = bench.run(bench.plan(request_of(one)), one.method)
    for _ in bench.follow(run_id, timeout_s=600):
        pass
    return bench.load(run_id)


def main(arguments: list[str]) -> int:
    if not arguments or (unknown := [name for name in arguments[1:] if name not in RUNS]):
        print(__doc__, *(unknown if arguments else ()), file=sys.stderr)  # noqa: T201
        return 2
    folder = Path(arguments[0])
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    bench = Bench(Store.open(home), discover(), lock_directory=home)
    if not bench.roofs("cuda:0"):
        for _ in bench.follow(bench.calibrate("cuda:0"), timeout_s=300):
            pass
    card = re.sub(r"[^a-z0-9]+", "-", bench.device("cuda:0").name.removeprefix("NVIDIA ").lower()).strip("-")
    for name in arguments[1:] or RUNS:
        run = measured(bench, RUNS[name])
        (folder / f"{card}-{name}.kvz").write_bytes(compact.encode(by_block(run)))
        for result in run.results:
            cold = result.outcome.device_cold_s if isinstance(result.outcome, Timing) else None
            told = "not measured" if cold is None else f"{cold.estimate * 1e6:.2f} us"
            print(f"{name}: {result.problem.key} {result.variant}: {told}", flush=True)  # noqa: T201
    bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
