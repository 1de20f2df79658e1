"""Measure what the tables of docs/kernels.md show of compute-bound ops, and store each run.

    python tests/gpu/documented_runs.py FOLDER [NAME ...]

NAME is a run or the beginning of the names of several. Writes FOLDER/CARD-NAME.kvz, a compact file for each run, as soon as it
has ended, and prints its times. Matrix products take about 7 minutes on an H200 without `sustained-8192`, which takes two more.
The roofs are calibrated first, and kept in FOLDER/store for a next call.
`python tests/documented_tables.py FOLDER` copies the files into docs/runs and writes the tables.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from documented_attention import ATTENTION
from documented_convolution import CONVOLUTION, LOSS
from documented_matmul import MATRIX_PRODUCTS
from documented_plan import Documented

from kernelviz.bench import Bench
from kernelviz.core import Run, Timing
from kernelviz.formats import compact
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.samples import by_block
from kernelviz.store import Store

RUNS = {**MATRIX_PRODUCTS, **ATTENTION, **CONVOLUTION, **LOSS}


def measured(bench: Bench, one: Documented) -> Run:
    run_id = bench.run(bench.plan(one.request()), one.method)
    for _ in bench.follow(run_id, timeout_s=600):
        pass
    return bench.load(run_id)


def main(arguments: list[str]) -> int:
    chosen = {name: [run for run in RUNS if run.startswith(name)] for name in arguments[1:]}
    if not arguments or not all(chosen.values()):
        print(__doc__, *(name for name, runs in chosen.items() if not runs), file=sys.stderr)  # noqa: T201
        return 2
    folder = Path(arguments[0])
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    bench = Bench(Store.open(home), discover(), lock_directory=home)
    if not bench.roofs("cuda:0"):
        for _ in bench.follow(bench.calibrate("cuda:0"), timeout_s=300):
            pass
    card = re.sub(r"[^a-z0-9]+", "-", bench.device("cuda:0").name.removeprefix("NVIDIA ").lower()).strip("-")
    for name in dict.fromkeys(run for runs in chosen.values() for run in runs) or RUNS:
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
