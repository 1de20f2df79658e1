"""Measure the workloads that ship with kernelviz, check what they must show, and write the files.

    python tests/gpu/workload_runs.py FOLDER two | steps | images | models | cpu_models | locks

`two` (all_reduce, gradient_sync) and `locks` need two GPUs, the others one. Each is meant to take under eight minutes on H200.
Writes FOLDER/w-CARD-NAME.json.gz for each run as soon as it has ended; those of `two`, `steps`, `images` and `models` belong into
kernelviz/shipped/workloads. Prints values and checks; exit code 1 if a check fails. FOLDER/store keeps the runs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import WorkloadRequest
from kernelviz.core.workload import Measured, WorkloadResult, WorkloadRun
from kernelviz.formats import shipped_workloads
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.workloads import number
from kernelviz.store import Store

LOADERS = ("workers_1", "workers_2", "workers_4", "workers_8", "workers_16")
MORE_LOADERS = ("workers_4_persistent", "workers_4_prefetch_8", "workers_4_pinned")
ONE, CPU = ("cuda:0",), ("cpu",)
RUNS: dict[str, dict[str, WorkloadRequest]] = {
    "two": {
        "all-reduce": WorkloadRequest("all_reduce", preset="all_sizes"),
        "gradient-sync": WorkloadRequest("gradient_sync", preset="delayed"),
    },
    "steps": {
        "amp-resnet50": WorkloadRequest("amp_step", preset="resnet50", devices=ONE),
        "amp-transformer": WorkloadRequest("amp_step", preset="transformer", devices=ONE),
    },
    "images": {
        "data-loading": WorkloadRequest(
            "data_loading", variants=(*LOADERS, *MORE_LOADERS), preset="imagenet_like", devices=ONE
        )
    },
    "models": {
        "model-loading": WorkloadRequest("model_loading", preset="published", devices=ONE),
        "model-loading-dropped": WorkloadRequest(
            "model_loading", values={"cache": "dropped"}, preset="published", devices=ONE, budget_s=1.0
        ),
    },
    "cpu_models": {"model-loading-cpu": WorkloadRequest("model_loading", preset="published", devices=CPU)},
}
BUS_TOLERANCE, DELAY_TOLERANCE = 0.05, 0.1
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""Unless the caller decides otherwise: on a host whose GPUs others share, NVLink multicast can put these out of service. An
all-reduce of two GPUs does without."""
Check = tuple[str, bool]


def value(result: WorkloadResult, figure: str) -> float:
    """The estimate of a figure; NaN without one."""
    found = number(result.values.get(figure))
    return float("nan") if found is None else found


def checks_of(name: str, run: WorkloadRun) -> Iterator[Check]:
    """What the run must show."""
    for result in run.results:
        yield f"{result.case.key} has a result", result.failure is None
    right = [result for result in run.results if result.failure is None]
    if name == "all-reduce":
        for result in right:
            if result.case.variant == "fp32":
                yield from _bus(result)
    elif name == "gradient-sync":
        yield from _delay(right)


def _bus(result: WorkloadResult) -> Iterator[Check]:
    """nccl-tests: S / t × 2 (n - 1) / n, where n is 2."""
    by_hand = int(result.case.values["bytes"]) / value(result, "time_s")
    found = value(result, "bus_bytes_per_s")
    close = abs(found - by_hand) <= BUS_TOLERANCE * by_hand
    yield f"{result.case.key}: bus {found / 1e9:.2f} GB/s, by hand {by_hand / 1e9:.2f} GB/s", close


def _delay(results: list[WorkloadResult]) -> Iterator[Check]:
    """Without overlap, a planted delay is exposed as a whole; with overlap at most as a whole for each bucket."""
    exposed = {(r.case.variant, int(r.case.values["delay_us"])): value(r, "exposed_s") for r in results}
    for variant, delay_us in exposed:
        if delay_us and (variant, 0) in exposed:
            more_s = exposed[variant, delay_us] - exposed[variant, 0]
            close = abs(more_s - delay_us / 1e6) <= DELAY_TOLERANCE * delay_us / 1e6
            found = close if variant == "after_backward" else more_s > 0
            yield f"{variant}: a delay of {delay_us} us is exposed as {more_s * 1e6:.0f} us more", found


def measured(bench: Bench, name: str, request: WorkloadRequest) -> WorkloadRun:
    """Measure a run, and print what it found."""
    began_s = time.monotonic()
    run_id = bench.workloads.run(bench.workloads.plan(request))
    for _ in bench.workloads.follow(run_id, timeout_s=600):
        pass
    run = bench.workloads.load(run_id)
    for result in run.results:
        told = ", ".join(
            f"{figure} {value(result, figure):.5g}{'' if isinstance(v, Measured) and v.low is not None else ' (no interval)'}"
            for figure, v in result.values.items()
        )
        say(f"{result.case.key}: {result.failure or told}")
    say(f"{name}: {run.status} after {time.monotonic() - began_s:.0f} s")
    return run


def locks(folder: Path, device: str = "cuda:0,cuda:1") -> Iterator[Check]:
    """Kill a measuring command of two devices with all its children alive; the next one measures at once."""
    environment = {**os.environ, "KERNELVIZ_HOME": str(folder / "locks")}
    command = [sys.executable, "-m", "kernelviz", "workloads", "run", "all_reduce", "--device", device]
    first = subprocess.Popen([*command, "--budget", "60"], env=environment, stderr=subprocess.PIPE, text=True)
    time.sleep(20)  # it measures by then; the command writes nothing when it begins a case
    running = first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    began_s = time.monotonic()
    second = subprocess.run(
        [*command, "--set", "bytes=2^20", "--variants", "bf16"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    say(second.stdout[-1500:] + second.stderr[-1500:])
    yield "the first command was measuring when it was killed", running
    yield f"the second measured {time.monotonic() - began_s:.0f} s later", second.returncode == 0


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[1] not in (*RUNS, "locks"):
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    folder, part = Path(arguments[0]), arguments[1]
    for variable, value_off in NO_MULTICAST.items():
        os.environ.setdefault(variable, value_off)
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    if part == "locks":
        return reported(lambda: locks(folder))
    bench = Bench(Store.open(home), discover(), lock_directory=home)
    card = re.sub(r"[^a-z0-9]+", "-", bench.device("cuda:0").name.removeprefix("NVIDIA ").lower()).strip("-")

    def all_runs() -> Iterator[Check]:
        for name, request in RUNS[part].items():
            run = measured(bench, name, request)
            (folder / f"w-{card}-{name}.json.gz").write_bytes(shipped_workloads.packed(run))
            yield from checks_of(name, run)

    try:
        return reported(all_runs)
    finally:
        bench.close()


def reported(checks: Callable[[], Iterator[Check]]) -> int:
    """Print each check; the exit code."""
    failed = 0
    for text, holds in checks():
        say(f"{'ok    ' if holds else 'FAILED'} {text}")
        failed += not holds
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
