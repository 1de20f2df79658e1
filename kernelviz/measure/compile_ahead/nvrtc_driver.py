"""A driver for kernels of CUDA C++ that compiles them into the cache on disk, and loads and launches nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernelviz.ops.kernels import nvrtc

Compile = Callable[[Path, str, Mapping[str, str], str], bytes]
"""The cubin of a kernel: of a source, for an architecture, with definitions, by name."""
Compiled = Callable[[str, bytes, int], object]
"""Is called with each kernel: its name, its cubin, and the most dynamic shared memory of a launch in bytes."""


class CompileOnlyNvrtc:
    """See `kernelviz.ops.kernels.nvrtc.Driver`; assign it to `nvrtc.active`. Needs no GPU."""

    def __init__(
        self,
        arch: str,
        multiprocessors: int,
        compiled: Compiled = lambda name, cubin, shared: None,
        compile_cubin: Compile = nvrtc.compile_cubin,
    ) -> None:
        """`arch`: for example ``sm_90``. `multiprocessors`: of the GPU that the kernels are for."""
        self.arch = arch
        self._multiprocessors, self._compiled, self._compile = multiprocessors, compiled, compile_cubin

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        arch = nvrtc.architecture(self.arch, specific)
        self._compiled(name, self._compile(source, arch, defines, name), shared_bytes)
        return name

    def launch(self, *arguments: object) -> None:
        pass

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        """One block for each multiprocessor. Only the driver knows how many are resident. Grids are computed from it; a bind
        that chooses between kernels by it has compiled all of them before."""
        return max(cluster, self._multiprocessors // cluster * cluster)
