"""Export a run of very many cases to every format, as the command does, and print the time, the memory and the size of each.

`python tests/formats/export_large_run.py [CASES] [BLOCKS] [SAMPLES_OF_A_BLOCK]`: by default 100,000 cases of 20 blocks with one
sample each. FORMATS=json,csv chooses formats, KERNELVIZ_HOME a folder for the store, which is used again. No case was measured.
docs/speed.md has the figures of one machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import sample_runs as samples

from kernelviz.core import Run, Timing
from kernelviz.core.result import Block, Figure
from kernelviz.formats import exports
from kernelviz.store import Store

VARIANTS = tuple(samples.LADDER)


def large_run(cases: int, blocks: int, of_block: int) -> Run:
    """A run of so many cases, of which no two share an object. `of_block`: samples of each block."""
    sizes = [{"m": 64, "n": 16 * (i + 1)} for i in range(-(-cases // len(VARIANTS)))]
    problems = samples.problems("rmsnorm", sizes)
    template = samples.timed(problems[0], VARIANTS[0], 0.5)
    numbers = random.Random(1)
    results = []
    for problem in problems:
        for variant, share in samples.LADDER.items():
            time_s = 2e-6 + problem.sizes["n"] * 256 / 4.4e12 / share
            timing = Timing(device_cold_s=_figure(numbers, time_s, blocks, of_block))
            results.append(msgspec.structs.replace(template, problem=problem, variant=variant, outcome=timing))
    whole = samples.run(results[:1], id=f"large-{cases}-{blocks}-{of_block}", title="Very many cases")
    plan = msgspec.structs.replace(whole.plan, problems=problems, variants=VARIANTS)
    return msgspec.structs.replace(
        whole, plan=plan, results=tuple(results[:cases]), status="interrupted" if cases % 5 else "finished"
    )


def _figure(numbers: random.Random, time_s: float, blocks: int, of_block: int) -> Figure:
    values = tuple(time_s * (1 + 0.01 * numbers.random()) for _ in range(blocks * of_block))
    marks = tuple(Block(size=of_block, started_s=0.01 * i, clock_hz=1.98e9, round=i) for i in range(blocks))
    return Figure(
        estimate=time_s,
        low=time_s * 0.998,
        high=time_s * 1.002,
        samples=values,
        blocks=marks,
        timer="cupti",
        launch="graph",
    )


def main(cases: int = 100_000, blocks: int = 20, of_block: int = 1) -> None:
    with tempfile.TemporaryDirectory(prefix="kernelviz-large-") as folder:
        environment = dict(os.environ, KERNELVIZ_HOME=os.environ.get("KERNELVIZ_HOME", folder))
        home = Path(environment["KERNELVIZ_HOME"])
        run_id = f"large-{cases}-{blocks}-{of_block}"
        if not (home / "kernelviz.db").exists():
            begun_s = time.perf_counter()
            # In a process of its own, so that its memory is not counted.
            if not (child := os.fork()):
                Store.open(home).runs.create(large_run(cases, blocks, of_block))
                os._exit(0)
            os.waitpid(child, 0)
            print(  # noqa: T201
                f"stored in {time.perf_counter() - begun_s:.0f} s, {(home / 'kernelviz.db').stat().st_size / 1e6:.0f} MB",
                flush=True,
            )
        for name in os.environ.get("FORMATS", ",".join(exports())).split(","):
            file = Path(folder, f"run{exports()[name].suffix}")
            command = [sys.executable, "-m", "kernelviz", "export", run_id, "-o", str(file), "--to", name]
            begun_s = time.perf_counter()
            process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            said = process.stderr.read() if process.stderr else ""
            _, status, usage = os.wait4(process.pid, 0)
            size = f"{file.stat().st_size / 1e6:.1f} MB" if file.exists() else "no file"
            print(  # noqa: T201
                f"{name}: exit {os.waitstatus_to_exitcode(status)}, {time.perf_counter() - begun_s:.0f} s, "
                f"{usage.ru_utime + usage.ru_stime:.0f} s of processor time, "
                f"{usage.ru_maxrss / 2**20:.2f} GiB, {size} {said.strip()[-400:]}",
                flush=True,
            )
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
