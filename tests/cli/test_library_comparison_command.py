"""`kernelviz library-comparison`, and its former name `kernelviz ladders`."""

import pytest

import kernelviz as kv
from kernelviz.cli import main


@pytest.mark.parametrize("options", [[], ["--json"], ["--markdown"]])
def test_the_former_name_prints_the_same(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for command in ("library-comparison", "ladders"):
        assert main([command, "h200-softmax", *options]) == 0
        printed.append(capsys.readouterr())
    assert printed[0] == printed[1]
    assert "cuda_columns" in printed[0].out


def test_the_former_name_refuses_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    refused = []
    for command in ("library-comparison", "ladders"):
        assert main([command, "no-such-run"]) == 2
        refused.append(capsys.readouterr())
    assert refused[0] == refused[1]
    assert "no-such-run" in refused[0].err


def test_help_lists_the_new_name_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert "library-comparison" in listed
    assert "ladders" not in listed


def test_the_former_name_in_python() -> None:
    assert kv.ladders is kv.library_comparison
    assert kv.ladders("h200-softmax") == kv.library_comparison("h200-softmax")
