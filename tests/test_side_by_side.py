"""tests/gpu/side_by_side.py: commands of several GPUs at once, with an environment of their own and a time limit."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import side_by_side

SHOW = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['KERNELVIZ_HOME'], sorted(os.sched_getaffinity(0)))"


def command(gpu: int, program: str) -> str:
    return f'{gpu}:{sys.executable} -c "{program}"'


def test_each_gpu_has_commands_processors_and_folders_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [
        command(0, SHOW),
        command(1, SHOW),
        command(0, "print('second of {gpu}')"),
        command(1, "raise SystemExit(3)"),
    ]
    assert side_by_side.main([str(tmp_path), "--most-s", "60", *commands]) == 1
    every = sorted(os.sched_getaffinity(0))
    for place in (0, 1):
        first, *rest = (tmp_path / f"gpu-{place}.txt").read_text().splitlines()
        share = sorted(side_by_side.processors(place, 2, every))
        assert first == f"{place} {tmp_path / f'home-{place}'} {share}"
        assert rest == (["second of 0"] if place == 0 else [])
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in said] == ["GPU 0", "GPU 0", "GPU 1", "GPU 1"]
    assert [line.rsplit(": ", 1)[1].split(" after")[0] for line in said] == ["ended with 0"] * 3 + ["ended with 3"]


def test_what_runs_too_long_is_ended_and_the_next_is_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "LEAST_S", 0.2)
    endless = command(0, "import signal; signal.pause()")
    assert side_by_side.main([str(tmp_path), "--most-s", "0.5", endless, command(0, "print(1)")]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert re.search(r"ended with -?[1-9]\d* after", first)
    assert second.endswith("was not begun: the time is over")
    assert "1" not in (tmp_path / "gpu-0.txt").read_text().splitlines()


@pytest.mark.parametrize("wrong", ["python x.py", "a:python x.py", "0:", ":x"])
def test_a_command_without_a_gpu_is_refused(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        side_by_side.main([str(tmp_path), "--most-s", "1", wrong])
    assert "give the number of a GPU, a colon and a command" in capsys.readouterr().err
