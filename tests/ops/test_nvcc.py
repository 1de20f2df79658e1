"""Libraries of nvcc: compiled once, errors as those of other compilers, and their code captured. A script takes nvcc's place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelviz.core.errors import BadField
from kernelviz.ops import catalogue
from kernelviz.ops.kernels import nvcc

if TYPE_CHECKING:
    from torch import Tensor

SCRIPT = """#!/bin/sh
case "$1" in --version) echo "Cuda compilation tools, release 13.0, V{version}"; exit 0;; esac
echo "$*" >> {log}
while [ $# -gt 0 ]; do
  case "$1" in
    --keep-dir) folder=$2; shift;; -o) output=$2; shift;; -DNDEBUG) ;; -D*) defines="$defines $1";; *.cu) source=$1;;
  esac
  shift
done
stem=$(basename "$source" .cu)
if grep -q BROKEN "$source"; then
  echo "$source(1): warning: never mind" >&2
  echo "$source(2): error: identifier BROKEN is undefined" >&2
  exit 2
fi
sleep {seconds}
: > "$folder/a_dlink.cubin"; printf x > "$folder/$stem.empty.cubin"
printf 'cubin of%s' "$defines" > "$folder/$stem.cubin"; printf 'ptx of%s' "$defines" > "$folder/$stem.ptx"
printf library > "$output"
"""


class Compiler:
    """A script that stands for nvcc, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self._program, self._log = folder / "bin" / "nvcc", folder / "log"
        self._program.parent.mkdir()
        self.source = folder / "product.cu"
        self.source.write_text("int main() {}\n")
        self.install()

    def install(self, version: str = "13.0.88", seconds: float = 0.0) -> None:
        self._program.write_text(SCRIPT.format(version=version, log=self._log, seconds=seconds))
        self._program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def build(self, **defines: str) -> nvcc.Build:
        return nvcc.Build(self.source, tuple(defines.items()), ())


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that has the folders of CUTLASS's wheel."""
    folder = tmp_path / "site" / "cutlass_library" / "source" / "include"
    (folder / "cutlass").mkdir(parents=True)
    (tmp_path / "site" / "cutlass_library" / "__init__.py").touch()
    for name in ("cutlass.h", "version.h"):
        (folder / "cutlass" / name).touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from kernelviz.measure.compile_ahead.nvcc_loader import CompileOnlyNvcc

    monkeypatch.setattr(nvcc, "active", CompileOnlyNvcc("sm_90"))


def test_a_library_is_compiled_once_for_each_content(compiler: Compiler) -> None:
    first = nvcc.compiled(compiler.build(TILE="64"), "sm_90a")
    assert first == nvcc.compiled(compiler.build(TILE="64"), "sm_90a")
    assert first.read_text() == "library"
    assert first.with_suffix(".cubin").read_text() == "cubin of -DTILE=64"
    assert first.with_suffix(".ptx").read_text() == "ptx of -DTILE=64"
    assert len(compiler.calls) == 1
    assert "arch=compute_90a,code=sm_90a" in compiler.calls[0]
    assert nvcc.compiled(compiler.build(TILE="128"), "sm_90a") != first
    compiler.source.write_text("int main() { return 1; }")
    assert nvcc.compiled(compiler.build(TILE="64"), "sm_90a") != first
    assert len(compiler.calls) == 3
    assert {path.suffix for path in first.parent.iterdir()} == {".so", ".cubin", ".ptx", ".lock"}


def test_an_error_of_nvcc_is_one_of_a_compiler_and_leaves_nothing(compiler: Compiler) -> None:
    from kernelviz.measure.session.compiler_errors import of_compiler

    compiler.source.write_text("BROKEN")
    with pytest.raises(
        nvcc.CompilationError, match=r"nvcc failed: .*error: identifier BROKEN is undefined$"
    ) as refused:
        nvcc.compiled(compiler.build(), "sm_90a")
    assert "never mind" not in str(refused.value)
    assert of_compiler(refused.value)
    assert {path.suffix for path in (compiler.source.parent / "cache" / "nvcc").iterdir()} == {".lock"}


