"""The README does what it says: its table, its links, its commands, its examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from readme_table import TABLE, with_table

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.result import Timing
from kernelviz.formats import decode
from kernelviz.hardware.cpu import cpu
from kernelviz.ops import catalogue
from kernelviz.store import Store

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_table_of_ops_is_that_of_the_code() -> None:
    assert len(TABLE.findall(README)) == 1
    assert with_table(README) == README, "write it anew with `python tests/readme_table.py`"


@pytest.mark.parametrize("page", [*sorted(p.name for p in (ROOT / "docs").glob("*.md")), "../README.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert ((ROOT / "docs" / page).parent / target).exists(), f"{page} links to {target}"


def test_the_two_commands() -> None:
    venv = "python -m venv .venv && .venv/bin/pip install -r requirements.txt"
    blocks = [block.strip() for block in _blocks("")]
    assert f"{venv} && .venv/bin/streamlit run app.py" in blocks
    assert f"{venv} -r requirements-dev.txt && .venv/bin/python -m pytest" in blocks
    torch = next(b for b in blocks if "whl/cpu" in b)
    assert re.search(r"torch==\S+", torch)[0] in (ROOT / "requirements.txt").read_text()  # type: ignore[index]


def test_every_command_line_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path))
    bench = rehearsed.RehearsedBench((samples.H200, samples.CPU))
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    lines = [line for block in _blocks("") for line in block.splitlines() if line.startswith("kernelviz ")]
    assert len(lines) >= 5
    for line in lines:
        arguments = re.sub(r"\s*[#>].*", "", line).split()[1:]
        if (
            arguments[0]
            in (
                "launch",
                "regress",
                "selftest",
                "trends",
                "tune",
            )
            or "--watch" in arguments
        ):  # would work on the device; that the options exist can be said without
            assert main([arguments[0], "--help"]) == 0
            shown = capsys.readouterr().out
            assert all(a in shown for a in arguments if a.startswith("-"))
        elif "--with" not in arguments:  # that one is tested with a real worker
            assert main(arguments) == 0, line
            assert capsys.readouterr().out


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = rehearsed.RehearsedBench((samples.H200,), roofs=samples.H200_ROOFS)
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    monkeypatch.chdir(tmp_path)
    example = next(b for b in _blocks("python") if "kv.run" in b)
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
