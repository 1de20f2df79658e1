"""`kernelviz ladder`: the table, Markdown, the page, JSON, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from kernelviz.bench.history import History
from kernelviz.cli.commands import invoke
from kernelviz.formats import document, shipped_runs

pytestmark = pytest.mark.usefixtures("bench")
RUNS = Path(__file__).parents[2] / "docs" / "runs"
LADDER = str(RUNS / "h200-matmul-bf16-ladder.kvz")


def called(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert invoke(["ladder", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_documented_run_shows_each_rung_with_its_gain_and_the_published_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, err = called(capsys, LADDER, "--backend", "cuda", "--no-machine-code")
    assert "CUDA C++: 9 rungs from 429 to 789 TFLOP/s, 1.83×" in out
    row = next(line for line in out.splitlines() if "cuda_wgmma_wide " in line and "▲" in line)
    assert "▲ 1.178× (1.175–1.180) faster" in row
    assert "1.22× over cuda_wgmma_specialised" in row
    published = "1.33×, the source's kernel of this rung over its kernel of cuda_wgmma, on NVIDIA H100 80GB HBM3"
    assert f"  published: {published} (aleksagordic.com/blog/matmul)" in out
    assert "cuda_naive: CUDA C++, one thread per element" in out
    assert "○ not measured: this run does not measure it at this size." in out
    assert "has no bf16 kernel" in err


def test_json_is_the_only_thing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = called(capsys, LADDER, "--json", "--no-machine-code")
    records = json.loads(out)
    steps = {r["variant"]: r for r in records if r["backend"] == "cuda"}
    assert steps["cuda_wgmma_tma_store"]["verdict"] == "faster"
    assert steps["cuda_wgmma_cluster"]["verdict"] == "same"
    assert steps["cuda_naive"]["time_s"] is None


def test_markdown_and_page_are_written_to_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, _ = called(capsys, LADDER, "--markdown", "--no-machine-code", "--backend", "cuda")
    assert out.startswith("# Ladder of matmul bf16 m = n = k = 4,096")
    assert "### 8. cuda wgmma wide" in out
    for name in ("ladder.html", "ladder.md"):
        _, err = called(capsys, LADDER, "-o", str(tmp_path / name), "--no-machine-code")
        assert name in err.replace("\n", "")
    assert (tmp_path / "ladder.html").read_bytes().startswith(b"<!doctype html>")
    assert (tmp_path / "ladder.md").read_text().startswith("# Ladder of matmul")


def test_an_op_shows_the_recorded_run_with_the_most_rungs(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = called(capsys, "add", "--no-machine-code", "--metric", "time")
    assert "run h200-add" in out
    assert " µs" in out.splitlines()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no-such-op",), "no-such-op"),
        (("linear_gelu",), "it has no ladder, because no backend has 2 variants"),
        (("add", "--run", "h200-matmul"), "it is a run of matmul, not of add"),
        (("--run", "no-such-run"), "no run 'no-such-run'"),
        (("matmul", "--problem", "matmul bf16 m=1 n=1 k=1"), "problem"),
        (("matmul", "--size", "m=7"), "has no such sizes"),
        (("matmul", "--problem", "matmul bf16 m=512 n=512 k=512", "--size", "m=512"), "--problem names the sizes"),
        (("matmul", "--backend", "torch"), "backend"),
        (("matmul", "--metric", "speed"), "metric"),
        (("matmul", "--l2", "hot"), "l2"),
        (("matmul", "-o", "x.pdf"), "ends in .html"),
        (("matmul", "--dtype", "fp16"), "it says what --measure measures"),
        (("matmul", "--measure", "--run", "h200-matmul"), "it measures a new run"),
        (("missing.kvz",), "there is no such file"),
        ((LADDER, "--run", "h200-matmul"), "the file holds the run"),
        (("transpose", "--measure", "--device", "cpu"), "no rung of it can run there"),
    ],
)
def test_bad_input_names_the_field_and_the_remedy(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    _, err = called(capsys, *arguments, code=2)
    assert message in " ".join(err.split())


def test_an_op_of_which_no_run_is_here_says_what_measures_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(History, "shipped", lambda self, search="": ())
    _, err = called(capsys, "transpose", code=2)
    assert "no run here shows its ladder; `kernelviz ladder transpose --measure`" in " ".join(err.split())


def test_text_of_a_document_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = shipped_runs.load("h200-add")
    device = msgspec.structs.replace(run.environment.device, name="a\x1b[31mb")
    environment = msgspec.structs.replace(run.environment, device=device)
    named = msgspec.structs.replace(run, id="x", environment=environment)
    file = tmp_path / "run.json"
    file.write_bytes(document.encode(named))
    for more in ((), ("--markdown",)):
        out, err = called(capsys, str(file), "--no-machine-code", *more)
        assert "\x1b[31m" not in out + err