def test_without_nvcc_the_error_says_so(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(compiler.source.parent / "nowhere"))
    assert nvcc.nvcc_version() is None
    with pytest.raises(nvcc.CompilationError, match="nvcc is not on PATH"):
        nvcc.compiled(compiler.build(), "sm_90a")


def test_two_processes_compile_a_library_once(compiler: Compiler) -> None:
    import subprocess
    import sys

    compiler.install(seconds=0.5)
    code = (
        "from pathlib import Path; from kernelviz.ops.kernels import nvcc; import sys; "
        "print(nvcc.compiled(nvcc.Build(Path(sys.argv[1]), (), ()), 'sm_90a'))"
    )
    command = [sys.executable, "-c", code, str(compiler.source)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = {process.communicate(timeout=60)[0].strip() for process in started}
    assert len(answers) == 1
    assert Path(answers.pop()).is_file()
    assert len(compiler.calls) == 1


def matrices(m: int, n: int, k: int) -> tuple[Tensor, Tensor]:
    import torch

    return torch.zeros(m, k, dtype=torch.bfloat16), torch.zeros(k, n, dtype=torch.bfloat16)


@pytest.mark.usefixtures("headers", "without_gpu")
def test_the_code_of_a_library_is_captured(compiler: Compiler) -> None:
    from kernelviz.core.code import unpacked
    from kernelviz.measure.compiled_code.capture import Capture

    variant = catalogue()["matmul"].variant_named("cutlass_builder")
    capture = Capture(variant)
    with capture:
        launch = variant.bind(*matrices(129, 264, 136))
        capture.bound()
        launch()
    (code,), contents = capture.code()
    assert (code.kernel, code.compiler, code.version, code.arch) == ("cutlass_gemm", "nvcc", "13.0.88", "sm_90a")
    assert code.defines["TILE_N"] == "256"
    texts = {one.digest: unpacked(one).decode() for one in contents}
    kinds = {artifact.kind: texts[artifact.digest] for artifact in code.artifacts}
    assert list(kinds) == ["source", "ptx", "cubin"]
    assert "CollectiveBuilder" in kinds["source"]
    assert kinds["cubin"].startswith("cubin of -DB_K_CONTIGUOUS=0")
    assert len(compiler.calls) == 1


@pytest.mark.usefixtures("headers", "without_gpu", "compiler")
@pytest.mark.parametrize(("sizes", "axis"), [((8, 8, 7), "k"), ((8, 9, 8), "n")])
def test_rows_that_tma_cannot_address_are_refused_by_name(sizes: tuple[int, int, int], axis: str) -> None:
    with pytest.raises(BadField, match=f"size {axis}.*multiple of 16 bytes"):
        catalogue()["matmul"].variant_named("cutlass_builder").bind(*matrices(*sizes))


@pytest.mark.usefixtures("headers", "without_gpu")
@pytest.mark.parametrize(("name", "number"), [("relu", "1"), ("gelu", "2"), ("silu", "3")])
def test_a_linear_layer_asks_for_its_function(compiler: Compiler, name: str, number: str) -> None:
    import torch

    x_MK, w_KN = matrices(129, 264, 136)
    bias_N = torch.zeros(264, dtype=torch.bfloat16)
    launch = catalogue()[f"linear_{name}"].variant_named("cutlass_fused").bind(x_MK, w_KN.t().contiguous(), bias_N)
    assert launch().shape == (129, 264)  # type: ignore[union-attr]
    assert f"-DFUNCTION={number}" in compiler.calls[0]
    assert "-DB_K_CONTIGUOUS=1" in compiler.calls[0]


def test_configurations_that_do_not_fit_are_not_measured() -> None:
    variant = catalogue()["matmul"].variant_named("cutlass_builder")
    problem = catalogue()["matmul"].problem({"m": 64, "n": 64, "k": 64}, "bf16")
    for configuration, reason in (
        ({"tile_m": 64}, "128 rows"),
        ({"tile_m": 256}, "registers of 2 warpgroups"),
        ({"pingpong": 1}, "registers of 1 warpgroups"),
    ):
        refusal = variant.configured(configuration).refuses(problem)
        assert refusal is not None
        assert reason in str(refusal)
    assert variant.configured({"pingpong": 1, "tile_n": 128}).refuses(problem) is None
