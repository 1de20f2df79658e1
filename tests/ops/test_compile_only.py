"""Every kernel of our own compiles for every architecture it declares, in every dtype, without a GPU."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import compile_problems, precisions, variants

from kernelviz.ops import nvrtc
from kernelviz.ops.op import TARGETS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ELEMENTS = {"fp32": "float", "fp16": "__half", "bf16": "__nv_bfloat16"}


def _triton_cases() -> list[object]:
    return [
        pytest.param(arch, f"{v.name} | {p.key}", marks=pytest.mark.xdist_group(f"compile-{arch}"))
        for arch in TARGETS
        for op, v in variants("triton")
        if arch in v.targets
        for p in compile_problems(op, v)
    ]


_compiled: dict[str, dict[str, dict[str, object]]] = {}


@pytest.fixture
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What the compiling process of one architecture said; run once for all cases of that architecture."""
    pytest.importorskip("triton")
    arch = request.node.callspec.params["arch"]
    if arch not in _compiled:
        cache = tmp_path_factory.mktemp(f"triton-{arch}")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
        environment.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            [sys.executable, HERE / "compiled_only.py", arch],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        _compiled[arch] = {line["case"]: line for line in map(json.loads, done.stdout.splitlines())}
    return _compiled[arch]


@pytest.mark.parametrize(("arch", "case"), _triton_cases())
def test_triton_kernel_compiles(arch: str, case: str, compiled: dict[str, dict[str, object]]) -> None:
    assert compiled[case]["ok"], compiled[case]["message"]


@pytest.mark.parametrize("arch", [pytest.param(a, marks=pytest.mark.xdist_group(f"compile-{a}")) for a in TARGETS])
def test_every_triton_kernel_was_among_them(arch: str, compiled: dict[str, dict[str, list[str]]]) -> None:
    """The problems of `cases.COMPILED` reach every kernel of every kernel file."""
    reached = {name.split()[0] for line in compiled.values() for name in line.get("kernels", [])}
    files = {file for _, v in variants("triton") for file in v.sources if arch in v.targets}
    written = {name for file in files for name in re.findall(r"@triton\.jit\ndef ([a-z]\w*)", file.read_text())}
    assert reached == written


CUDA_SOURCES = sorted(
    {
        (source, dtype)
        for op, v in variants("cuda")
        for source in v.sources
        if source.suffix == ".cu"
        for dtype, _ in precisions(op, v)
    }
)


@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize(("source", "dtype"), CUDA_SOURCES, ids=lambda x: x.parent.name if isinstance(x, Path) else x)
def test_cuda_kernel_compiles(
    source: Path, dtype: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.core")
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path))
    cubin = nvrtc.compile_cubin(source, arch, {"ELEMENT": ELEMENTS[dtype]})
    assert cubin.startswith(b"\x7fELF")
    kernels = re.findall(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)', source.read_text())
    assert kernels
    assert [name for name in kernels if name.encode() not in cubin] == []
    assert nvrtc.compile_cubin(source, arch, {"ELEMENT": ELEMENTS[dtype]}) == cubin
    assert len(list(tmp_path.rglob("*.cubin"))) == 1
