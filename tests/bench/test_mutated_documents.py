"""Documents damaged in 240 ways, through the code of an upload: refused with a reason or opened, nothing in between."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sample_runs as samples
import turns
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kernelviz import plots
from kernelviz.api import Report
from kernelviz.bench.history import History
from kernelviz.cli import console, tables
from kernelviz.core.errors import DocumentError
from kernelviz.core.run import Run
from kernelviz.formats import encode, read
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.store import Store
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.tables.kernels import KERNELS, kernels
from kernelviz.text import cells
from kernelviz.ui.shared import table

EXAMPLES = 60
"""Of each of four kinds of damage: others at each commit."""
ORIGINALS = [json.loads(encode(r)) for r in (samples.mixed(), samples.run(shares={"torch_eager": 0.5}))]
for _original in ORIGINALS:
    # Two sizes say as much as six, and a smaller document is hit more often where it hurts.
    _original["results"] = _original["results"][:5]
    # Two samples of each block say as much as twenty. No test changes one of them.
    for _outcome in (r["outcome"] for r in _original["results"]):
        for _figure in (_outcome.get("timing") or _outcome).values():
            if isinstance(_figure, dict) and _figure.get("blocks"):
                _step = _figure["blocks"][0]["size"]
                _figure["samples"] = [s for i, s in enumerate(_figure["samples"]) if i % _step < 2]
                _figure["blocks"] = [b | {"size": 2} for b in _figure["blocks"]]
TEXTS = [json.dumps(o) for o in ORIGINALS]

number = st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0, 1e308, 5e-324, 1e-12])
word = st.sampled_from(
    ["", "add", "rmsnorm", "torch_eager", "fp8", "kernelviz/2", "../../etc/passwd", "<b>x</b>", "\u0000", "NaN"]
)
scalar = st.none() | st.booleans() | number | word | st.text(max_size=8)
value = st.recursive(scalar, lambda v: st.lists(v, max_size=3) | st.dictionaries(word, v, max_size=3), max_leaves=6)
quick = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    # A smaller example is not worth the minutes that it takes to find.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    store = Store.open(tmp_path_factory.mktemp("store"))
    yield History(store)
    store.close()


def uploaded(history: History, data: bytes) -> Run | None:
    """What an upload does: the run as it is kept now, or None when it was refused (and nothing was kept)."""
    before = history.count()
    run_id = ""
    try:
        run_id = history.take_in(data)
    except DocumentError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert history.count() == before
        return None
    kept = history.load(run_id)
    (given,) = read(data)
    assert len(kept.results) == len({r.case.key for r in given.results}), "all of the run, or nothing"
    history.delete(run_id)
    return kept


def shown(run: Run) -> None:
    """Everything that the page, the terminal and a notebook draw of a run."""
    found = rows(run, run.environment.roofs)
    summary(found)
    of, launched = cases(run, found), kernels(found)
    for view in (View.WIDE, View.TIMES_WIDE):
        table.frame(case_columns(of, view), of)
    table.frame(select_with_sizes(KERNELS, launched, View.WIDE), launched)
    cells.failures(found)
    for draw in (plots.bandwidth_by_size, plots.rate_by_size, plots.latency_by_size):
        draw(run).to_dict()
    plots.time_by_variant(run).to_dict()
    plots.rate_by_intensity(run).to_dict()
    with console.out().capture():
        console.out().print(tables.report(run, run.environment.roofs))
    Report.of(run).to_frame()


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below `node`."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from places(below, (*path, key))


PLACES = [[p for p in places(o) if "samples" not in p[:-1] and "blocks" not in p[:-1]] for o in ORIGINALS]


def damaged(data: st.DataObject) -> tuple[Any, Any, Any]:
    """A copy of an original, with the container and the key of one of its values."""
    which = data.draw(st.integers(0, len(ORIGINALS) - 1))
    path = data.draw(st.sampled_from(PLACES[which]))
    document = json.loads(TEXTS[which])
    node = document
    for key in path[:-1]:
        node = node[key]
    return document, node, path[-1]


@seed(turns.seed())
@quick
@given(data=st.data())
def test_a_value_that_is_another(history: History, data: st.DataObject) -> None:
    document, node, key = damaged(data)
    node[key] = data.draw(value)
    run = uploaded(history, json.dumps(document).encode())
    if run is not None:
        shown(run)


@seed(turns.seed())
@quick
@given(data=st.data())
def test_a_value_that_is_missing_or_there_twice(history: History, data: st.DataObject) -> None:
    document, node, key = damaged(data)
    if isinstance(node, list) and data.draw(st.booleans()):
        node.insert(key, copy.deepcopy(node[key]))
    else:
        del node[key]
    run = uploaded(history, json.dumps(document).encode())
    if run is not None:
        shown(run)


@seed(turns.seed())
@quick
@given(data=st.data())
def test_numbers_of_another_size(history: History, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(ORIGINALS) - 1))
    document = json.loads(TEXTS[which])
    for _ in range(data.draw(st.integers(1, 6))):
        path = data.draw(st.sampled_from(PLACES[which]))
        node = document
        for key in path[:-1]:
            node = node[key]
        if isinstance(node[path[-1]], int | float):
            node[path[-1]] = data.draw(number | st.floats(allow_nan=False) | st.none())
    run = uploaded(history, json.dumps(document).encode())
    if run is not None:
        shown(run)


@seed(turns.seed())
@quick
@given(data=st.data())
def test_bytes_that_are_others(history: History, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(TEXTS)).encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    match data.draw(st.sampled_from(["cut", "change", "insert", "remove"])):
        case "cut":
            del raw[at:]
        case "change":
            raw[at : at + 4] = data.draw(st.binary(min_size=1, max_size=4))
        case "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        case _:
            del raw[at : at + data.draw(st.integers(1, 64))]
    run = uploaded(history, bytes(raw))
    if run is not None:
        shown(run)
