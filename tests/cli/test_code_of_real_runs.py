"""A real run on the CPU with code of inductor, of a C++ extension and of a plug-in: captured, stored, exported and imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lasting_bench import LastingBench, lasting_bench

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core import Run
from kernelviz.formats import decode
from kernelviz.hardware.cpu import cpu
from kernelviz.hardware.discovery import missing
from kernelviz.ops import op_named
from kernelviz.ops.scale import extension
from kernelviz.text.notices import format_notice

# The extension is built once, by the tests of this group.
pytestmark = pytest.mark.xdist_group("extension")
PLUGIN = '''
import torch
from kernelviz.ops import variant

@variant(op="scale", backend="cpp")
def mine(x_N):
    """The product, a secret of mine."""
    out_N = torch.empty_like(x_N)
    return lambda: torch.mul(x_N, 0.7, out=out_N)
'''


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LastingBench]:
    for name in ("cpp_extension", "torch_compile"):
        reason = missing(op_named("scale").variant_named(name).needs, cpu())
        if reason is not None:
            pytest.skip(str(format_notice(reason)))
    made = lasting_bench(tmp_path_factory.mktemp("code"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def document(bench: LastingBench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run as a file, with its code."""
    plugin = tmp_path_factory.mktemp("plugin") / "mine.py"
    plugin.write_text(PLUGIN)
    file = plugin.with_name("run.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(use_cases, "current", lambda: bench)
        arguments = ["run", "scale", "--size", "n=2048", "--device", "cpu", "--figures", "cold", "--budget-s", "0.02"]
        variants = "torch_eager,torch_compile,cpp_extension,mine"
        assert main([*arguments, "--variants", variants, "--with", str(plugin)]) == 0
        run_id = bench.runs()[0].id
        assert main(["export", run_id, "--with-code", "-o", str(file)]) == 0
    return file


@pytest.fixture
def run(document: Path) -> Run:
    return decode(document.read_bytes())


def test_each_compiled_case_names_its_code(run: Run) -> None:
    codes = {r.variant: r.code or () for r in run.results}
    assert codes.pop("torch_eager") == ()
    compilers = {variant: [(c.compiler, c.plugin) for c in of_case] for variant, of_case in codes.items()}
    assert compilers == {
        "torch_compile": [("inductor", False)],
        "cpp_extension": [("c++", False)],
        "mine": [("c++", True)],
    }
    assert {c.version for c in codes["torch_compile"]} == {run.environment.versions["torch"]}


def test_the_code_is_read_where_it_was_measured(
    bench: LastingBench, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    (source,) = kv.code(run.id, "torch_compile", kind="source")
    assert re.search(r"cpp_fused\w* = async_compile.cpp_pybinding\(", source.text())
    assert source.kernel.startswith("cpp_fused")
    assert "a secret of mine" in kv.code(run.id, "mine")[0].text()
    assert main(["code", run.id, "cpp_extension", "--kind", "source"]) == 0
    assert capsys.readouterr().out == extension.SOURCE.read_text()


def test_the_document_opens_elsewhere_without_the_plug_in(
    document: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine,) = next(r.code for r in run.results if r.variant == "mine") or ()
    assert {a.digest for a in mine.artifacts}.isdisjoint(c.digest for c in run.code or ())
    elsewhere = lasting_bench(tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: elsewhere)
    assert main(["import", str(document)]) == 0
    capsys.readouterr()
    assert main(["code", run.id, "torch_compile", "--kind", "source"]) == 0
    assert "async_compile.cpp_pybinding" in capsys.readouterr().out
    assert main(["code", run.id, "mine", "--kind", "source"]) == 2
    assert "is not here" in capsys.readouterr().err
    elsewhere.end()
