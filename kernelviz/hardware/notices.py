"""What of this machine hampers measuring, each in a sentence with its remedy: for the page and for `kernelviz device`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from kernelviz.core.run import Device
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
"""Needs that a machine can lack while its device works, and what people call the variants that have them."""
_ON = {"cuda": ("triton", "inductor", "nvrtc"), "cpu": ("inductor", "cxx")}


def notices(
    device: Device, tracer: str | None, data_folder: Path | None, *, worker: bool = False
) -> tuple[Notice, ...]:
    """Everything that there is to say of a device now, the worst first. Never raises, takes some milliseconds.

    `tracer`: the line of the last environment measured on it (core.run.Environment.tracer). `data_folder`: where runs are.
    `worker`: one of ours is on it, which a container cannot tell from others.
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
    """The reason that discovery found already (driver too old, a torch without CUDA, a GPU too old)."""
    if device.usable:
        return None
    notice = of_reason("device", device.reason, "error")
    return Notice("device", f"{device.name} cannot be measured: {notice.sentence}", notice.remedy, "error")


def toolchain(device: Device, missing: Missing = discovery.missing) -> tuple[Notice, ...]:
    """Compilers, headers and packages that are not here, each once, with the variants that need them.

    Without NVRTC nothing can be measured on a GPU: flush and end marker are compiled by it.
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
    """A GPU is here, by its files, and the driver's library could not be asked for it: `problem` says why."""
    if not problem or not files:
        return None
    notice = of_reason("driver", problem)
    remedy = notice.remedy or "see that nvidia-smi lists the GPU for this user, then restart kernelviz"
    return Notice("driver", f"a GPU of this machine cannot be used: {notice.sentence}", remedy)
