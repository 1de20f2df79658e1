"""The README and docs/usage.md do what they say: tables, links, commands, examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from readme_table import MARKED, with_tables

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.result import Timing
from kernelviz.formats import decode
from kernelviz.hardware.cpu import cpu
from kernelviz.ops import catalogue
from kernelviz.store import Store
from kernelviz.workloads import catalog

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
USAGE = (ROOT / "docs" / "usage.md").read_text()
DOCS = sorted(p.name for p in (ROOT / "docs").glob("*.md"))


def _blocks(language: str, text: str = README + USAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/ops.md"])
def test_the_tables_of_ops_are_those_of_the_code(page: str) -> None:
    text = (ROOT / page).read_text()
    assert len(MARKED.findall(text)) == 1
    assert with_tables(text) == text, "write it anew with `python tests/readme_table.py`"
    assert all(f"`{name}`" in text for name in catalogue())


def test_the_tables_of_workloads_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "workloads.md").read_text()
    assert len(MARKED.findall(text)) == 1
    assert with_tables(text) == text, "write it anew with `python tests/readme_table.py`"
    assert all(f"(`{name}`)" in text for name in catalog.workloads())


def test_the_readme_is_short_and_the_index_names_every_document() -> None:
    assert len(README.splitlines()) <= 120
    index = (ROOT / "docs" / "README.md").read_text()
    assert {name for name in DOCS if f"]({name})" in index} == {*DOCS} - {"README.md"}


@pytest.mark.parametrize("page", [*DOCS, "../README.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert ((ROOT / "docs" / page).parent / target).exists(), f"{page} links to {target}"


def test_the_two_commands() -> None:
    venv = "python -m venv .venv && .venv/bin/pip install -r requirements.txt"
    blocks = [block.strip() for block in _blocks("", README)]
    assert f"{venv} && .venv/bin/streamlit run app.py" in blocks
    assert f"{venv} -r requirements-dev.txt && .venv/bin/python -m pytest" in blocks
    torch = next(b for b in blocks if "whl/cpu" in b)
    assert re.search(r"torch==\S+", torch)[0] in (ROOT / "requirements.txt").read_text()  # type: ignore[index]


def test_the_python_examples_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = rehearsed.RehearsedBench((samples.H200,), roofs=samples.H200_ROOFS)
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    monkeypatch.chdir(tmp_path)
    for example in (b for b in _blocks("python") if "kv.run" in b):
        exec(compile(example, "README.md", "exec"), {})
    assert len(decode((tmp_path / "rmsnorm.json").read_bytes()).results) == 5 * len(catalogue()["rmsnorm"].variants)


@pytest.mark.xdist_group("device")
def test_the_kernel_example_is_measured_and_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    example = next(b for b in _blocks("python") if "@variant" in b)
    assert len([line for line in example.splitlines() if line.strip() and not line.startswith("#")]) <= 10
    (tmp_path / "mykernel.py").write_text(example)
    line = next(line for block in _blocks("") for line in block.splitlines() if "--with mykernel.py" in line)
    monkeypatch.chdir(tmp_path)
    bench = Bench(Store.open(tmp_path), (cpu(),), lock_directory=tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    code = main([*line.split()[1:], "--device", "cpu", "--budget-s", "0.05", "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    results = {r.variant: r for r in decode(printed.out).results}
    assert results.keys() == {"torch_eager", "by_norm"}
    assert isinstance(results["by_norm"].outcome, Timing)
    assert results["by_norm"].accuracy is not None
    assert results["by_norm"].accuracy.passed
