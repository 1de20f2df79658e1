"""CUDA C++ through cuda.core and NVRTC: compile a kernel of a file, launch it into torch's current stream.

Headers come from the CUDA wheels only, so that a toolkit of another version on the machine is never mixed in.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from kernelviz.core.errors import KernelvizError

Size = int | tuple[int, ...]
HEADERS = Path(__file__).parent / "headers"
"""Device code that several families include: ``#include "vec16.cuh"``."""
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\('
)
"""The beginning of a kernel's definition, up to its parameters; the group is its name."""
DIGESTED = ("code_and_options", "element_type")
"""What counts for the source digest of a variant: code and options that the compiler gets. The rest loads and launches."""
_STANDARD = "c++17"
_OPTIONS = (_STANDARD, "lineinfo")
_PORTABLE_CLUSTER = 8


def include_paths() -> tuple[Path, ...]:
    """Header folders of the CUDA wheels; empty where they are not installed. Imports no CUDA library."""
    spec = importlib.util.find_spec("nvidia")
    folders: list[Path] = []
    for root in spec.submodule_search_locations or () if spec else ():
        for folder in ("cu13/include", "cu13/include/cccl"):
            path = Path(root) / folder
            if path.is_dir():
                folders.append(path)
    return tuple(folders)


def with_headers(source: Path) -> tuple[Path, ...]:
    """A kernel file and the headers of ours that it includes, each once, in the order of inclusion."""
    files = [source]
    for path in files:
        for name in _INCLUDE.findall(path.read_text()):
            header = HEADERS / name
            if header not in files:
                files.append(header)
    return tuple(files)


def only_kernel(code: str, name: str) -> str:
    """The code with every other kernel as a function that nobody calls, so that the compiler drops it.

    A file is compiled for one tile at a time, and a tile that suits one kernel may unroll another one endlessly: softmax with 17
    vectors a thread took 7.7 s and gave 763 KB, of which 1 s and 20 KB were of the kernel that is launched. The code of the
    kernel itself is the same, and every line keeps its number. If no kernel has this name (a macro may define it), nothing is
    changed.

    >>> only_kernel('extern "C" __global__ void __launch_bounds__(32) a(int n) {} extern "C" __global__ void b() {}', "b")
    'static __device__ void a(int n) {} extern "C" __global__ void b() {}'
    """

    def uncalled(definition: re.Match[str]) -> str:
        return (
            definition[0]
            if definition[1] == name
            else "\n" * definition[0].count("\n") + f"static __device__ void {definition[1]}("
        )

    return _KERNEL.sub(uncalled, code) if name in _KERNEL.findall(code) else code


def code_and_options(
    source: Path, arch: str, defines: Mapping[str, str] | None = None, name: str | None = None
) -> tuple[str, Any]:
    """What NVRTC gets: the C++ of a file, and the options, a `cuda.core.ProgramOptions`.

    `arch` is a real (``sm_90``) or a virtual architecture (``compute_90``). With `name` the code is that of this kernel alone.
    The compiled code tells of each instruction which line of the source it is from.
    """
    from cuda.core import ProgramOptions

    code = source.read_text()
    options = ProgramOptions(
        name=str(source),
        arch=arch,
        std=_STANDARD,
        lineinfo=True,
        include_path=[str(p) for p in (HEADERS, *include_paths())],
        define_macro=list((defines or {}).items()) or None,
    )
    return (code if name is None else only_kernel(code, name)), options


def cached_code(
    kind: str, source: Path, arch: str, defines: Mapping[str, str] | None = None, name: str | None = None
) -> Path:
    """Where the cubin or PTX (`kind`) of these arguments is kept: a file whose name is a digest of all that goes into it."""
    from cuda.bindings import nvrtc

    version = ".".join(str(n) for n in nvrtc.nvrtcVersion()[1:])
    codes = [path.read_text() for path in with_headers(source)]
    key = hashlib.sha256(repr((codes, name, arch, sorted((defines or {}).items()), version, _OPTIONS)).encode())
    return cache_folder() / f"{source.stem}-{arch}-{key.hexdigest()[:32]}.{kind}"


def compile_cubin(source: Path, arch: str, defines: Mapping[str, str] | None = None, name: str | None = None) -> bytes:
    """The cubin of the kernel `name` of a file, or of all its kernels, for one architecture (``sm_90``).

    It comes from the cache on disk if it is there. Needs no GPU. Errors: whatever NVRTC raises, its log in the message.
    """
    from cuda.core import Program

    cached = cached_code("cubin", source, arch, defines, name)
    if cached.is_file():
        return cached.read_bytes()
    code, options = code_and_options(source, arch, defines, name)
    cubin = bytes(Program(code, "c++", options).compile("cubin").code)
    _store(cached, cubin)
    return cubin


