"""CUDA C++ is compiled with the headers of the wheels, kept by what went into it, and an error brings the compiler's log."""

import struct
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
