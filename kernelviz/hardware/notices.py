"""The notices of this machine: problems for measuring with their remedies, for the page and for `kernelviz device`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from kernelviz.core import Device
from kernelviz.core.notices import Notice, NoticeKind
from kernelviz.hardware import discovery, mig, nvml, other_processes, storage_folders
from kernelviz.hardware.telemetry import own_pids

_NEEDS = {"cuda": ("triton", "inductor", "nvrtc"), "cpu": ("inductor", "cxx")}
"""Needs of variants that a machine can lack while its device works."""

_SIGNS: Mapping[NoticeKind, tuple[str, ...]] = MappingProxyType(
    {
        "cupti_not_allowed": ("INSUFFICIENT_PRIVILEGES", "error 35"),
        "other_profiler": ("MULTIPLE_SUBSCRIBERS", "error 39"),
        "no_cupti": ("ModuleNotFoundError", "ImportError"),
        "other_cupti_version": ("NotSupportedError", "NOT_COMPATIBLE", "FunctionNotFoundError"),
    }
)
"""Names in the text of a tracer's error, by the cause of the error (CUPTI API reference, "CUptiResult")."""


def notices(
    device: Device, tracer: str | None, data_folder: Path | None, *, worker: bool = False
) -> tuple[Notice, ...]:
    """All current notices of a device, the most severe first. Never raises, takes some milliseconds.

    `tracer`: the tracer's line of the last environment on it (core.run.Environment.tracer). `data_folder`: the folder of runs.
    `worker`: whether a worker of this server runs on it, which a container cannot distinguish from other processes.
    """
    collected: list[Notice | None] = [unusable(device, discovery.device_problem(device)), *toolchain(device)]
    if device.kind == "cuda":
        collected += [
            mig.mig(device),
            tracing(tracer),
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


def cause(errors: Sequence[str]) -> Notice:
    """The first known cause in the tracers' errors, in the format of `measure.timing.tracers.open_tracer`.

    >>> cause(["CuptiTracer: cuptiError: ERROR_INSUFFICIENT_PRIVILEGES (35)"]).kind
    'cupti_not_allowed'
    """
    known = (kind for kind, signs in _SIGNS.items() if any(sign in " ".join(errors) for sign in signs))
    silent = not errors or "traced nothing" in errors[0]
    return Notice(next(known, "nothing_traced" if silent else "cupti_error"), {"error": "".join(errors[:1])})


def tracing(line: str | None) -> Notice | None:
    """A notice when the last worker could not use CUPTI, else None.

    `line` is the tracer of its environment: a name, then the errors of the tracers before it; None before any measurement.
    """
    name, *errors = (line or "cupti").split("; ")
    match name:
        case "kineto":
            return Notice("tracer_kineto", {"cause": cause(errors)}, "tracer", "info")
        case "events":
            return Notice("tracer_events", {"cause": cause(errors)}, "tracer")
        case _:
            return None
