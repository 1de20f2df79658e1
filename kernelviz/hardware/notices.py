"""The notices of this machine: problems for measuring with their remedies, for the page and for `kernelviz device`."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from kernelviz.core import Device
from kernelviz.hardware import discovery, mig, nvml, other_processes, storage_folders, tracing
from kernelviz.hardware.notice import Notice, of_reason
from kernelviz.hardware.other_processes import Neighbour
from kernelviz.hardware.telemetry import own_pids

__all__ = ["Neighbour", "Notice", "notices", "toolchain", "unlisted", "unusable"]

Missing = Callable[[Iterable[str], Device], str | None]

_VARIANTS = {
    "triton": "Triton",
    "inductor": "torch.compile",
    "nvrtc": "CUDA C++",
    "cxx": "C++",
}
"""Needs that a machine can lack while its device works, and the usual names of the variants with these needs."""
_ON = {"cuda": ("triton", "inductor", "nvrtc"), "cpu": ("inductor", "cxx")}


def notices(
    device: Device, tracer: str | None, data_folder: Path | None, *, worker: bool = False
) -> tuple[Notice, ...]:
    """All current notices of a device, the most severe first. Never raises, takes some milliseconds.

    `tracer`: the tracer's line of the last environment on it (core.run.Environment.tracer). `data_folder`: the folder of runs.
    `worker`: whether a worker of this server runs on it, which a container cannot distinguish from other processes.
    """
    collected: list[Notice | None] = [unusable(device), *toolchain(device)]
    if device.kind == "cuda":
        seen = other_processes.look(device, worker=worker)
        collected += [mig.mig(device), tracing.tracing(tracer), other_processes.neighbours(seen, own_pids())]
    else:
        collected.append(unlisted(nvml.opened().problem, nvml.gpu_files()))
    written = storage_folders.folders(os.environ, data_folder, device.kind)
    said = [n for n in (*collected, *storage_folders.disks(storage_folders.look(written))) if n is not None]
    return tuple(sorted(said, key=lambda n: ("error", "warning", "info").index(n.severity)))


def unusable(device: Device) -> Notice | None:
    """A notice with discovery's reason why the device cannot be used (an old driver, a torch without CUDA, an old GPU)."""
    if device.usable:
        return None
    notice = of_reason("device", device.reason, "error")
    return Notice("device", f"{device.name} cannot be measured: {notice.sentence}", notice.remedy, "error")


def toolchain(device: Device, missing: Missing = discovery.missing) -> tuple[Notice, ...]:
    """Notices of missing compilers, headers and packages, each once, with the variants that need them.

    Without NVRTC nothing can be measured on a GPU, because it compiles the flush and the end marker.
    """
    if not device.usable:
        return ()
    lacking: dict[str, list[str]] = {}
    for need in _ON[device.kind]:
        reason = missing((need,), device)
        if reason is not None:
            lacking.setdefault(reason, []).append(need)
    collected = []
    for reason, needs in lacking.items():
        who = " and ".join(_VARIANTS[n] for n in needs) + " variants"
        all_of_it = "nvrtc" in needs
        said = of_reason("nvrtc" if all_of_it else "compiler", reason.removeprefix("needs "))
        if all_of_it:
            sentence = f"nothing can be measured on {device.name} without {said.sentence}"
            collected.append(Notice("nvrtc", sentence, said.remedy, "error"))
        else:
            collected.append(Notice("compiler", f"{who} need {said.sentence}", said.remedy))
    return tuple(collected)


def unlisted(problem: str, files: tuple[str, ...]) -> Notice | None:
    """A notice where device files of a GPU exist, but the driver's library cannot be used for the reason `problem`."""
    if not problem or not files:
        return None
    notice = of_reason("driver", problem)
    remedy = notice.remedy or "see that nvidia-smi lists the GPU for this user, then restart kernelviz"
    return Notice("driver", f"a GPU of this machine cannot be used: {notice.sentence}", remedy)
