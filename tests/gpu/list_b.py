"""Measure list B: 40 products of matrices that no kernel was tuned for, the best own variant against cuBLAS.

    python tests/gpu/list_b.py FILE.tsv [--seed HASH]

M, N and K are log-uniform in 1 to 16,384, drawn with the hash of the last commit of a kernel before the list was measured, so
that nobody could know them. Writes a line for each problem as soon as it is measured; the roofs are not needed. About 5 minutes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.core import Method, RunRequest, Timing
from kernelviz.hardware.discovery import discover
from kernelviz.store import Store

SEED = "6b81f072cc1e3ade51f29b9327e1fa7b08021899"
COUNT, LARGEST = 40, 16384
COLUMNS = ("m", "n", "k", "cublas_us", "best_own", "best_own_us", "card")
LIBRARY = "torch_eager"
OWN = (
    *("triton_grouped", "triton_tile_by_size", "cuda_mma", "cuda_wgmma_hilbert", "cuda_wgmma_by_size"),
    *("cuda_gemv", "cuda_skinny", "cuda_wgmma_skinny"),
)


def problems(seed: str = SEED) -> list[tuple[int, ...]]:
    """M, N and K of each problem."""
    draw = random.Random(seed)
    return [tuple(round(math.exp(draw.uniform(0, math.log(LARGEST)))) for _ in "mnk") for _ in range(COUNT)]


def times_us(bench: Bench, sizes: tuple[int, ...]) -> dict[str, float]:
    """The cold device time of each variant that takes this problem and is right, µs."""
    request = RunRequest(
        op="matmul",
        dtype="bf16",
        sizes=dict(zip("mnk", map(str, sizes), strict=True)),
        variants=(LIBRARY, *OWN),
        device="cuda:0",
    )
    run_id = bench.run(bench.plan(request), Method(budget_s=0.1))
    for _ in bench.follow(run_id, timeout_s=100):
        pass
    return {
        result.variant: result.outcome.device_cold_s.estimate * 1e6
        for result in bench.load(run_id).results
        if isinstance(result.outcome, Timing)
        and result.outcome.device_cold_s is not None
        and result.accuracy is not None
        and result.accuracy.passed
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", default=SEED)
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp())
    bench = Bench(Store.open(folder), discover(), lock_directory=folder)
    card = bench.device("cuda:0").name
    with given.file.open("w") as file:
        print(*COLUMNS, sep="\t", file=file)
        for sizes in problems(given.seed):
            times = times_us(bench, sizes)
            own = {name: time for name, time in times.items() if name != LIBRARY}
            best = min(own, key=lambda name: own[name])
            print(*sizes, f"{times[LIBRARY]:.2f}", best, f"{own[best]:.2f}", card, sep="\t", file=file, flush=True)
            print(sizes, {name: round(time, 2) for name, time in times.items()}, flush=True)  # noqa: T201
    bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
