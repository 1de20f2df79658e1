"""Each thing that hampers measuring is a sentence with a remedy, made from planted facts; a sound machine gets none."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.notices import Notice
from kernelviz.core.run import Device
from kernelviz.core.version_1 import tracer_failures
from kernelviz.hardware import discovery, mig, nvml, other_processes, storage_folders
from kernelviz.hardware import notices as room
from kernelviz.hardware.load import LoadMeter, OtherLoad, ProcessorTimes, processor_times
from kernelviz.hardware.other_processes import Neighbour, Seen
from kernelviz.hardware.storage_folders import FolderState
from kernelviz.hardware.toolchain import TorchBuild
from kernelviz.text.notices import describe_notice

H200, CPU = samples.H200, samples.CPU
Usage = namedtuple("Usage", "total used free")


def said(notice: Notice | None) -> str:
    assert notice is not None
    sentence, remedy = map(str, describe_notice(notice))
    assert sentence
    assert remedy, "a notice without a remedy"
    return f"{sentence}. {remedy}"


def remedy_of(notice: Notice) -> str:
    return str(describe_notice(notice).remedy)


# The device


def test_a_driver_that_is_too_old_names_both_versions_and_the_remedy() -> None:
    problem = discovery.software_problem("535.183", "12.2", (9, 0), TorchBuild("2.13.0+cu130", "13.0"))
    notice = room.unusable(msgspec.structs.replace(H200, usable=False), problem)
    for part in ("driver 535.183", "CUDA 12.2", "CUDA 13.0", "driver 580 or newer", "update the driver"):
        assert part in said(notice)
    assert notice is not None
    assert notice.severity == "error"
    assert room.unusable(H200) is None


def test_a_gpu_that_the_drivers_library_does_not_name_is_said_and_no_gpu_is_not() -> None:
    problem = Notice("no_nvml")
    assert "pip install nvidia-ml-py" in said(room.unlisted(problem, ("/dev/nvidia0",)))
    assert room.unlisted(problem, ()) is None
    assert room.unlisted(None, ("/dev/nvidia0",)) is None


def test_a_slice_is_held_against_its_own_roofs() -> None:
    slice_ = msgspec.structs.replace(H200, uuid="MIG-1234", multiprocessors=16, memory_bytes=16 * 2**30)
    words = said(mig.mig(slice_))
    assert "16 multiprocessors and 16.00 GiB" in words
    assert "data sheet of the whole GPU does not apply" in words
    assert "Calibrate" in words
    assert mig.mig(H200) is None


# What compiles


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (H200, "Triton and torch.compile variants need a C compiler (gcc or clang), and none is found"),
        (CPU, "torch.compile variants need a C++ compiler (g++), and none is found"),
    ],
)
def test_no_compiler_says_which_variants_are_lost_and_how_to_get_it(
    device: Device, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    found = [n for n in room.toolchain(device) if n.subject == "compiler"]
    assert words in said(found[0])
    assert "apt install g" in remedy_of(found[0])
    assert "conda install" in remedy_of(found[0])


def test_without_nvrtc_nothing_can_be_measured_on_a_gpu() -> None:
    def no_nvrtc(need: str, device: Device) -> Notice | None:
        return Notice("no_nvrtc", {"lacking": ("cuda-core",)}) if need == "nvrtc" else None

    (notice,) = room.toolchain(H200, no_nvrtc)
    assert "nothing can be measured on NVIDIA H200 without NVRTC, of which this is not installed: cuda-core" in said(
        notice
    )
    assert (notice.subject, notice.severity) == ("nvrtc", "error")
    assert room.toolchain(CPU, no_nvrtc) == ()


def test_of_a_gpu_that_cannot_be_used_no_compiler_is_missed() -> None:
    assert room.toolchain(msgspec.structs.replace(H200, usable=False, reason="driver too old; update it")) == ()


# The tracer


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("kineto; CuptiTracer.shared: cuptiError: ERROR_INSUFFICIENT_PRIVILEGES (35)", "--cap-add=SYS_ADMIN"),
        ("kineto; CuptiTracer.shared: cuptiError: ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)", "without nsys, ncu"),
        ("kineto; CuptiTracer.shared: ModuleNotFoundError: No module named 'cupti'", "pip install cupti-python"),
        ("kineto; CuptiTracer.shared: NotSupportedError: CUPTI is not found", "requirements.txt"),
        ("kineto; CuptiTracer.shared: traced nothing", "end every profiler"),
        ("kineto; CuptiTracer.shared: cuptiError: ERROR_HARDWARE (9)", "end every profiler"),
        (
            "kineto; CuptiTracer.shared: CuptiError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35) in x",
            "--cap-add=SYS_ADMIN",
        ),
    ],
)
def test_cupti_that_cannot_be_used_says_what_takes_its_place(line: str, remedy: str) -> None:
    words = said(room.tracing(tracer_failures(line)))
    assert "torch.profiler gives the kernels' times instead" in words
    assert remedy in words


def test_a_cause_that_nobody_knows_is_told_as_it_was_said() -> None:
    assert "ERROR_HARDWARE (9)" in said(
        room.tracing(tracer_failures("kineto; CuptiTracer.shared: cuptiError: ERROR_HARDWARE (9)"))
    )


def test_a_tracer_that_works_and_one_not_yet_known_need_no_words() -> None:
    assert room.tracing(tracer_failures("cupti")) is None
    assert room.tracing(tracer_failures(None)) is None


# Neighbours

US = Neighbour(1, "python")


def seen(*listed: Neighbour, same_ids: bool = True, worker: bool = False, used_bytes: int | None = None) -> Seen:
    return Seen(listed, same_ids=same_ids, worker=worker, used_bytes=used_bytes)


def test_programs_of_others_are_named() -> None:
    words = said(other_processes.neighbours(seen(Neighbour(7, "python"), Neighbour(8, None), US), {1}))
    assert "(python (process 7), a program without a name (process 8))" in words
    assert "process 1)" not in words
    five = [Neighbour(n, "python") for n in range(10, 15)]
    assert "and 2 more" in said(other_processes.neighbours(seen(*five), {1}))


def test_a_stranger_is_seen_before_a_worker_of_ours_is_on_the_gpu() -> None:
    assert "process 7" in said(other_processes.neighbours(seen(Neighbour(7, "python")), {1}))


def test_in_a_container_what_is_hidden_is_called_hidden_and_what_may_be_us_is_not_guessed() -> None:
    by_memory = other_processes.neighbours(seen(same_ids=False, used_bytes=12 * 2**30), {1})
    assert "another program holds 12.00 GiB of this GPU's memory" in said(by_memory)
    by_list = other_processes.neighbours(seen(Neighbour(4242, None), same_ids=False), {1})
    assert "a program on the host or in another container" in said(by_list)
    assert other_processes.neighbours(seen(same_ids=False, worker=True, used_bytes=12 * 2**30), {1}) is None
    assert other_processes.neighbours(seen(Neighbour(4242, None), same_ids=False, worker=True), {1}) is None


def test_alone_on_the_gpu_nothing_is_said() -> None:
    waits = Neighbour(9, "python", waits=True)  # another kernelviz's, which never measures while we do
    for alone in (seen(), seen(US), seen(US, waits), seen(same_ids=False, used_bytes=0), seen(same_ids=False)):
        assert other_processes.neighbours(alone, {1}) is None


def test_the_namespace_of_process_ids_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "self/ns").mkdir(parents=True)
    link = tmp_path / "self/ns/pid"
    assert not other_processes.same_ids(tmp_path)
    link.symlink_to("pid:[4026531836]")
    assert other_processes.same_ids(tmp_path)
    link.unlink()
    link.symlink_to("pid:[4026532266]")
    assert not other_processes.same_ids(tmp_path)


def test_the_driver_is_asked_and_its_answers_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        NVMLError = LookupError
        nvmlMemory_v2 = 2

        def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
            return uuid

        def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
            return [msgspec.defstruct("Process", ["pid"])(os.getpid())]

        def nvmlDeviceGetMemoryInfo(self, handle: str, version: int) -> Any:
            assert version == self.nvmlMemory_v2, "the first version counts the driver's own memory as used"
            return Usage(0, 5, 0)

    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(Driver()))
    found = other_processes.look(H200, worker=True)
    assert [n.pid for n in found.listed] == [os.getpid()]
    assert found.listed[0].name
    assert (found.worker, found.used_bytes) == (True, 5)


# Disks


def test_a_disk_that_is_nearly_full_is_named_once_with_its_folders_and_their_variables() -> None:
    places = [
        FolderState("TRITON_CACHE_DIR", Path("/a"), writable=True, disk=1, free_bytes=5 * 2**20),
        FolderState("TMPDIR", Path("/b"), writable=True, disk=1, free_bytes=5 * 2**20),
        FolderState("KERNELVIZ_HOME", Path("/c"), writable=True, disk=2, free_bytes=2**40),
    ]
    (notice,) = storage_folders.disks(places)
    assert "the disk of /a and /b has 5.00 MiB left" in said(notice)
    assert "TRITON_CACHE_DIR and TMPDIR" in remedy_of(notice)


def test_a_folder_that_cannot_be_written_is_named_with_what_is_lost() -> None:
    (notice,) = storage_folders.disks([FolderState("KERNELVIZ_HOME", Path("/c"), writable=False)])
    assert "the folder /c cannot be written: runs cannot be stored" in said(notice)
    assert "KERNELVIZ_HOME" in remedy_of(notice)
    for variable in storage_folders.folders(os.environ, Path("/c")):
        assert storage_folders.disks([FolderState(variable, Path("/c"), writable=False)])


def test_folders_are_looked_at_where_they_are_or_would_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 90, 7))
    (found,) = storage_folders.look({"TRITON_CACHE_DIR": tmp_path / "not" / "made" / "yet"})
    assert (found.writable, found.free_bytes, found.disk) == (True, 7, tmp_path.stat().st_dev)
    file = tmp_path / "file"
    file.touch()
    (found,) = storage_folders.look({"TRITON_CACHE_DIR": file / "cache"})
    assert not found.writable
    monkeypatch.setattr(os, "access", lambda *_: False)
    (found,) = storage_folders.look({"TRITON_CACHE_DIR": tmp_path})
    assert not found.writable


def test_folders_follow_their_variables(tmp_path: Path) -> None:
    given = {"TRITON_CACHE_DIR": "/t", "TORCHINDUCTOR_CACHE_DIR": "/i", "KERNELVIZ_CACHE": "/k"}
    found = storage_folders.folders(given, tmp_path)
    assert {v: str(found[v]) for v in given} == given
    assert found["KERNELVIZ_HOME"] == tmp_path
    assert str(storage_folders.folders({"TRITON_HOME": "/h"})["TRITON_CACHE_DIR"]) == "/h/.triton/cache"
    assert storage_folders.folders(given, tmp_path, "cpu").keys() == {
        "TORCHINDUCTOR_CACHE_DIR",
        "TMPDIR",
        "KERNELVIZ_HOME",
    }


def test_torch_has_its_cache_where_we_look(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert str(storage_folders.folders({})["TORCHINDUCTOR_CACHE_DIR"]) == default_cache_dir()


# All together


@pytest.mark.parametrize("device", [H200, CPU])
def test_a_sound_machine_gets_no_notice(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(monkeypatch)
    assert room.notices(device, (), tmp_path, other_load=lambda: None) == ()
    quiet, busy = (OtherLoad(busy=busy, processors=2) for busy in (0.4, 1.6))
    assert room.notices(device, (), tmp_path, other_load=lambda: quiet) == ()
    (notice,) = room.notices(device, (), tmp_path, other_load=lambda: busy)
    assert (notice.kind, notice.severity) == (
        ("busy_host", "info") if device.kind == "cuda" else ("busy_machine", "warning")
    )
    assert str(describe_notice(notice).sentence).startswith("other programs use 80 % of this machine's 2 processors")


class Clock:
    """Gives the given times in turn."""

    def __init__(self, *times: ProcessorTimes) -> None:
        self.times = list(times)

    def __call__(self) -> ProcessorTimes:
        return self.times.pop(0)


def test_what_this_process_uses_is_not_the_load_of_others() -> None:
    """A process of ours that measures on both processors, then another one that takes one of them."""
    meter = LoadMeter(
        Clock(
            ProcessorTimes(at_s=4.0, busy_s=1000.0, own_s=4.0, average=1.1),
            ProcessorTimes(at_s=4.5, busy_s=1001.0, own_s=5.0, average=1.1),
            ProcessorTimes(at_s=14.0, busy_s=1020.0, own_s=24.0, average=1.9),
            ProcessorTimes(at_s=24.0, busy_s=1030.0, own_s=24.0, average=1.9),
            ProcessorTimes(at_s=600.0, busy_s=1031.0, own_s=24.0, average=0.1),
        ),
        processors=2,
    )
    loads = [meter.read() for _ in range(5)]
    assert [None if load is None else round(load.busy, 2) for load in loads] == [0.1, 0.1, 0.0, 1.0, 0.1]
    assert LoadMeter(Clock(ProcessorTimes(at_s=1.0, busy_s=9.0, own_s=1.0)), processors=2).read() is None
    here = processor_times()
    assert here.busy_s > here.own_s > 0


def test_the_worst_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(monkeypatch)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 90, 5 * 2**20))
    slice_ = msgspec.structs.replace(H200, uuid="MIG-1", usable=False, reason="driver too old; update it")
    failures = tracer_failures("kineto; CuptiTracer.shared: traced nothing")
    found = room.notices(slice_, failures, tmp_path, other_load=lambda: None)
    assert [n.subject for n in found if n.subject != "disk"] == ["device", "mig", "tracer"]
    assert [n.severity for n in found] == sorted((n.severity for n in found), key=["error", "warning", "info"].index)


def sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with compilers, room on its disks and nobody else on its GPU."""
    monkeypatch.setattr(room, "toolchain", lambda _: ())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2**41, 2**40, 2**40))
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(None, Notice("no_driver")))
    monkeypatch.setattr(nvml, "gpu_files", lambda: ())
