"""CUDA C++ is compiled with the headers of the wheels, kept by what went into it, and an error brings the compiler's log."""

import ctypes
import re
import struct
import sysconfig
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernelviz
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul import cutlass

pytest.importorskip("cuda.core")

SOURCE = """
#include <cuda_fp16.h>
extern "C" __global__ void fill(__half* out) { out[threadIdx.x] = __float2half(VALUE); }
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "fill.cu"
    file.write_text(SOURCE)
    return file


def cubins(source: Path) -> list[Path]:
    return sorted((source.parent / "cache").rglob("*.cubin"))


def test_headers_come_from_the_wheels_only() -> None:
    site = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    found = nvrtc.include_paths()
    assert any((p / "cuda_fp16.h").is_file() for p in found)
    assert all(any(p.resolve().is_relative_to(s) for s in site) for p in found)


INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)", re.MULTILINE)


@pytest.fixture
def runtime_headers(tmp_path: Path) -> Path:
    """A folder with the headers of one wheel, whose cuda_fp16.h `no_nvrtc` looks for. A machine may have no other."""
    try:
        files = metadata.files("nvidia-cuda-runtime") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("the wheel nvidia-cuda-runtime is not installed")
    for file in files:
        _, _, header = str(file).partition("/include/")
        if header:
            link = tmp_path / header
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(Path(str(file.locate())).resolve())
    return tmp_path


def compile_includes(headers: set[str], folder: Path) -> None:
    """Compile a kernel that includes only these headers, from only this folder."""
    from cuda.core import Program, ProgramOptions

    code = "".join(f"#include <{header}>\n" for header in sorted(headers)) + 'extern "C" __global__ void nothing() {}'
    options = ProgramOptions(arch="sm_90", std="c++17", include_path=[str(folder)])
    Program(code, "c++", options).compile("cubin")


def test_no_kernel_needs_a_header_of_another_wheel(runtime_headers: Path) -> None:
    sources = sorted(set(Path(kernelviz.__file__).parent.rglob("*.cu*")) - {cutlass.SOURCE})  # which nvcc compiles
    ours = {header.name for header in nvrtc.HEADERS.iterdir()}
    headers = {name for source in sources for name in INCLUDE.findall(source.read_text())} - ours
    assert {"cuda_bf16.h", "cuda_fp16.h"} <= headers
    assert all((runtime_headers / header).is_file() for header in headers), headers
    compile_includes(headers, runtime_headers)


def test_a_header_that_includes_one_of_another_wheel_is_noticed(runtime_headers: Path) -> None:
    assert (runtime_headers / "mma.h").is_file()
    with pytest.raises(Exception, match=r'cannot open source file "crt/mma\.h"'):
        compile_includes({"mma.h"}, runtime_headers)


def test_each_source_architecture_and_definition_is_kept_once(source: Path) -> None:
    first = nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"})
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}) == first
    assert len(cubins(source)) == 1
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "2.0f"}) != first
    assert nvrtc.compile_cubin(source, "sm_80", {"VALUE": "1.0f"}) != first
    assert len(cubins(source)) == 3
    source.write_text(SOURCE.replace("fill", "other"))
    assert b"other" in nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"})


def code_by_section(cubin: bytes) -> dict[str, bytes]:
    """The content of each section of an ELF file (64 bits, little-endian)."""
    offset, count, names = (*struct.unpack_from("<Q", cubin, 40), *struct.unpack_from("<HH", cubin, 60))
    headers = [struct.unpack_from("<IIQQQQ", cubin, offset + 64 * i) for i in range(count)]
    texts = cubin[headers[names][4] :]
    return {texts[h[0] : texts.index(b"\0", h[0])].decode(): cubin[h[4] : h[4] + h[5]] for h in headers}


def test_a_kernel_compiled_alone_has_the_same_code(source: Path) -> None:
    source.write_text(
        SOURCE + SOURCE.replace("void fill(", "void __launch_bounds__(2 * (32)) twice(").replace("VALUE", "2 * VALUE")
    )
    whole, *alone = (
        code_by_section(nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}, name))
        for name in (None, "fill", "twice")
    )
    for name, cubin in zip(("fill", "twice"), alone, strict=True):
        assert [section for section in cubin if section.startswith(".text.")] == [f".text.{name}"]
        assert cubin[f".text.{name}"] == whole[f".text.{name}"]
    assert code_by_section(nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}, "of_a_macro")) == whole


def test_what_is_kept_is_read_instead_of_compiled(source: Path) -> None:
    nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"})
    (kept,) = cubins(source)
    kept.write_bytes(b"as it was kept")
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}) == b"as it was kept"


def test_a_cache_that_cannot_be_written_is_done_without(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELVIZ_CACHE", "/dev/null/nowhere")
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}).startswith(b"\x7fELF")


def test_an_error_brings_the_log(source: Path) -> None:
    with pytest.raises(Exception, match='identifier "VALUE" is undefined') as caught:
        nvrtc.compile_cubin(source, "sm_90")
    assert type(caught.value).__name__ == "NVRTCError"
    assert cubins(source) == []


class Driver:
    """The driver's attributes of one function, of which the GPU allows at most 200,000; and what it would launch."""

    CUlaunchConfig = SimpleNamespace
    CUlaunchAttributeID = SimpleNamespace(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION="cluster")
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="bytes")

    def __init__(self) -> None:
        self.value = 0

    def CUlaunchAttribute(self) -> SimpleNamespace:
        return SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def cuKernelGetFunction(self, handle: int) -> tuple[int, int]:
        return 0, handle

    def cuFuncGetAttribute(self, which: str, function: int) -> tuple[int, int]:
        return 0, self.value

    def cuFuncSetAttribute(self, function: int, which: str, value: int) -> tuple[SimpleNamespace | int]:
        if value > 200_000:
            return (SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE"),)
        self.value = value
        return (0,)

    def cuLaunchKernelEx(self, config: SimpleNamespace, function: int, addresses: int, extra: int) -> tuple[object]:
        """Reads the parameters of `int* p, Maps maps, int n` as a kernel would, with maps of 24 bytes."""
        p, maps, n = (ctypes.c_void_p * 3).from_address(addresses)
        numbers = tuple((ctypes.c_uint64 * 3).from_address(maps or 0))
        self.launched = (config, function, ctypes.c_void_p.from_address(p or 0).value, numbers)
        self.number = ctypes.c_int.from_address(n or 0).value
        return (0 if function else SimpleNamespace(name="CUDA_ERROR_ILLEGAL_ADDRESS"),)


def test_arrays_are_handed_over_by_value_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr("cuda.bindings.driver", driver)
    config = nvrtc._driver_config.__wrapped__((6, 2), 128, 2, 1024, 77)  # type: ignore[attr-defined]
    maps = (ctypes.c_uint64 * 3)(5, 6, 2**63)
    nvrtc._launch_with_arrays(config, 9, (4096, maps, ctypes.c_int(-3)))  # type: ignore[attr-defined]
    assert driver.launched == (config, 9, 4096, (5, 6, 2**63))
    assert driver.number == -3
    assert (config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX) == (6, 2, 1, 128)
    assert (config.hStream, config.sharedMemBytes, config.attrs[0].value.clusterDim.x) == (77, 1024, 2)
    with pytest.raises(RuntimeError, match=r"^CUDA_ERROR_ILLEGAL_ADDRESS: "):
        nvrtc._launch_with_arrays(config, 0, (4096, maps, ctypes.c_int(-3)))  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="7 blocks are no whole number of clusters of 2"):
        nvrtc._driver_config.__wrapped__(7, 128, 2, 0, 0)  # type: ignore[attr-defined]


def test_a_later_binding_takes_no_shared_memory_from_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both launch the same function: a tuned variant with 128 and then 16 KiB failed where the first was launched again."""
    driver = Driver()
    monkeypatch.setattr("cuda.bindings.driver", driver)
    most = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    for shared_bytes, allowed in ((65_536, 65_536), (131_072, 131_072), (16_384, 131_072)):
        nvrtc._raise_attribute(SimpleNamespace(handle=1), most, shared_bytes)  # type: ignore[attr-defined]
        assert driver.value == allowed
    with pytest.raises(nvrtc.DoesNotLaunch, match="262,144 bytes of dynamic shared memory"):
        nvrtc._raise_attribute(SimpleNamespace(handle=1), most, 262_144)  # type: ignore[attr-defined]
