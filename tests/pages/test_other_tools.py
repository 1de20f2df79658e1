"""Runs of other tools on the pages: what their files say, and no page that breaks over what they do not say."""

from __future__ import annotations

import json
from pathlib import Path

import peers
import pytest
import sample_runs as samples
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz import formats
from kernelviz.bench import Bench
from kernelviz.ui.shared.site import pages_folder

MAIN = Path(kernelviz.__file__).parent / "ui" / "server" / "main.py"


def opened(page: str, **params: str) -> AppTest:
    test = AppTest.from_file(MAIN, default_timeout=30)
    test.run()
    test.switch_page(str(pages_folder() / page))
    test.query_params.update(params)
    test.run()
    assert not test.exception, test.exception
    return test


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info", "text")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind))


def test_every_run_of_the_peers_opens_on_every_page(bench: Bench) -> None:
    ids = [*bench.history.take_in_all(peers.nvbench()), *bench.history.take_in_all(peers.gbench())]
    assert len(ids) == 11
    for run_id in (ids[0], ids[4], ids[8], ids[-1]):
        said = words(opened("bench.py", run=run_id))
        assert "These times were measured by another tool" in said
        assert "Measured on" not in said
    for page in ("roofline.py", "history.py"):
        opened(page, run=ids[4])
    said = words(opened("compare.py", a=ids[4], b=ids[5]))
    for wrong in ("faster", "slower"):
        assert f"{wrong} (" not in said


def test_a_run_with_the_name_of_an_op_and_other_axes_opens_on_every_page(bench: Bench) -> None:
    """A file of google benchmark is named after its executable, which may be called like an op of ours."""
    foreign = json.loads(peers.gbench())
    foreign["context"]["executable"] = "add"
    for number, one in enumerate(foreign["benchmarks"]):
        one["name"] = f"torch_eager/rows:{64 << number % 3}/cols:3"
    own = formats.encode(samples.run(op="softmax")).decode().replace('"m":', '"rows":').replace('"n":', '"cols":')
    for content in (json.dumps(foreign), own):
        (run_id,) = bench.history.take_in_all(content.encode())
        assert set(bench.load(run_id).plan.problems[0].sizes) == {"rows", "cols"}
        assert opened("bench.py", run=run_id).text_input
        opened("roofline.py", runs=run_id)
        opened("compare.py", a=run_id, b=run_id)
        opened("history.py", run=run_id)


def test_the_table_has_every_case_with_how_its_times_were_taken(bench: Bench) -> None:
    grid = bench.history.take_in_all(peers.nvbench())[4]
    (table,) = opened("bench.py", run=grid).dataframe
    assert len(table.value) == 9
    assert list(table.value["BlockSize"])[:3] == [64, 256, 1024]
    assert table.value["GPU time, cold, µs"][0] == pytest.approx(6485.7, rel=1e-4)
    assert set(table.value["Result"]) == {"not checked"}
    assert table.value["How the times were measured"][0].startswith(
        "GPU time, cold: nvbench: mean of 78 isolated calls, L2 flushed before each"
    )


def test_when_nobody_knows_when_it_was_measured_that_is_said(bench: Bench) -> None:
    run_id = bench.history.take_in_all(peers.nvbench())[0]
    assert "at an unknown time" in words(opened("bench.py", run=run_id))
    assert bench.history.summary(run_id).created_at == ""
