"""The notices of this machine: problems for measuring with their remedies, for the page and for `kernelviz device`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelviz.core import Device, TracerFailure
from kernelviz.core.notices import Notice
from kernelviz.hardware import discovery, mig, nvml, other_processes, storage_folders
from kernelviz.hardware.load import METER, OtherLoad, busy_machine
from kernelviz.hardware.telemetry import own_pids

_NEEDS = {"cuda": ("triton", "inductor", "nvrtc"), "cpu": ("inductor", "cxx")}
"""Needs of variants that a machine can lack while its device works."""


def notices(
    device: Device,
    tracer_failures: Sequence[TracerFailure],
    data_folder: Path | None,
    *,
    worker: bool = False,
    other_load: Callable[[], OtherLoad | None] = METER.read,
) -> tuple[Notice, ...]:
    """All current notices of a device, the most severe first. Never raises, takes some milliseconds.

    `tracer_failures`: of the last environment on it (core.run.Environment). `data_folder`: the folder of runs.
    `other_load`: how busy other programs keep the processors. `worker`: whether a worker of this server runs on it, which a
    container cannot distinguish from other processes.
    """
    collected: list[Notice | None] = [unusable(device, discovery.device_problem(device)), *toolchain(device)]
    collected.append(busy_machine(device, other_load()))
    if device.kind == "cuda":
        collected += [
            mig.mig(device),
            tracing(tracer_failures),
            other_processes.neighbours(other_processes.look(device, worker=worker), own_pids()),
        ]
    else:
        collected.append(unlisted(nvml.opened().problem, nvml.gpu_files()))
    written = storage_folders.folders(os.environ, data_folder, device.kind)
    present = [n for n in (*collected, *storage_folders.disks(storage_folders.look(written))) if n is not None]
    return tuple(sorted(present, key=lambda n: ("error", "warning", "info").index(n.severity)))


def unusable(device: Device, problem: Notice | None = None) -> Notice | None:
    """A notice that the device cannot be used because of `problem` (None: because of the reason that the device states)."""
    if device.usable:
        return None
    cause = problem or Notice("stated", {"text": device.reason})
    return Notice("unusable_device", {"device": device.name, "cause": cause}, "device", "error")


def toolchain(
    device: Device, lacking: Callable[[str, Device], Notice | None] = discovery.lacking
) -> tuple[Notice, ...]:
    """Notices of missing compilers, headers and packages, each once, with the variants that need them.

    Without NVRTC nothing can be measured on a GPU, because it compiles the flush and the end marker.
    """
    if not device.usable:
        return ()
    lacks = {need: lack for need in _NEEDS[device.kind] if (lack := lacking(need, device)) is not None}
    collected = []
    for need, lack in lacks.items():
        needs = tuple(n for n in lacks if lacks[n] == lack)
        if "nvrtc" in needs:
            collected.append(Notice("nothing_without", {"device": device.name, "cause": lack}, "nvrtc", "error"))
        elif need == needs[0]:
            collected.append(Notice("variants_lack", {"variants": needs, "cause": lack}, "compiler"))
    return tuple(collected)


def unlisted(problem: Notice | None, files: tuple[str, ...]) -> Notice | None:
    """A notice where device files of a GPU exist, but the driver's library cannot be used because of `problem`."""
    return Notice("unlisted_gpu", {"cause": problem}, "driver") if problem and files else None


def tracing(failures: Sequence[TracerFailure]) -> Notice | None:
    """A notice if the last worker could not use CUPTI, else None. `failures`: of the tracers that it tried, the best first."""
    if not failures:
        return None
    cause = Notice(failures[0].fault, {"error": failures[0].message})
    if len(failures) == 1:
        return Notice("tracer_kineto", {"cause": cause}, "tracer", "info")
    return Notice("tracer_events", {"cause": cause}, "tracer")
