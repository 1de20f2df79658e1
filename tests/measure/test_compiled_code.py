"""What is captured of a variant: Triton and NVRTC as compiled without a GPU, bounds, and a capture that fails."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelviz.core.code import MOST_ARTIFACT_BYTES, MOST_CASE_BYTES
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.measure.compiled_code.capture import Capture, is_plugin
from kernelviz.measure.compiled_code.inductor_graphs import InductorGraphs
from kernelviz.ops import catalogue

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("triton")
    pytest.importorskip("cuda.core")
    cache = tmp_path_factory.mktemp("captured")
    paths = os.pathsep.join(map(str, (TESTS.parent, TESTS, TESTS / "ops")))
    environment = os.environ | {"PYTHONPATH": paths, "TRITON_CACHE_DIR": str(cache), "KERNELVIZ_CACHE": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, TESTS / "measure" / "captured_code.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def texts(captured: dict[str, Any], variant: str) -> dict[str, dict[str, str]]:
    """The text of each kind of artifact of each kernel; sources by file."""
    contents = captured[variant]["contents"]
    return {
        code["kernel"]: {a["name"] or a["kind"]: contents[a["digest"]] for a in code["artifacts"]}
        for code in captured[variant]["codes"]
    }


@pytest.mark.xdist_group("compile-0")
def test_gluon_gives_what_triton_gives_but_its_first_language(captured: dict[str, Any]) -> None:
    ((name, parts),) = texts(captured, "gluon_warp_specialised").items()
    assert (name, list(parts)) == ("gluon_kernel", ["source", "ttgir", "ptx", "cubin"])
    source = parts["source"]
    assert source.count("@gluon.jit\ndef ") == 7
    assert all(f"def {of}(" in source for of in ("_tile_position", "_load_tiles", "_multiply_tiles", "gluon_kernel"))
    assert "@triton.jit" not in source
    assert "wgmma.mma_async" in parts["ptx"]


@pytest.mark.xdist_group("compile-0")
def test_triton_gives_source_its_languages_ptx_and_cubin_of_each_kernel(captured: dict[str, Any]) -> None:
    kernels = texts(captured, "triton_three_kernels")
    assert list(kernels) == ["tile_sums_kernel", "before_tiles_kernel", "scan_from_sums_kernel"]
    for name, made in kernels.items():
        assert list(made) == ["source", "ttir", "ttgir", "ptx", "cubin"]
        assert f"def {name}(" in made["source"]
        assert "tt.func public" in made["ttir"]
        assert "ttg.num-warps" in made["ttgir"]
        assert f".entry {name}(" in made["ptx"]
        assert ".target sm_90" in made["ptx"]
        assert made["cubin"].startswith("\x7fELF")
    for code in captured["triton_three_kernels"]["codes"]:
        assert (code["compiler"], code["version"], code["arch"]) == ("triton", captured["versions"][0], "sm_90")
        assert f'"ttg.num-warps" = {code["warps"]} : i32' in kernels[code["kernel"]]["ttgir"]
        assert (
            f"ttg.shared = {code['shared_bytes']} : i32" in kernels[code["kernel"]]["ttgir"] or code["shared_bytes"] > 0
        )
        assert code["plugin"] is False


@pytest.mark.xdist_group("compile-0")
def test_nvrtc_gives_the_source_with_headers_macros_ptx_and_cubin(captured: dict[str, Any]) -> None:
    kernels = texts(captured, "cuda_three_kernels")
    assert list(kernels) == ["cumsum_tile_sums", "cumsum_before_tiles", "cumsum_from_sums"]
    for name, made in kernels.items():
        assert list(made) == ["cuda.cu", "vec16.cuh", "ptx", "cubin"]
        assert '#include "vec16.cuh"' in made["cuda.cu"]
        assert f".entry {name}(" in made["ptx"]
        assert made["cubin"].startswith("\x7fELF")
    for code in captured["cuda_three_kernels"]["codes"]:
        assert (code["compiler"], code["version"], code["arch"]) == ("nvrtc", captured["versions"][1], "sm_90")
        assert code["defines"]["THREADS"].isdecimal()
    assert captured["ptx alone is the same"]


@pytest.mark.xdist_group("compile-0")
def test_shared_memory_is_that_of_the_launch(captured: dict[str, Any]) -> None:
    """Not what the kernel was loaded for: slabs of up to 48 KiB need no permission, so it is loaded for 0 bytes."""
    (code,) = captured["cuda_slab"]["codes"]
    (_, launched_bytes) = captured["cuda_slab"]["launched_bytes"]
    assert (code["kernel"], code["shared_bytes"]) == ("row_slab", launched_bytes)
    assert 0 < launched_bytes < 48 * 1024


@pytest.mark.xdist_group("compile-0")
def test_no_artifact_names_a_folder_of_this_machine(captured: dict[str, Any]) -> None:
    """Also not byte by byte, as Triton's PTX does."""
    folders = [str(TESTS.parent), str(Path.home()), str(Path(triton_folder()).parent), "/tmp/"]
    for variant in ("triton_three_kernels", "cuda_three_kernels"):
        named = ""
        for content in captured[variant]["contents"].values():
            bytes_of_ptx = bytes(
                int(n) for n in re.findall(r"^\.b8 (\d+)(?:,\d+)*\s", content, re.MULTILINE) if int(n) < 256
            )
            assert not [f for f in folders if f in content or f.encode() in bytes_of_ptx], content[:200]
            named += content
        assert "kernelviz/ops/cumsum" in named, "files are still named, for line numbers"


