"""Measure the workloads that ship with kernelviz, check what they must show, and write the files.

    python tests/gpu/workload_runs.py FOLDER PART... [--most-s SECONDS]

PART: two, locks (both need two GPUs), steps, transformer_step, images, more_images, models, dropped, cpu_models. `two` is
all_reduce and gradient_sync. Each run has a time limit of its own, all together have --most-s. One call of ten minutes is
`two locks` on two GPUs, `steps transformer_step`, `images`, `models`, or `dropped cpu_models`. Each run is written as
FOLDER/w-CARD-NAME.json.gz as soon as it has ended, and belongs into kernelviz/shipped/workloads; what was cut off is written as
incomplete-w-…. Prints values, checks, and a summary at the end, which is in FOLDER/summary-workload_runs.json, too. Exit code 1
if a check fails. FOLDER/store keeps the runs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from limited_parts import Check, Parts, arguments_of, measured_workload, say
from planted_delay import delay_checks

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import WorkloadRequest
from kernelviz.core import Device
from kernelviz.core.workload import WorkloadResult, WorkloadRun
from kernelviz.formats import shipped_workloads
from kernelviz.hardware.discovery import discover
from kernelviz.metrics.workloads import number
from kernelviz.store import Store
from kernelviz.worker.device_lock import DeviceLock

LOADERS = ("workers_0_one_thread", "workers_0", "workers_1", "workers_2", "workers_4", "workers_8", "workers_16")
MORE_LOADERS = ("workers_0_one_thread", "workers_0", "workers_4_persistent", "workers_4_prefetch_8", "workers_4_pinned")
ONE, CPU = ("cuda:0",), ("cpu",)
RUNS: dict[str, dict[str, WorkloadRequest]] = {
    "two": {
        "all-reduce": WorkloadRequest("all_reduce", preset="all_sizes"),
        # In 3 s a case, there are rounds enough to find one delay of 2 ms among steps that differ by several milliseconds.
        "gradient-sync": WorkloadRequest("gradient_sync", preset="delayed", budget_s=3.0),
    },
    "steps": {
        "amp-resnet50": WorkloadRequest("amp_step", preset="resnet50", devices=ONE),
    },
    "transformer_step": {
        "amp-transformer": WorkloadRequest("amp_step", preset="transformer", devices=ONE),
    },
    "images": {
        "data-loading": WorkloadRequest(
            "data_loading", variants=LOADERS, values={"step_ms": "0"}, preset="imagenet_like", devices=ONE
        ),
        "data-loading-step": WorkloadRequest(
            "data_loading",
            variants=("workers_0", "workers_4", "workers_8"),
            values={"step_ms": "40"},
            preset="imagenet_like",
            devices=ONE,
        ),
    },
    "more_images": {
        "data-loading-more": WorkloadRequest(
            "data_loading", variants=MORE_LOADERS, values={"step_ms": "0"}, preset="imagenet_like", devices=ONE
        ),
    },
    "models": {"model-loading": WorkloadRequest("model_loading", preset="published", devices=ONE)},
    "dropped": {
        "model-loading-dropped": WorkloadRequest(
            "model_loading", values={"cache": "dropped"}, preset="published", devices=ONE, budget_s=1.0
        ),
    },
    "cpu_models": {"model-loading-cpu": WorkloadRequest("model_loading", preset="published", devices=CPU)},
}
MOST_S = {
    "all-reduce": 330,
    "gradient-sync": 180,
    "amp-resnet50": 240,
    "amp-transformer": 180,
    "data-loading": 380,
    "data-loading-step": 240,
    "data-loading-more": 240,
    "model-loading": 530,
    "model-loading-dropped": 240,
    "model-loading-cpu": 300,
}
"""Seconds of each run, after which it is cut off."""
LOCKS_S = 150
BUS_TOLERANCE = 0.05
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""Unless the caller decides otherwise: on a host whose GPUs others share, NVLink multicast can put these out of service. An
all-reduce of two GPUs does without."""


def value(result: WorkloadResult, figure: str) -> float:
    """The estimate of a figure; NaN without one."""
    found = number(result.values.get(figure))
    return float("nan") if found is None else found