class DoesNotLaunch(KernelvizError):
    """A kernel compiles but needs more than a multiprocessor of this GPU has."""


class Driver(Protocol):
    """Loads and launches kernels: on torch's GPU, or in tests a driver that only compiles."""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any: ...

    def launch(
        self, kernel: Any, blocks: Size, threads: Size, cluster: int, shared_bytes: int, args: tuple[Any, ...]
    ) -> None: ...

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int: ...


class TorchDriver:
    """Kernels on torch's current device, launched into its current stream (the capturing one while a graph is captured)."""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        import torch

        macros = tuple(sorted(defines.items()))
        return _kernel(source, name, torch.cuda.current_device(), macros, shared_bytes, cluster, specific)

    def launch(
        self, kernel: Any, blocks: Size, threads: Size, cluster: int, shared_bytes: int, args: tuple[Any, ...]
    ) -> None:
        import torch
        from cuda import core

        stream = torch.cuda.current_stream().cuda_stream
        if any(isinstance(argument, ctypes.Array) for argument in args):
            config = _driver_config(blocks, threads, cluster, shared_bytes, stream)
            _launch_with_arrays(config, _function(kernel, torch.cuda.current_device()), args)
        else:
            core.launch(_stream(stream), _config(blocks, threads, cluster, shared_bytes), kernel, *args)

    def resident(self, kernel: Any, threads: int, cluster: int, shared_bytes: int) -> int:
        import torch
        from cuda.bindings import driver

        _, function = driver.cuKernelGetFunction(kernel.handle)
        if cluster == 1:
            status, blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared_bytes)
            blocks *= torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        else:
            config = _driver_config(cluster, threads, cluster, shared_bytes, stream=0)
            status, clusters = driver.cuOccupancyMaxActiveClusters(function, config)
            blocks = clusters * cluster
        if status != driver.CUresult.CUDA_SUCCESS or blocks < 1:
            raise DoesNotLaunch(
                f"no block of {threads} threads and {shared_bytes} bytes fits on this GPU ({status.name})"
            )
        return int(blocks)


active: Driver = TorchDriver()
"""The driver that `kernel` and `launch` use; replaced by tests that compile without a GPU."""


def architecture(generation: str, specific: bool) -> str:
    """What to compile for on a GPU of this generation: with `specific` for it alone, with the instructions that only it has.

    >>> architecture("sm_90", specific=True), architecture("sm_90", specific=False)
    ('sm_90a', 'sm_90')
    """
    return f"{generation}a" if specific else generation


def kernel(
    source: Path,
    name: str,
    defines: Mapping[str, str] | None = None,
    *,
    shared_bytes: int = 0,
    cluster: int = 1,
    specific: bool = False,
) -> Any:
    """The kernel `name` (extern "C") of a file, compiled for torch's current device.

    `shared_bytes`: the most dynamic shared memory that a launch will request; `cluster`: the most blocks a cluster;
    `specific`: the kernel uses instructions of this generation alone, as wgmma, which needs ``sm_90a``.
    """
    return active.kernel(source, name, defines or {}, shared_bytes, cluster, specific)


def launch(kernel: Any, blocks: Size, threads: Size, *args: Any, cluster: int = 1, shared_bytes: int = 0) -> None:
    """Enqueue a kernel on torch's current stream.

    `blocks` counts blocks, also where `cluster` of them (along x) form a cluster; then it must be a multiple of `cluster`.
    Arguments: ints are pointers; sizes and scalars are ctypes or numpy scalars of the parameter's type. A ctypes array is handed
    over by value; all other arguments of that launch are ints or ctypes scalars.
    """
    active.launch(kernel, blocks, threads, cluster, shared_bytes, args)


def resident(kernel: Any, threads: int, *, cluster: int = 1, shared_bytes: int = 0) -> int:
    """How many blocks of a kernel are resident on the device at once: the grid of a persistent kernel, a multiple of `cluster`.

    With clusters fewer blocks fit: each cluster lies in one group of 16 or 18 SMs (H200: 32 clusters of 4, not 33).
    Errors: DoesNotLaunch where none fits.
    """
    return active.resident(kernel, threads, cluster, shared_bytes)


@functools.cache
def _loaded(source: Path, arch: str, name: str, defines: tuple[tuple[str, str], ...]) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(compile_cubin(source, arch, dict(defines), name))


