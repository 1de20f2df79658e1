"""`kernelviz inspect` and `kv.inspect`: over played sessions, and once with the real worker and a wrong plug-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.errors import BadField, DeviceError
from kernelviz.core.inspection import Inspection
from kernelviz.hardware.cpu import cpu
from kernelviz.store import Store
from tests.bench.bench_of_sessions import bench_in

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_a_wrong_one_shows_where(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "add", "--variant", "b", "--size", "n=4096"]) == 1
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "add fp32 n=2^12, b, on Test processor"
    assert lines[1] == "✕ wrong with inputs of fill 2: leaves output unwritten: 64 elements were never written"
    assert "  z_N: 256 of 4,096 elements outside the bound, 6.2 % (64 never written, 192 too far off)" in lines
    assert "  z_N: they lie within n 3840 to 4095 (the last 256 of 4096): every element there is wrong" in lines
    assert "[4095]" in printed.out
    assert lines[-3:] == [f"  {sign * 64}" for sign in "·X?"]
    assert "starting the measuring process" in printed.err


def test_a_right_one_has_no_picture(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "add", "--variant", "a", "--size", "n=4096"]) == 0
    printed = capsys.readouterr().out
    assert "✓ right: every element of every output lies inside the bound" in printed
    assert "X wrong" not in printed
    header = next(line for line in printed.splitlines() if line.startswith("Tensor"))
    assert header.split()[:7] == ["Tensor", "Role", "Dtype", "Shape", "Strides", "Memory", "Size"]


def test_json_is_the_document_and_nothing_else(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "add", "--variant", "b", "--size", "n=64", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kernelviz-inspection/1"
    made = msgspec.convert(found, Inspection)
    assert (made.variant, made.passed) == ("b", False)
    assert made == bench.inspection(made.problem, "b", "cpu")


def test_bad_usage_is_one_line_and_nothing_is_begun(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["inspect", "add", "--variant", "a", "--size", "n=1,2"], "name one variant and one size"),
        (["inspect", "add", "--variant", "a,b", "--size", "n=1"], "name one variant and one size"),
        (["inspect", "add", "--variant", "needs_cuda", "--size", "n=1"], "needs CUDA"),
        (["inspect", "add", "--variant", "nobody", "--size", "n=1"], "no variant 'nobody'"),
    ):
        assert main(arguments) == 2, arguments
        printed = capsys.readouterr()
        assert printed.out == ""
        assert said in printed.err


def test_a_call_that_breaks_down_says_how(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "add", "--variant", "abort", "--size", "n=1"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "SIGABRT" in printed.err


def test_in_python(bench: Bench) -> None:
    made = kv.inspect("add", "b", sizes={"n": 4096})
    assert not made.passed
    assert kv.plots.share_by_element(made.errors[0]).data
    with pytest.raises(BadField, match="one size"):
        kv.inspect("add", "b", sizes={"n": "1,2"})
    with pytest.raises(DeviceError, match="SIGABRT"):
        kv.inspect("add", "abort", sizes={"n": 1})


@pytest.mark.xdist_group("device")
def test_a_real_call_of_a_wrong_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Bench(Store.open(tmp_path), (cpu(),), lock_directory=tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    code = main([
        "inspect", "softmax", "--variant", "forgets_the_last_tile",
        "--with", str(ROOT / "tests" / "planted_wrong.py"), "--size", "m=200", "--size", "n=1000", "--dtype", "bf16",
        "--device", "cpu",
    ])  # fmt: skip
    printed = capsys.readouterr()
    assert code == 1, printed.err
    assert "leaves output unwritten: 1600 elements were never written" in printed.out
    assert "they lie within m 183 to 199 (the last 17 of 200), n 900 to 999 (the last 100 of 1000)" in printed.out
    assert printed.out.rstrip().endswith("·" * 56 + "?" * 7)
