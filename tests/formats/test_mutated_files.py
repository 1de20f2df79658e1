"""Files of every format that is read, cut off and changed in 160 ways, through the code of an upload: all of a file is kept
or nothing, with a reason; no error of any other kind."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import peers
import pytest
import sample_figures as figures
import turns
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from read_here import read

from kernelviz import plots
from kernelviz.bench.history import History
from kernelviz.cli import console, tables
from kernelviz.core.errors import DocumentError
from kernelviz.formats import exports, parquet
from kernelviz.metrics import foreign_times
from kernelviz.store import Store

EXAMPLES = 40
"""Of each of four tests: others at each commit."""


def smaller(document: dict[str, Any], states: int) -> dict[str, Any]:
    for benchmark in document["benchmarks"]:
        benchmark["states"] = benchmark["states"][:states]
    return document


NVBENCH = smaller(json.loads(peers.nvbench()), 4)
GBENCH = [json.loads(peers.gbench()), json.loads(peers.gbench("repetitions"))]
PARQUET = parquet.encode(figures.run())
PLAIN = [json.dumps(NVBENCH).encode(), *(json.dumps(g).encode() for g in GBENCH), PARQUET]
number = st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324, 1e-12])
word = st.sampled_from(
    ["", "aggregate", "int64", "inf", "-1", "1e999", "NaN", "9" * 5000, "<b>x</b>", "\u0000", "ns", "BM/0/x:1"]
)
scalar = st.none() | st.booleans() | number | word | st.text(max_size=8)
value = st.recursive(scalar, lambda v: st.lists(v, max_size=3) | st.dictionaries(word, v, max_size=3), max_leaves=6)
often = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # a smaller example is not worth the minutes that it takes to find
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    store = Store.open(tmp_path_factory.mktemp("store"))
    yield History(store)
    store.close()


def uploaded(history: History, data: bytes) -> bool:
    """Upload a file, show its runs and remove them again. Return whether the file was accepted."""
    before = history.count()
    try:
        ids = history.take_in_all(data)
    except DocumentError:
        assert history.count() == before, "a refused file leaves nothing"
        return False
    expected = read(data)
    assert len(ids) == len(expected), "all of its runs"
    for run_id, given_run in zip(ids, expected, strict=True):
        kept = history.load(run_id)
        assert {r.case.key for r in kept.results} == {r.case.key for r in given_run.results}, "and all of their cases"
        for name in (None, *foreign_times.names(kept)):
            plots.other_times_by_size(kept, name).to_dict()
        plots.latency_by_size(kept).to_dict()
        with console.out().capture():
            console.out().print(tables.report(kept, ()))
        for form in ("csv", "md", "gbench", "nvbench", "kernel-tuner", "t4"):
            exports()[form].encode(kept)
    for run_id in set(ids):
        history.delete(run_id)
    history._store.runs.purge("9999")
    return True


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from places(below, (*path, key))


def damaged(data: st.DataObject, original: bytes, where: list[tuple[Any, ...]]) -> Any:
    """The document with one to three values that are others, missing, or there twice."""
    document = json.loads(original)
    for _ in range(data.draw(st.integers(1, 3))):
        node = document
        path = data.draw(st.sampled_from(where))
        try:
            for key in path[:-1]:
                node = node[key]
            match data.draw(st.sampled_from(["another", "missing", "twice"])):
                case "another":
                    node[path[-1]] = data.draw(value)
                case "twice" if isinstance(node, list):
                    node.insert(path[-1], copy.deepcopy(node[path[-1]]))
                case _:
                    del node[path[-1]]
        except (LookupError, TypeError):  # an earlier change took this place away
            continue
    return document


# Two benchmarks in a file, so that each value is hit more often than in a file of five, and less is read and drawn.
NVBENCH_PAIRS = [NVBENCH | {"benchmarks": pair} for pair in pairwise(NVBENCH["benchmarks"])]
NVBENCH_TEXTS = [json.dumps(pair).encode() for pair in NVBENCH_PAIRS]
NVBENCH_PLACES = [list(places(json.loads(text))) for text in NVBENCH_TEXTS]
GBENCH_PLACES = [list(places(g)) for g in GBENCH]


@seed(turns.seed())
@often
@given(data=st.data())
def test_nvbench_with_other_values(history: History, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(NVBENCH_PAIRS) - 1))
    uploaded(history, json.dumps(damaged(data, NVBENCH_TEXTS[which], NVBENCH_PLACES[which])).encode())


@seed(turns.seed())
@often
@given(data=st.data())
def test_google_benchmark_with_other_values(history: History, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, 1))
    uploaded(history, json.dumps(damaged(data, PLAIN[1 + which], GBENCH_PLACES[which])).encode())


@seed(turns.seed())
@often
@given(data=st.data())
def test_other_bytes(history: History, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(PLAIN)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        match data.draw(st.sampled_from(["change", "insert", "remove"])):
            case "change":
                raw[at : at + 4] = data.draw(st.binary(min_size=1, max_size=4))
            case "insert":
                raw[at:at] = data.draw(st.binary(min_size=1, max_size=8))
            case _:
                del raw[at : at + data.draw(st.integers(1, 64))]
    uploaded(history, bytes(raw))


@seed(turns.seed())
@often
@given(data=st.data())
def test_a_file_that_was_cut_off_is_refused(history: History, data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(PLAIN))
    assert not uploaded(history, raw[: data.draw(st.integers(0, len(raw) - 1))])


def test_whole_ones_are_taken_in(history: History) -> None:
    assert [uploaded(history, raw) for raw in PLAIN] == [True] * 4
