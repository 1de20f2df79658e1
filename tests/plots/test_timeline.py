"""The timing diagram: what the device did, in its own time, and what of it was counted."""

from __future__ import annotations

import msgspec
import pytest
import sample_figures as figures

from kernelviz import plots
from kernelviz.core.selftest import Mark, Timeline
from kernelviz.plots.timeline import LANES, describe_timeline

ONE_CALL = Timeline(
    case="<b>x</b>", timer="cupti", marks=(Mark(kind="call", name="<i>k", start_s=1e-6, end_s=3e-6),), counted=()
)
CASES: dict[str, Timeline | None] = {
    "none": None,
    "empty": Timeline(case="", timer="cupti", marks=(), counted=()),
    "one call": ONE_CALL,
    "two": figures.timeline(2),
    "many": figures.timeline(200),
}


@pytest.mark.parametrize("name", CASES)
def test_every_timeline_is_drawn_or_says_why_not(name: str) -> None:
    figure = plots.marks_by_time(CASES[name])
    text = figure.to_json()
    assert "NaN" not in text
    assert "<i>k" not in text
    if not figure.data:
        assert any(a.text for a in figure.layout.annotations)


def test_bars_stand_where_the_marks_were_and_two_iterations_are_drawn() -> None:
    timeline = figures.timeline(3)
    lanes = {trace.name: trace for trace in plots.marks_by_time(timeline).data}
    assert list(lanes) == [LANES[k] for k in ("poison", "flush", "call", "marker")]
    calls = [m for m in timeline.marks if m.kind == "call"][:2]
    assert list(lanes["call"].base) == pytest.approx([m.start_s * 1e6 for m in calls])
    assert list(lanes["call"].x) == pytest.approx([(m.end_s - m.start_s) * 1e6 for m in calls])
    assert {name: len(t.x) for name, t in lanes.items()} == {name: 6 if name == LANES["flush"] else 2 for name in lanes}
    assert len(plots.marks_by_time(timeline, iterations=3).data[0].x) == 3


def test_what_was_counted_is_shaded_and_said_in_words() -> None:
    timeline = figures.timeline(3)
    figure = plots.marks_by_time(timeline)
    bands = [(s.x0, s.x1) for s in figure.layout.shapes if s.type == "rect"]
    assert bands == [pytest.approx((a * 1e6, b * 1e6)) for a, b in timeline.counted[:2]]
    assert [a.text for a in figure.layout.annotations] == ["counted: 4.08 µs", "4.08 µs"]


def test_a_mark_too_short_to_be_seen_gets_a_bar_and_keeps_its_words() -> None:
    marks = (
        Mark(kind="flush", name="f", start_s=0.0, end_s=1e-3),
        Mark(kind="call", name="k", start_s=1e-3, end_s=1e-3 + 1e-7),
    )
    call = plots.marks_by_time(Timeline(case="c", timer="cupti", marks=marks, counted=())).data[1]
    assert call.x[0] > 5
    assert "100.0 ns" in call.hovertext[0]


def test_words_for_those_who_do_not_see_it() -> None:
    words = describe_timeline(figures.timeline())
    assert "fill output 2.00 µs, flush L2 43.9 µs, call 4.08 µs" in words
    assert words.endswith("Counted: 4.08 µs, 4.08 µs.")
    assert describe_timeline(msgspec.structs.replace(ONE_CALL, counted=())).endswith("Counted: nothing.")
