"""A driver for Triton that names a target, compiles as always, and launches nothing. It needs no GPU and loads no CUDA library.

Triton's cache on disk finds a kernel by its source, the types, alignments and constants of its arguments, its options, the
target, the compiler's version and environment variables. None of these comes from the driver but the target, so what is
compiled under this driver is found by a process with a GPU of that target (Triton 3.6 and 3.7, ``triton.compiler.compile``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

Loaded = Callable[[str, bytes, int], object]
"""Is called with each kernel that is loaded: its name, its cubin, and its shared memory in bytes."""


class _Utilities:
    """A replacement for Triton's access to the CUDA driver: properties of a device, and kernels that are loaded nowhere."""

    def __init__(self, properties: Mapping[str, int], loaded: Loaded) -> None:
        self._properties, self._loaded = dict(properties), loaded

    def get_device_properties(self, device: int) -> dict[str, int]:
        return self._properties

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills and the largest number of threads of the kernel: of a kernel that is not loaded."""
        self._loaded(name, kernel, shared)
        return 1, 1, 0, 0, 1024


class CompileOnlyDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for a GPU that is not there; install it with ``triton.runtime.driver.set_active``."""

    def __init__(self, arch: int, properties: Mapping[str, int], loaded: Loaded, *, warp_size: int = 32) -> None:
        """`arch`: the compute capability as one number (90). `properties`: of the device, such as ``max_shared_mem`` in bytes."""
        super().__init__()
        self.target = GPUTarget("cuda", arch, warp_size)
        self.utils = _Utilities(properties, loaded)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError("no kernel is launched here, so none can be timed")

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        return lambda *arguments: None
