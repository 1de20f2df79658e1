"""CUDA C++ is compiled with the headers of the wheels, kept by what went into it, and an error brings the compiler's log."""

import sysconfig
from pathlib import Path

import pytest

from kernelviz.ops.kernels import nvrtc

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


def test_each_source_architecture_and_definition_is_kept_once(source: Path) -> None:
    first = nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"})
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"}) == first
    assert len(cubins(source)) == 1
    assert nvrtc.compile_cubin(source, "sm_90", {"VALUE": "2.0f"}) != first
    assert nvrtc.compile_cubin(source, "sm_80", {"VALUE": "1.0f"}) != first
    assert len(cubins(source)) == 3
    source.write_text(SOURCE.replace("fill", "other"))
    assert b"other" in nvrtc.compile_cubin(source, "sm_90", {"VALUE": "1.0f"})


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