def triton_folder() -> str:
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    return (spec.submodule_search_locations or [""])[0]


@pytest.mark.xdist_group("compile-0")
def test_kernels_from_a_cache_are_seen_and_no_hook_stays(captured: dict[str, Any]) -> None:
    assert all(captured[name]["same again"] for name in ("triton_three_kernels", "cuda_three_kernels"))
    assert captured["torch_eager"]["codes"] == []
    assert captured["hooks are gone"]


@pytest.mark.xdist_group("compile-0")
def test_kernels_that_inductor_launches_have_the_same_artifacts(captured: dict[str, Any]) -> None:
    directly = {code["kernel"]: code for code in captured["triton_three_kernels"]["codes"]}
    codes = captured["launched by inductor"]
    assert [code["kernel"] for code in codes] == ["tile_sums_kernel", "before_tiles_kernel"]
    for code in codes:
        artifacts = [a for a in directly[code["kernel"]]["artifacts"] if a["kind"] != "source"]
        assert code == directly[code["kernel"]] | {"artifacts": artifacts}


def test_the_source_begins_with_the_constants_that_it_reads() -> None:
    pytest.importorskip("triton")
    from kernelviz.measure.compiled_code.triton_kernels import source_of
    from kernelviz.ops.quantize import triton as with_constant
    from kernelviz.ops.scale import triton as without

    def texts(module: Any) -> list[str]:
        return [text for one in vars(module).values() if hasattr(one, "src") and (text := source_of(one)) is not None]

    assert any(
        text.startswith("TO_NEAREST = tl.constexpr(12582912.0)\n\n\n@triton.jit\n") for text in texts(with_constant)
    )
    assert all(text.startswith("@triton.jit\n") for text in texts(without))


def test_no_variant_of_the_catalogue_counts_as_a_plug_in() -> None:
    own = [v for op in catalogue().values() for v in op.variants]
    assert not [v.name for v in own if is_plugin(v) or is_plugin(v.of_backward())]


def test_artifacts_are_bounded_each_and_together() -> None:
    artifacts = Artifacts()
    assert artifacts.add("ptx", "") == artifacts.add("cubin", None) == ()
    assert artifacts.add("ptx", b"x" * (MOST_ARTIFACT_BYTES + 1)) == ()
    first = artifacts.add("source", "a", name="a.cu")
    assert artifacts.add("source", "a", name="a.cu") == first
    whole = [
        artifacts.add("ptx", bytes([n]) * MOST_ARTIFACT_BYTES) for n in range(MOST_CASE_BYTES // MOST_ARTIFACT_BYTES)
    ]
    assert [bool(added) for added in whole] == [True] * (len(whole) - 1) + [False]
    assert len(artifacts.contents) == len(whole)


def test_a_capture_that_fails_costs_the_code_and_not_the_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise AttributeError("inductor has changed")

    for method in ("install", "codes"):
        monkeypatch.setattr(InductorGraphs, method, fail)
    with Capture(catalogue()["add"].variant_named("torch_eager")) as capture:
        capture.bound()
    assert capture.code() == ((), ())
    assert capsys.readouterr().err.count("AttributeError: inductor has changed") == 3
