"""The Gallery page, run by AppTest from the real entry script over a real store and the recorded runs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import msgspec
import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench.gallery import MOST_CARDS, Family, GalleryOp, first_of, gallery, layout, recorded_runs, records
from kernelviz.formats import recordings, shipped_runs
from kernelviz.text.insight import insight_sentence
from kernelviz.ui.gallery import choice, links

Open = Callable[..., AppTest]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> RehearsedBench:
    made = RehearsedBench((samples.CPU,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def opened(**params: str) -> AppTest:
    return open_page(params, "gallery")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def linked(test: AppTest) -> list[str]:
    """The runs that cards link to by their titles; the bar of a phone links to pages without a run."""
    links = [link.proto.query_string.partition("run=")[2] for link in test.get("page_link")]
    return [run for run in links if run]


def listed(test: AppTest) -> list[str]:
    """The runs of the links in lists."""
    return [run for html in test.get("html") for run in re.findall(r'href="\?run=([^"]+)"', html.proto.body)]


def test_every_recorded_run_has_a_link_every_drawn_one_a_picture_and_a_sentence_and_every_other_op_a_button(
    bench: RehearsedBench,
) -> None:
    test = opened()
    assert sorted(linked(test) + listed(test)) == sorted(shipped_runs.names())
    shown = layout(gallery(bench))
    assert len(linked(test)) == len(list(test.get("image"))) == shown.charts <= MOST_CARDS
    said = words(test)
    drawn = [card.run for _, cards in shown.cards for card in cards]
    assert all(str(insight_sentence(one.recording.insight)) in said for one in drawn)
    assert f"{len(shipped_runs.names())} recorded runs" in said
    missing = [one.op for family in gallery(bench) for one in family.missing]
    assert len(missing) > 30
    for op in missing:
        assert f"**{op.name}** {op.summary}" in said
        assert test.button(key=f"measure_{op.name}").label == "Measure this here"


def test_a_family_that_is_listed_has_its_charts_after_a_click(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "__kwdefaults__", {"most": 4})
    test = opened()
    assert sorted(linked(test) + listed(test)) == sorted(shipped_runs.names())
    family = layout(gallery(bench)).lists[-1]
    test.button(key=f"charts_of_{family.name}").click().run()
    assert not test.exception
    assert test.query_params["family"] in (family.name, [family.name])
    assert len(linked(test)) == len(family.ops)
    assert sorted(linked(test) + listed(test)) == sorted(run.run.id for one in family.ops for run in one.runs)


@pytest.mark.parametrize("most", [1, 4, 1000])
def test_the_page_says_how_many_runs_have_charts_and_how_many_are_links(
    most: int, bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "__kwdefaults__", {"most": most})
    families = [family for family in gallery(bench) if family.recorded]
    families = families[-1:] + families[:-1] if most == 1 else families
    shown = layout(families)
    said = choice._summary(shown)
    ops = sum(len(family.recorded) for family in families)
    assert said.startswith(f"{len(shipped_runs.names())} recorded runs of {ops} ops.")
    listed = sum(len(family.ops) for family in shown.lists)
    assert ("links [below the charts]" in said) == (listed > 0)
    if listed:
        assert f"Charts are drawn for the {shown.charts} op{'s' * (shown.charts > 1)} of " in said
        assert f"other {listed} ops, in {len(shown.lists)} families" in said


def test_runs_that_differ_in_nothing_else_are_told_apart_by_their_names(bench: RehearsedBench) -> None:
    first, *_ = (one for one in recorded_runs(bench) if one.run.op == "softmax")
    twin = dataclasses.replace(first, run=msgspec.structs.replace(first.run, id="twin"))
    family = Family("x", (GalleryOp(bench.ops()["softmax"], (first, twin)),))
    texts = re.findall(r">(forward[^<]*)</a>", links.table(family))
    assert texts == [f"forward ({first.run.id})", "forward (twin)"]


def test_each_run_of_a_chosen_op_has_a_chart(bench: RehearsedBench) -> None:
    test = opened(of_op="softmax")
    of_op = [one.run.id for one in recorded_runs(bench) if one.run.op == "softmax"]
    assert len(of_op) > 1
    assert (sorted(linked(test)), listed(test)) == (sorted(of_op), [])


def test_filters_are_in_the_address_and_a_wrong_one_is_reported(bench: RehearsedBench) -> None:
    test = opened(family="reduction", recorded_on="NVIDIA H200")
    assert test.selectbox(key="family").value == "reduction"
    assert "Softmax of each row" not in words(test)
    assert "**row_sum**" in words(test)
    test.selectbox(key="of_op").select("argmax").run()
    assert not test.exception
    assert "**row_sum**" not in words(test)
    assert test.query_params["of_op"] in ("argmax", ["argmax"])
    assert "showing reduction" in words(opened(family="reductions"))


def test_measure_this_here_starts_the_op_and_opens_its_run(bench: RehearsedBench) -> None:
    test = opened(of_op="relu")
    test.button(key="measure_relu").click().run()
    assert not test.exception
    run = bench.load(
        str(test.query_params["run"] if isinstance(test.query_params["run"], str) else test.query_params["run"][0])
    )
    assert (run.plan.op, run.plan.device) == ("relu", "cpu")
    assert "relu" in words(test)


def test_a_recorded_backward_pass_says_so_and_is_measured_as_one(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = recordings.recordings()
    backward = msgspec.structs.replace(known["h200-softmax"], direction="backward", variants=3)
    monkeypatch.setattr(
        kernelviz.bench.gallery, "recordings", lambda: {**known, "h200-softmax": backward}, raising=True
    )
    test = opened(of_op="softmax")
    assert {link.label for link in test.get("page_link") if "run=h200-softmax" in link.proto.query_string} == {
        "**softmax** backward · NVIDIA H200"
    }
    op = bench.ops()["softmax"]
    with_backward = [v for v in op.variants if "backward" in v.directions]
    assert f"3 of {len(with_backward)} variants" in words(test)
    assert first_of(bench, "softmax") == bench.history.summary("h100-80gb-hbm3-softmax"), (
        "the forward pass of the other card"
    )
    test.button(key="measure_again_h200-softmax").click().run()
    (started,) = test.query_params["run"] if isinstance(test.query_params["run"], list) else [test.query_params["run"]]
    assert {problem.direction for problem in bench.load(started).plan.problems} == {"backward"}
    (record,) = [one for one in records(gallery(bench, op="softmax", device="NVIDIA H200")) if one["run"]]
    assert record["direction"] == "backward"
