"""Discovery without a GPU, and with a driver library that answers as a GPU machine's does."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from types import SimpleNamespace
from typing import Any

import pytest

from kernelviz.core.notes import DriverSilent
from kernelviz.core.notices import Notice
from kernelviz.core.run import Device
from kernelviz.hardware import discovery, nvml, telemetry
from kernelviz.hardware.datasheet import datasheet
from kernelviz.hardware.toolchain import TorchBuild
from kernelviz.text.notices import format_notice

H200 = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-aa")
CPU = Device(id="cpu", kind="cpu", name="CPU", uuid="CPU-1")


def problem_text(*facts: Any) -> str:
    problem = discovery.software_problem(*facts)
    return "" if problem is None else str(format_notice(problem))


class NotSupported(Exception):
    value = 3


class Driver:
    """A driver library with two H200; what it does not define, it does not support."""

    NVMLError = NotSupported
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_FI_DEV_POWER_INSTANT, NVML_SUCCESS = 186, 0
    UUIDS = ("GPU-aa", "GPU-bb")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return self.UUIDS[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid not in self.UUIDS:
            raise NotSupported
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetName(self, handle: str) -> bytes:
        return b"NVIDIA H200"

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(total=150 * 2**30, free=140 * 2**30)

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetNumGpuCores(self, handle: str) -> int:
        return 16896

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        return {1: 1980, 2: 3201}[clock]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        raise NotSupported

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=123_400))]

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0x4

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return [SimpleNamespace(pid=1), SimpleNamespace(pid=2)]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(Driver()))
    monkeypatch.setattr(discovery, "torch_build", lambda: TorchBuild("2.13.0+cu130", "13.0"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(None, Notice("no_driver")))


def test_the_processor_is_always_there_and_known(no_driver: None) -> None:
    (cpu,) = discovery.discover()
    assert cpu.id == cpu.kind == "cpu"
    assert cpu.usable
    assert cpu.threads is not None
    assert cpu.threads >= 1
    assert cpu.memory_bytes is not None
    assert cpu.memory_bytes > 2**28
    assert cpu.uuid == discovery.discover()[-1].uuid, "a device must keep its identity"
    assert discovery.gpu_problem() == "no NVIDIA driver is loaded on this machine"


def test_gpus_come_first_in_cudas_numbering(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, cpu = discovery.discover()
    assert (first.id, first.uuid, second.id, second.uuid, cpu.id) == ("cuda:0", "GPU-aa", "cuda:1", "GPU-bb", "cpu")
    assert (first.name, first.driver, first.driver_cuda) == ("NVIDIA H200", "580.95.05", "13.0")
    assert (first.memory_bytes, first.multiprocessors, first.compute_capability) == (150 * 2**30, 132, (9, 0))
    assert first.usable
    assert discovery.gpu_problem() == ""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [d.uuid for d in discovery.gpus()] == ["GPU-bb"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert discovery.gpus() == ()
    assert "CUDA_VISIBLE_DEVICES='' hides every GPU" in discovery.gpu_problem()


def test_an_old_driver_is_named_with_the_remedy() -> None:
    reason = problem_text("550.54.15", "12.4", (9, 0), TorchBuild("2.13.0+cu130", "13.0"))
    for words in ("driver 550.54.15", "CUDA 12.4", "torch 2.13.0+cu130", "CUDA 13.0", "driver 580 or newer"):
        assert words in reason
    assert reason.endswith("; update the driver and restart kernelviz, or choose cpu as the device")


def test_a_torch_for_an_older_cuda_does_not_help_an_old_driver() -> None:
    """Flush and end marker are compiled by NVRTC 13, whose kernels such a driver does not load."""
    torch = TorchBuild("2.13.0+cu126", "12.6")
    reason = problem_text("550.54.15", "12.4", (9, 0), torch, "13.0.88")
    assert "kernelviz compiles its own kernels for CUDA 13.0, which needs driver 580 or newer" in reason
    assert problem_text("580.95", "13.0", (9, 0), torch, "13.0.88") == ""


def test_a_build_without_cuda_is_named_with_the_remedy() -> None:
    reason = problem_text("580.95", "13.0", (9, 0), TorchBuild("2.13.0+cpu", None))
    assert "PyTorch 2.13.0+cpu is a build without CUDA" in reason
    assert reason.endswith("replace it with pip install --force-reinstall torch==2.13.0")


def test_nothing_speaks_against_a_new_driver_and_a_volta_is_too_old() -> None:
    build = TorchBuild("2.13.0", "13.0")
    assert problem_text("590.1", "13.1", (9, 0), build) == ""
    assert problem_text("580.95", "13.0", (7, 5), build) == ""
    assert "compute capability 7.0 is older" in problem_text("580.95", "13.0", (7, 0), build)
    assert "PyTorch is not installed" in problem_text("580.95", "13.0", (9, 0), None)


def missing_text(needs: tuple[str, ...], device: Device) -> str | None:
    notice = discovery.missing(needs, device)
    return None if notice is None else str(format_notice(notice))


def test_a_variant_that_needs_cuda_says_why_it_cannot_run(no_driver: None) -> None:
    assert missing_text(("triton", "cuda"), CPU) == "needs CUDA: no NVIDIA driver is loaded on this machine"
    assert missing_text((), CPU) is None


def test_with_a_gpu_beside_it_the_processor_says_to_choose_it(driver: None) -> None:
    assert missing_text(("cuda",), CPU) == "needs CUDA: choose a GPU as the device"
    assert missing_text(("cuda",), H200) is None


def test_compilers_are_looked_for_as_the_tools_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-cc -m64")
    monkeypatch.setenv("CXX", "no-such-c++")
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: "/no/headers")
    assert "needs a C compiler (no-such-cc)" in str(missing_text(("triton",), H200))
    assert "needs a C compiler (no-such-cc)" in str(missing_text(("inductor",), H200))
    assert "needs a C++ compiler (no-such-c++)" in str(missing_text(("inductor",), CPU))
    assert "needs a C++ compiler (no-such-c++)" in str(missing_text(("cxx",), CPU))
    assert "does not know" in str(missing_text(("quantum",), CPU))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    for need, device in (("triton", H200), ("inductor", H200), ("inductor", CPU), ("cxx", CPU)):
        reason = str(missing_text((need,), device))
        assert "needs Python's headers (/no/headers/Python.h)" in reason
        assert f"apt install python{sys.version_info.major}.{sys.version_info.minor}-dev" in reason
        assert "conda" in reason


def test_an_unusable_gpu_answers_with_its_own_reason() -> None:
    old = Device(id="cuda:0", kind="cuda", name="NVIDIA H200", uuid="GPU-aa", usable=False, reason="driver too old")
    assert missing_text(("triton",), old) == "driver too old"
    assert missing_text((), old) == "driver too old"


def test_conditions_hold_what_the_driver_says_and_nothing_else(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = telemetry.conditions(H200, own={1})
    assert (seen.sm_clock_hz, seen.memory_clock_hz, seen.power_w) == (1.98e9, 3.201e9, 123.4)
    assert seen.temperature_c is None, "a sensor that is not there is unknown, not zero"
    assert seen.event_reasons == ("power cap",)
    assert seen.other_processes == 1
    monkeypatch.setattr(telemetry, "same_ids", lambda: False)
    assert telemetry.conditions(H200).other_processes is None, "in a container a list without us cannot be trusted"
    monkeypatch.setattr(telemetry, "same_ids", lambda: True)
    assert telemetry.conditions(H200).other_processes == 2


def test_conditions_of_a_lost_device_are_unknown(driver: None) -> None:
    seen = telemetry.conditions(Device(id="cuda:7", kind="cuda", name="?", uuid="GPU-zz"))
    assert seen.sm_clock_hz is None
    assert seen.notes == (DriverSilent(),)


def test_conditions_of_the_processor() -> None:
    seen = telemetry.conditions(discovery.discover()[-1])
    assert seen.threads is not None
    assert seen.other_processes is None
    assert seen.read_at is not None


def test_a_broken_driver_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Driver):
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("nvml"):

                def refuse(*_: object) -> None:
                    raise NotSupported

                return refuse
            return super().__getattribute__(name)

    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(Broken()))
    assert [d.id for d in discovery.discover()] == ["cpu"]
    assert discovery.gpu_problem() == "the NVIDIA driver sees no GPU"
    assert telemetry.conditions(H200).sm_clock_hz is None


def test_looking_loads_neither_torch_nor_triton() -> None:
    code = (
        "import sys; from kernelviz.hardware import discovery, telemetry, datasheet; "
        "cpu = discovery.discover()[-1]; telemetry.conditions(cpu); "
        "[discovery.missing((n,), cpu) for n in ('cuda', 'triton', 'nvrtc', 'cxx', 'inductor')]; "
        "sys.exit(','.join({'torch', 'triton', 'cuda'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


class Divided(Driver):
    """Two H200: the first whole, the second divided into two slices, of which one process gets the first."""

    SLICES = ("MIG-11", "MIG-22")
    made: tuple[str, ...] = SLICES

    def nvmlDeviceGetMigMode(self, handle: str) -> tuple[int, int]:
        if handle in self.SLICES:
            raise NotSupported
        return (1, 1) if handle == "GPU-bb" else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:
        if index >= len(self.made):
            raise NotSupported
        return self.made[index]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: str) -> str:
        if handle not in self.SLICES:
            raise NotSupported
        return "GPU-bb"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return uuid if uuid in self.SLICES else super().nvmlDeviceGetHandleByUUID(uuid)

    def nvmlDeviceGetName(self, handle: str) -> bytes:
        return b"NVIDIA H200 MIG 1g.18gb" if handle in self.SLICES else b"NVIDIA H200"

    def nvmlDeviceGetAttributes_v2(self, handle: str) -> Any:
        if handle not in self.SLICES:
            raise NotSupported
        return SimpleNamespace(multiprocessorCount=16)

    def nvmlDeviceGetNumGpuCores(self, handle: str) -> int:
        if handle in self.SLICES:
            raise NotSupported
        return super().nvmlDeviceGetNumGpuCores(handle)

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        if handle in self.SLICES:
            raise NotSupported
        return 9, 0

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(total=16 * 2**30, free=15 * 2**30)


def test_of_a_divided_gpu_the_slice_is_the_device(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the whole GPU's name the whole GPU's data sheet would be held against a seventh of it."""
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(Divided()))
    (found,) = discovery.gpus()
    assert (found.id, found.uuid, found.name) == ("cuda:0", "MIG-11", "NVIDIA H200 MIG 1g.18gb")
    assert (found.multiprocessors, found.memory_bytes, found.compute_capability) == (16, 16 * 2**30, (9, 0))
    assert found.usable
    assert datasheet(found.name) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-22")
    assert [d.uuid for d in discovery.gpus()] == ["MIG-22"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert [(d.uuid, d.multiprocessors) for d in discovery.gpus()] == [("GPU-aa", 132)]


def test_a_divided_gpu_without_slices_says_how_to_make_one(driver: None, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Divided()
    library.made = ()
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(library))
    whole, divided = discovery.gpus()
    assert (whole.uuid, whole.usable, divided.uuid, divided.usable) == ("GPU-aa", True, "GPU-bb", False)
    assert "nvidia-smi mig -cgi" in divided.reason


class NoLibrary(Exception):
    value = 12


@pytest.mark.parametrize(
    ("files", "words"),
    [((), "no NVIDIA driver is loaded"), (("/dev/nvidia0",), "NVIDIA_DRIVER_CAPABILITIES=compute,utility")],
)
def test_a_container_without_the_drivers_library_is_told_from_a_machine_without_a_gpu(
    files: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_library() -> None:
        raise NoLibrary

    library = SimpleNamespace(
        NVMLError=NoLibrary,
        NVML_ERROR_LIBRARY_NOT_FOUND=12,
        NVML_ERROR_DRIVER_NOT_LOADED=9,
        NVML_ERROR_LIB_RM_VERSION_MISMATCH=18,
        NVML_ERROR_NO_PERMISSION=4,
        nvmlInit=no_library,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(nvml, "gpu_files", lambda: files)
    problem = nvml.opened.__wrapped__().problem
    assert problem is not None
    assert words in str(format_notice(problem))


@pytest.mark.parametrize(
    ("cores", "capability", "found"),
    [
        (18944, (10, 0), 148),  # B200
        (21760, (12, 0), 170),  # GeForce RTX 5090
        (6144, (12, 1), 48),  # GB10
        (10752, (8, 6), 84),  # RTX A6000
        (6912, (8, 0), 108),  # A100
        (18944, (13, 7), None),
        (18945, (10, 0), None),
    ],
)
def test_multiprocessors_follow_from_the_cores(cores: int, capability: tuple[int, int], found: int | None) -> None:
    assert discovery.multiprocessors(cores, capability) == found