def checks_of(name: str, run: WorkloadRun) -> Iterator[Check]:
    """What the run must show."""
    for result in run.results:
        if result.failure is None or result.failure.stage != "unavailable":  # a variant may not take these values
            yield f"{result.case.key} has a result", result.failure is None
    right = [result for result in run.results if result.failure is None]
    if name == "all-reduce":
        for result in right:
            if result.case.variant == "fp32":
                yield from _bus(result)
    elif name == "gradient-sync":
        yield from delay_checks(right)


def _bus(result: WorkloadResult) -> Iterator[Check]:
    """nccl-tests: S / t × 2 (n - 1) / n, where n is 2."""
    by_hand = int(result.case.values["bytes"]) / value(result, "time_s")
    found = value(result, "bus_bytes_per_s")
    close = abs(found - by_hand) <= BUS_TOLERANCE * by_hand
    yield f"{result.case.key}: bus {found / 1e9:.2f} GB/s, by hand {by_hand / 1e9:.2f} GB/s", close


def measured(bench: Bench, name: str, request: WorkloadRequest, folder: Path, until_s: float) -> Iterator[Check]:
    """Measure a run, write its file, and check it."""
    run_id = bench.workloads.run(bench.workloads.plan(request))
    run = measured_workload(bench, run_id, until_s)
    whole = run.status == "finished"
    card = re.sub(r"[^a-z0-9]+", "-", run.devices[0].name.removeprefix("NVIDIA ").lower()).strip("-")
    file = folder / f"{'' if whole else 'incomplete-'}w-{card}-{name}.json.gz"
    file.write_bytes(shipped_workloads.packed(run))
    yield f"it is {run.status}: {file.name}", whole
    yield from checks_of(name, run)


def locks(folder: Path, gpus: Sequence[Device], until_s: float) -> Iterator[Check]:
    """Kill a measuring command of two devices with all its children alive; the next one measures at once."""
    home = {**os.environ, "KERNELVIZ_HOME": str(folder / "locks")}
    device = ",".join(gpu.id for gpu in gpus)
    command = [sys.executable, "-m", "kernelviz", "workloads", "run", "all_reduce", "--device", device]
    both = [DeviceLock(gpu.uuid) for gpu in gpus]
    with (folder / "locks.txt").open("w") as log:
        first = subprocess.Popen([*command, "--budget", "60"], env=home, stdout=log, stderr=log)
        try:
            while time.monotonic() < until_s - 60 and first.poll() is None and _holders(both) != {first.pid}:
                time.sleep(0.2)
            yield (
                f"both devices are locked by one command: {_holders(both)} is {first.pid}",
                _holders(both) == {first.pid},
            )
            time.sleep(max(0.0, min(25.0, until_s - 60 - time.monotonic())))  # its ranks measure by then
            yield "the first command was measuring when it was killed", first.poll() is None
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
    began_s = time.monotonic()
    second = subprocess.run(
        [*command, "--set", "bytes=2^20", "--variants", "bf16"],
        env=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=max(10.0, until_s - time.monotonic()),
    )
    say(second.stdout[-1500:] + second.stderr[-1500:])
    yield f"the second measured {time.monotonic() - began_s:.0f} s later", second.returncode == 0
    yield "both devices are free again", all(lock.acquire(lambda holder: None, lambda: True) for lock in both)


def _holders(both: Sequence[DeviceLock]) -> set[int | None]:
    return {None if (holder := lock.holder()) is None else holder.pid for lock in both}


def main(arguments: list[str]) -> int:
    folder, names, total_s = arguments_of(__doc__, (*RUNS, "locks"), arguments)
    for variable, value_off in NO_MULTICAST.items():
        os.environ.setdefault(variable, value_off)
    home = folder / "store"
    home.mkdir(parents=True, exist_ok=True)
    parts = Parts(folder, "workload_runs", total_s)
    devices = discover()
    bench = Bench(Store.open(home), devices, lock_directory=home)
    try:
        for part in names:
            if part == "locks":
                gpus = [d for d in devices if d.kind == "cuda" and d.usable][:2]
                parts.run(part, lambda until_s, gpus=gpus: locks(folder, gpus, until_s), LOCKS_S)  # type: ignore[misc]
                continue
            for name, request in RUNS[part].items():
                parts.run(
                    name,
                    lambda until_s, name=name, request=request: measured(bench, name, request, folder, until_s),  # type: ignore[misc]
                    MOST_S[name],
                )
    finally:
        bench.close()
    return parts.summed_up()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
