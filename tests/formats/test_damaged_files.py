"""Files of every format, each damaged in one of 154 ways, through the code of an upload and of `kernelviz import`: a file is
stored as a whole, or not at all with a reason, and what is stored can be drawn. tests/mutated_files.py examines 20,000 files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import turns

TESTS = Path(__file__).parents[1]
FILES = 80
"""Of 154 formats and damages, other ones at each commit."""


@pytest.mark.timeout(300)
def test_a_damaged_file_is_imported_as_a_whole_or_refused_with_a_reason() -> None:
    """In a process of its own, because it replaces what commands and pages use."""
    seed = str(turns.seed())
    program = [sys.executable, str(TESTS / "mutated_files.py"), "--processes", "1", "--pages", "0", "--seed", seed]
    ran = subprocess.run([*program, "--count", str(FILES)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (total,) = (line.split() for line in ran.stdout.splitlines() if line.startswith("all "))
    kinds, files, imported, refused = map(int, total[1:5])
    assert files == FILES, ran.stdout
    assert kinds > FILES * 0.5, ran.stdout
    assert min(imported, refused) > FILES // 8, "both happen often"
