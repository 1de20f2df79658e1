"""Files that stand for very much are refused within 10 s, by processes that stay within their memory (tests/formats/bombs.py)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import turns

from kernelviz.bench.backup import MOST_LINE_BYTES
from kernelviz.formats.import_format import MAX_BYTES, MOST_FOREIGN_BYTES

SCRIPT = Path(__file__).with_name("bombs.py")
SCALE = 0.125
TURNS = 5
"""A fifth of the bombs is read at each commit."""
START_BYTES = 130e6
"""A process that reads has so much when it starts: the interpreter, numpy, pyarrow."""


@pytest.mark.parametrize(
    ("group", "count", "most_bytes"),
    [
        ("json", 20, MAX_BYTES),
        ("gbench", 7, MAX_BYTES),  # one of them is not recognised
        ("kernel-tuner", 5, MAX_BYTES),
        ("nvbench", 5, MOST_FOREIGN_BYTES),
        ("parquet", 9, MAX_BYTES),
        ("kvz", 5, MAX_BYTES),
        ("backup", 5, MOST_LINE_BYTES),
    ],
)
def test_a_bomb_is_refused_in_time_and_within_memory(group: str, count: int, most_bytes: int) -> None:
    command = [sys.executable, str(SCRIPT), "--scale", str(SCALE), group]
    command += ["--turns", str(TURNS), "--turn", str(turns.seed())]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(lines) >= count // TURNS
    assert [line["name"] for line in lines if not line["refused"]] == []
    assert {line["name"]: line["seconds"] for line in lines if line["seconds"] > 10} == {}
    assert lines[-1]["readers_peak_bytes"] <= SCALE * 4 * most_bytes + START_BYTES
    assert "Traceback" not in ended.stderr
