"""The charts of a tuning: what is marked, where failures are, and how long 2,000 configurations take to draw and to send."""

from __future__ import annotations

import time
from functools import partial

import msgspec
import peers
import pytest
import sample_tunings as tunings

from kernelviz import plots
from kernelviz.core.configuration import configured_name
from kernelviz.formats import read
from kernelviz.formats.browser import figure_json
from kernelviz.metrics.configurations import configuration_space

MANY = tunings.many()
CHARTS = {
    "scatter": partial(plots.time_by_parameter, MANY),
    "parallel": partial(plots.time_by_all_parameters, MANY),
    "progress": partial(plots.best_time_by_progress, MANY),
    "in time": partial(plots.best_time_by_progress, MANY, "time"),
    "registers": partial(plots.time_by_registers, MANY),
    "reasons": partial(plots.count_by_reason, MANY),
    "shares": partial(plots.share_by_parameter, MANY),
}
MOST_S = 1.5
"""Generous: 0.5 s is the goal on a machine that does nothing else, and drawing takes 0.1 s there."""


def test_a_best_that_is_the_default_has_one_mark_and_one_label() -> None:
    names = [configured_name("triton_tuned", {"block": 2**b, "warps": 4}) for b in (6, 7, 8)]
    results = tuple(tunings.figure_result(name, 1e-5 * n) for n, name in enumerate(names, 1))
    run = tunings.run()
    plan = msgspec.structs.replace(run.plan, variants=tuple(names), baseline=names[0])
    figure = plots.time_by_parameter(msgspec.structs.replace(run, plan=plan, results=results), "block")
    assert [note.text for note in figure.layout.annotations] == ["best = default"]


@pytest.mark.parametrize("name", CHARTS)
def test_2000_configurations_are_drawn_at_once(name: str) -> None:
    configuration_space(MANY)
    begun_s = time.process_time()
    figure = CHARTS[name]()
    content = figure_json.drawable(figure)
    assert time.process_time() - begun_s < MOST_S
    assert content["data"]


def test_no_configuration_is_thinned_away() -> None:
    space = configuration_space(MANY)
    content = figure_json.drawable(plots.time_by_parameter(MANY, "warps"))
    points = [v for trace in content["data"] for v in trace["customdata"]]
    assert len(points) == len(set(points)) == len(space.timed) + len(space.untimed) == 2000


def test_best_default_failures_and_stopped_ones_differ_by_shape_and_have_names() -> None:
    figure = plots.time_by_parameter(MANY, "block")
    looks = {t.name: t.marker.symbol for t in figure.data}
    assert looks == {
        "correct": "circle", "stopped early (one block)": "circle-open", "no time": "x", "default": "diamond", "best": "star",
    }  # fmt: skip
    assert not any(t.text for t in figure.data), "a label among the points would cover them"
    beside = {note.text: note for note in figure.layout.annotations if note.xref == "paper" and note.x == 1}
    assert {name: note.yanchor for name, note in beside.items()} == {"default": "bottom", "best": "top"}
    assert figure.layout.margin.r > 40, "the names have their own space"
    lines = {line.line.color: line.y0 for line in figure.layout.shapes}
    assert lines == {t.marker.color: t.y[0] for t in figure.data if t.name in ("best", "default")}
    highest = max(y for t in figure.data if t.name != "no time" for y in t.y)
    assert all(y > highest for t in figure.data if t.name == "no time" for y in t.y), "at the edge, above all times"


def test_parallel_coordinates_say_how_many_are_drawn() -> None:
    figure = plots.time_by_all_parameters(MANY)
    names = [t.name for t in figure.data]
    timed = len(configuration_space(MANY).timed)
    assert names[0] == f"others (a sample, 60 of {timed - 2 - (timed - 2) // 10})"
    assert names[-1] == "best"
    assert {t.line.dash for t in figure.data if t.name == "default"} == {"dash"}
    assert [*figure.layout.xaxis.ticktext] == ["block", "warps", "parts", "stages", "time"]
    values = [note for note in figure.layout.annotations if note.xanchor == "center"]
    assert values
    assert all(note.bgcolor for note in values), "lines run through the values of an axis"


def test_spills_are_triangles() -> None:
    figure = plots.time_by_registers(MANY)
    by_name = {t.name: t for t in figure.data}
    spilling = by_name["uses local memory (spills)"]
    assert spilling.marker.symbol == "triangle-up"
    assert min(spilling.x) > 96
    assert max(by_name["correct"].x) < 112


def test_another_tools_values_that_are_texts_have_their_own_positions() -> None:
    (run,) = read(peers.kernel_tuner("mixed"))
    figure = plots.time_by_parameter(run, "test_mixed")
    assert set(figure.layout.xaxis.ticktext) <= {"test", "1", "true", "2.45"}
    assert {t.name for t in figure.data} == {"time by another tool, not checked", "fastest, not checked"}


def test_the_matrix_shows_a_pair_that_nobody_measured_as_such() -> None:
    from charts import _transfer

    figure = plots.ratio_by_shape(_transfer(True))
    texts = [a.text for a in figure.layout.annotations]
    assert texts == ["same", "1.25×", "1.50×", "1.10×", "same", "no time", "not measured", "1.02×", "same"]
    assert figure.data[0].z[2][0] is None