@functools.cache
def _kernel(
    source: Path,
    name: str,
    device: int,
    defines: tuple[tuple[str, str], ...],
    shared_bytes: int,
    cluster: int,
    specific: bool,
) -> Any:
    import torch
    from cuda.core import Device

    Device(device).set_current()
    major, minor = torch.cuda.get_device_capability(device)
    kernel = _loaded(source, architecture(f"sm_{major}{minor}", specific), name, defines).get_kernel(name)
    if shared_bytes:  # beyond 48 KB, its static part included, a kernel must opt in
        _raise_attribute(kernel, "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", shared_bytes)
    if cluster > _PORTABLE_CLUSTER:
        _raise_attribute(kernel, "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
    return kernel


def _raise_attribute(kernel: Any, attribute: str, value: int) -> None:
    """Set an attribute of a kernel to at least this value. A launch that was bound earlier, of the same function, may need more.

    Errors: DoesNotLaunch, which names what this GPU lacks.
    """
    from cuda.bindings import driver

    _, function = driver.cuKernelGetFunction(kernel.handle)
    which = getattr(driver.CUfunction_attribute, attribute)
    status, now = driver.cuFuncGetAttribute(which, function)
    if status == driver.CUresult.CUDA_SUCCESS and now >= value:
        return
    (status,) = driver.cuFuncSetAttribute(function, which, value)
    if status != driver.CUresult.CUDA_SUCCESS:
        what = f"{value:,} bytes of dynamic shared memory a block" if value > 1 else "clusters of more than 8 blocks"
        raise DoesNotLaunch(f"out of resources: {what} are more than this GPU has for this kernel ({status.name})")


@functools.lru_cache(maxsize=64)
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@functools.lru_cache(maxsize=1024)
def _config(blocks: Size, threads: Size, cluster: int, shared_bytes: int) -> Any:
    from cuda.core import LaunchConfig

    if cluster == 1:
        return LaunchConfig(grid=blocks, block=threads, shmem_size=shared_bytes)
    # With a cluster, cuda.core's grid counts clusters.
    return LaunchConfig(grid=_clusters(blocks, cluster), cluster=cluster, block=threads, shmem_size=shared_bytes)


def _clusters(blocks: Size, cluster: int) -> tuple[int, ...]:
    """The grid in clusters. Raises ValueError for blocks that are no whole number of them."""
    x, *rest = (blocks,) if isinstance(blocks, int) else blocks
    if x % cluster:
        raise ValueError(f"{x} blocks are no whole number of clusters of {cluster}")
    return (x // cluster, *rest)


@functools.lru_cache(maxsize=1024)
def _driver_config(blocks: Size, threads: Size, cluster: int, shared_bytes: int, stream: int) -> Any:
    """The launch into that stream, as the CUDA driver takes it."""
    from cuda.bindings import driver

    _clusters(blocks, cluster)
    config = driver.CUlaunchConfig()
    config.hStream = stream
    config.gridDimX, config.gridDimY, config.gridDimZ = _three(blocks)
    config.blockDimX, config.blockDimY, config.blockDimZ = _three(threads)
    config.sharedMemBytes = shared_bytes
    if cluster > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = cluster, 1, 1
        config.attrs, config.numAttrs = [attribute], 1
    return config


def _three(size: Size) -> tuple[int, int, int]:
    """
    >>> _three(7), _three((7, 2))
    ((7, 1, 1), (7, 2, 1))
    """
    x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
    return x, y, z


def _launch_with_arrays(config: Any, function: Any, args: tuple[Any, ...]) -> None:
    """By the driver, because cuda.core hands over no arrays by value, only tensor maps that it made itself."""
    from cuda.bindings import driver

    # The driver copies the values before it returns.
    values = [ctypes.c_void_p(argument) if isinstance(argument, int) else argument for argument in args]
    addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    (status,) = driver.cuLaunchKernelEx(config, function, ctypes.addressof(addresses), 0)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{status.name}: the driver did not launch the kernel")  # begins as errors of cuda.core do


@functools.lru_cache(maxsize=1024)
def _function(kernel: Any, device: int) -> Any:
    """The kernel in the context of torch's current device, `device`."""
    from cuda.bindings import driver

    status, function = driver.cuKernelGetFunction(kernel.handle)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{status.name}: the driver did not load the kernel on device {device}")
    return function


def cache_folder() -> Path:
    """The folder of compiled cubins: in KERNELVIZ_CACHE, else in the user's cache folder."""
    return Path(os.environ.get("KERNELVIZ_CACHE") or platformdirs.user_cache_dir("kernelviz")) / "cubin"


def _store(path: Path, content: bytes) -> None:
    """Write through a temporary file, so that another process never reads half of it. Errors of the disk are ignored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    except OSError:
        return


def element_type(dtype: Any) -> str:
    """The C++ type of a torch dtype's elements; raises KeyError for one without."""
    import torch

    return {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16"}[dtype]
