"""Variants of one's own from a file: described by a process of their own, never imported here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelviz.bench.catalogue import Choice
from kernelviz.core.errors import BadField, DeviceError
from kernelviz.ops import catalogue

PLUGIN = '''
from kernelviz.ops import variant

@variant(op="add", backend="triton", needs=("cuda",), dtypes=("fp16",), late=True)
def mine(x_N, y_N):
    """My own addition."""
    raise AssertionError

IMPORTED = True
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    return path


def test_its_variants_join_the_ladder(plugin: Path) -> None:
    choice = Choice((str(plugin),))
    ops = choice.ops(choice.plugins)
    mine = ops["add"].variant_named("mine")
    assert ops["add"].variants[-1] == mine
    assert (mine.backend, mine.needs, mine.dtypes, mine.late) == ("triton", ("cuda",), ("fp16",), True)
    assert mine.summary == "My own addition."
    assert set(ops) == set(catalogue())
    assert not any(getattr(m, "IMPORTED", False) for n, m in list(sys.modules.items()) if "plugin" in n)
    with pytest.raises(DeviceError):
        mine.bind()


def test_a_changed_file_is_described_anew(plugin: Path) -> None:
    choice = Choice()
    choice.ops((str(plugin),))
    plugin.write_text(PLUGIN.replace("def mine", "def renamed"))
    assert choice.ops((str(plugin),))["add"].variants[-1].name == "renamed"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('half a kernel')", "half a kernel"),
        ("import os; os.abort()", "SIGABRT"),
        ("x = 1", "holds no variant"),
        (PLUGIN.replace('"add"', '"ad"'), "did you mean 'add'"),
        (PLUGIN.replace("def mine", "def torch_eager"), "rename the function"),
    ],
)
def test_a_broken_one_says_what_is_wrong_and_costs_nobody_else(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(BadField, match=words):
        Choice().ops((str(path),))
    choice = Choice((str(path),))
    assert choice.plugins == ()
    assert words in choice.problems[0]
    assert set(choice.ops(choice.plugins)) == set(catalogue())
