"""`kernelviz compile`: it compiles for a GPU that is not here and writes a plug-in whose variants carry the machine code."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelviz.bench.precompiling import precompile
from kernelviz.cli import main
from kernelviz.core import RunRequest
from kernelviz.core.errors import UsageError
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.measure.precompiled.plugin import Precompiled
from kernelviz.ops import with_plugins

SIZES = ["--size", "m=8", "--size", "n=256", "--dtype", "fp32"]


@pytest.mark.xdist_group("compile-1")
def test_a_plugin_is_written_for_the_gpu_of_a_recorded_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "compiled.py"
    assert main(["compile", "rmsnorm", "--output", str(file), "--variants", "triton_block_per_row", *SIZES]) == 0
    printed = " ".join(capsys.readouterr().err.split())
    assert printed.startswith(
        f"1 kernel of 1 variant at 1 size, compiled by Triton {triton.__version__} for NVIDIA H200"
    )
    (added,) = (v for v in with_plugins([str(file)])["rmsnorm"].variants if "_by_" in v.name)
    assert added.name == f"triton_block_per_row_by_triton_{triton.__version__.replace('.', '_')}"
    assert (added.backend, added.targets, added.directions) == ("triton", ("sm_90",), ("forward",))
    precompiled: Precompiled = added.bind.__globals__["PRECOMPILED"]
    (kernel,) = precompiled._kernels.values()
    assert (kernel.kernel, kernel.arch, kernel.version) == ("row_kernel", 90, triton.__version__)
    assert [k.name for k in read_cubin(kernel.cubin).kernels] == ["row_kernel"]
    assert ".entry row_kernel(" in kernel.ptx


@pytest.mark.parametrize(
    ("output", "request_", "message"),
    [
        ("kernels", RunRequest(op="rmsnorm"), "name a Python file"),
        (
            "kernels.py",
            RunRequest(op="rmsnorm", variants=("cuda_registers",)),
            "only variants that are written in Triton",
        ),
        ("kernels.py", RunRequest(op="rmsnorm", variants=("nothing",)), "no variant 'nothing'"),
    ],
)
def test_what_cannot_be_compiled_is_named(tmp_path: Path, output: str, request_: RunRequest, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        precompile(request_, tmp_path / output)
    assert not (tmp_path / output).exists()
