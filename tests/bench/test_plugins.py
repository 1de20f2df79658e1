"""Variants of one's own from a file: described by a process of their own, never imported here."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest

from kernelviz.bench import Bench
from kernelviz.bench.availability import Choice
from kernelviz.core.errors import BadField, DeviceError
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.hardware.discovery import discover
from kernelviz.ops import PublishedGain, catalogue
from kernelviz.plots.variant_styles import style_of, styles_of
from kernelviz.store import Store

PLUGIN = '''
from kernelviz.ops import PublishedGain, variant

GAIN = PublishedGain(factor=2.0, over="torch_eager", gpu="some GPU", source="example.org")

@variant(
    op="add", backend="triton", needs=("cuda",), dtypes=("fp16",), slow_compile=True, only_when_named=True, published=GAIN
)
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
    assert (mine.backend, mine.needs, mine.dtypes, mine.slow_compile) == ("triton", ("cuda",), ("fp16",), True)
    assert mine.only_when_named
    assert mine.published == PublishedGain(factor=2.0, over="torch_eager", gpu="some GPU", source="example.org")
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


def test_its_variants_look_the_same_in_every_run(plugin: Path) -> None:
    """Without the server's plug-in, a variant that comes earlier in the alphabet would take its style."""
    Choice()  # The plug-in of a test that this process ran before would keep the style, so no rival would ever be found.
    alone = style_of("add", "mine")
    rival = next(name for name in (f"a_{number}" for number in count()) if style_of("add", name) == alone)
    assert styles_of("add", ["mine", rival])["mine"] != alone
    Choice((str(plugin),))
    assert styles_of("add", ["mine", rival])["mine"] == alone
    Choice()
    assert styles_of("add", ["mine", rival])["mine"] != alone


def measured(bench: Bench, plugin: Path, variant: str) -> Result:
    asked = bench.plan(
        RunRequest(op="add", sizes={"n": "64"}, variants=(variant,), device="cpu", plugins=(str(plugin),))
    )
    run_id = bench.run(asked, Method(budget_s=0.01))
    assert [e for _, e in bench.follow(run_id, timeout_s=60)][-1] == RunEnded(status="finished")
    return bench.load(run_id).results[0]


def test_the_server_knows_its_source_by_the_digest_that_the_workers_results_carry(tmp_path: Path) -> None:
    """One and the same file: measured by a worker, then (it needs a GPU now) refused by the server, which never has it."""
    body = PLUGIN.replace("raise AssertionError", "return lambda: x_N + y_N").replace('"triton"', '"torch"')
    body = body.replace(', dtypes=("fp16",), slow_compile=True', "")
    here, nowhere = tmp_path / "here.py", tmp_path / "nowhere.py"
    text = "NEEDS = ('cuda',) if 'nowhere' in __file__ else ()\n" + body.replace('("cuda",)', "NEEDS")
    here.write_text(text)
    nowhere.write_text(text)
    cpu = next(d for d in discover() if d.id == "cpu")
    bench = Bench(Store.open(tmp_path), (cpu,), lock_directory=tmp_path)
    try:
        timed = measured(bench, here, "mine")
        refused = measured(bench, nowhere, "mine")
    finally:
        bench.close()
    assert isinstance(timed.outcome, Timing)
    assert isinstance(refused.outcome, Failure)
    assert refused.outcome.stage == "unavailable"
    assert timed.source_digest == refused.source_digest
    assert timed.source_digest == Choice().ops((str(here),))["add"].variant_named("mine").source_digest()
    for changed in (text.replace("x_N + y_N", "y_N + x_N"), text + "BLOCK = 512  # a kernel's, outside the function\n"):
        here.write_text(changed)
        assert timed.source_digest != Choice().ops((str(here),))["add"].variant_named("mine").source_digest()


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
