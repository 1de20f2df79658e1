"""Occupancy against NVIDIA's own calculator, cuda_occupancy.h, compiled and asked about every listed architecture."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import subprocess
from pathlib import Path

import msgspec
import planted_limits as plant
import pytest
import sample_runs as samples

from kernelviz.metrics.occupancy import LIMITS, occupancy

# Largest shared memory of a multiprocessor in KiB, resident threads, and shared memory that CUDA takes in each block: from
# cuda/__device/arch_traits.h of NVIDIA's CCCL (libcudacxx), which the calculator is told and does not know.
TRAITS = {
    (6, 0): (64, 2048, 0),
    (6, 1): (96, 2048, 0),
    (7, 0): (96, 2048, 0),
    (7, 5): (64, 1024, 0),
    (8, 0): (164, 2048, 1024),
    (8, 6): (100, 1536, 1024),
    (8, 7): (164, 1536, 1024),
    (8, 9): (100, 1536, 1024),
    (9, 0): (228, 2048, 1024),
    (10, 0): (228, 2048, 1024),
    (10, 3): (228, 2048, 1024),
    (11, 0): (228, 1536, 1024),
    (12, 0): (100, 1536, 1024),
    (12, 1): (100, 1536, 1024),
}
THREADS = (32, 64, 96, 160, 256, 320, 512, 768, 1024)
REGISTERS = (16, 24, 32, 37, 40, 64, 80, 128, 168, 255)
SHARED_KIB = (0.0, 0.5, 1.25, 6.0, 16.0, 24.0, 31.0, 47.0)

PROGRAM = r"""
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, minor, threads_sm, reserved, threads, registers;
  unsigned long shared_sm, shared;
  while (std::scanf("%d %d %lu %d %d %d %d %lu", &major, &minor, &shared_sm, &threads_sm, &reserved, &threads, &registers,
                    &shared) == 8) {
    cudaOccDeviceProp device;
    device.computeMajor = major, device.computeMinor = minor, device.numSms = 1, device.warpSize = 32;
    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = threads_sm;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = shared_sm;
    device.sharedMemPerBlockOptin = shared_sm - reserved, device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = shared_sm - reserved;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    int failed = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared);
    std::printf("%d\n", failed ? -1 : result.activeBlocksPerMultiprocessor);
  }
}
"""


def _header() -> Path | None:
    """Its folder, in CUDA's runtime package or in Triton's."""
    for package, inside in (("nvidia", "cu13/include"), ("triton", "backends/nvidia/include")):
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            if (Path(place) / inside / "cuda_occupancy.h").is_file():
                return Path(place) / inside
    return None


def test_the_limits_are_those_of_nvidias_own_table() -> None:
    assert TRAITS.keys() == LIMITS.keys()
    for capability, (shared_kib, threads, reserved) in TRAITS.items():
        limits = LIMITS[capability]
        assert (limits.shared_bytes, limits.warps, limits.reserved_bytes) == (
            shared_kib * 1024,
            threads // 32,
            reserved,
        )


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.skipif(_header() is None, reason="no cuda_occupancy.h")
def test_every_case_is_what_nvidias_calculator_says(tmp_path: Path) -> None:
    (tmp_path / "ask.cpp").write_text(PROGRAM)
    program = tmp_path / "ask"
    built = ["g++", "-O0", f"-I{_header()}", str(tmp_path / "ask.cpp"), "-o", str(program)]
    subprocess.run(built, check=True, capture_output=True, timeout=60)
    cases = [
        (capability, threads, registers, int(kib * 1024))
        for capability, threads, registers, kib in itertools.product(LIMITS, THREADS, REGISTERS, SHARED_KIB)
    ]
    lines = []
    for (major, minor), threads, registers, shared in cases:
        shared_kib, threads_sm, reserved = TRAITS[major, minor]
        lines.append(f"{major} {minor} {shared_kib * 1024} {threads_sm} {reserved} {threads} {registers} {shared}\n")
    asked = subprocess.run([str(program)], input="".join(lines), check=True, capture_output=True, text=True, timeout=60)
    said = [int(word) for word in asked.stdout.split()]
    assert len(said) == len(cases)
    for (capability, threads, registers, shared), blocks in zip(cases, said, strict=True):
        device = msgspec.structs.replace(samples.H200, compute_capability=capability)
        found = occupancy(plant.kernel(1e-6, threads=threads, registers=registers, shared=shared), device)
        assert found is not None
        assert found.blocks == blocks, (capability, threads, registers, shared, found)
