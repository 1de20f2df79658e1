"""After many runs, the process has the same number of descriptors, threads and processes, and its memory is flat.

`python tests/bench/test_many_runs.py 200` makes so many runs and prints what they leave.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from lasting_bench import LastingBench, lasting_bench

from kernelviz.bench import Bench
from kernelviz.core import Method
from kernelviz.core.request import RunRequest
from kernelviz.metrics.rows import rows

pytestmark = pytest.mark.xdist_group("device")
RUNS, WARM_UP = 20, 6
MOST_BYTES_OF_A_RUN = 150_000
"""Growth per run, by all processes together. 200 runs by hand grew by 0.8 MB, 4 kB each; a document that stays takes 200 kB."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What this process and its descendants use."""

    descriptors: int
    threads: int
    processes: int
    resident_bytes: int


def usage() -> Usage:
    gc.collect()
    here = psutil.Process()
    family = [here, *here.children(recursive=True)]
    return Usage(
        descriptors=sum(process.num_fds() for process in family),
        threads=sum(process.num_threads() for process in family),
        processes=len(family),
        resident_bytes=sum(process.memory_info().rss for process in family),
    )


def run_once(bench: Bench, number: int) -> None:
    """A run from its plan to its table, as a page reads it."""
    request = RunRequest(op="add", sizes={"n": str(1024 + 16 * (number % 8))}, dtype="fp32", variants=("torch_eager",))
    run_id = bench.run(bench.plan(request), Method(budget_s=0.001, figures=("cold",)))
    for _ in bench.follow(run_id, timeout_s=60):
        pass
    run = bench.load(run_id)
    assert run.status == "finished"
    assert [row.failure for row in rows(run, run.environment.roofs)] == [None]


@pytest.fixture
def own_bench(tmp_path: Path) -> Iterator[LastingBench]:
    bench = lasting_bench(tmp_path)
    yield bench
    bench.end()


def test_many_runs_leave_nothing_behind(own_bench: LastingBench) -> None:
    for number in range(WARM_UP):
        run_once(own_bench, number)
    before = usage()
    for number in range(RUNS):
        run_once(own_bench, number)
    after = usage()
    assert after.processes == before.processes
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.resident_bytes - before.resident_bytes < RUNS * MOST_BYTES_OF_A_RUN


def _by_hand(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench = lasting_bench(Path(folder))
        for number in range(count + 1):
            run_once(bench, number)
            if number % 25 == 0:
                sys.stdout.write(f"{number} runs: {usage()}\n")
        bench.end()


if __name__ == "__main__":
    _by_hand(int(sys.argv[1]))
