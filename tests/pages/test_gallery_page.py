"""The Gallery page, run by AppTest from the real entry script over a real store and the recorded runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import unescape

import msgspec
import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench.gallery import (
    Card,
    Family,
    GalleryOp,
    RecordedRun,
    first_of,
    gallery,
    layout,
    recorded_runs,
    records,
)
from kernelviz.formats import recordings, shipped_runs
from kernelviz.text.insight import insight_sentence
from kernelviz.ui.gallery import links

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
    """The runs that the page links to; the bar of a phone links to pages without a run."""
    links = [link.proto.query_string.partition("run=")[2] for link in test.get("page_link")]
    return [*(run for run in links if run), *re.findall(r'href="\?run=([^"]+)"', tables(test))]


def tables(test: AppTest) -> str:
    return "".join(one.proto.body for one in test.get("html"))


def test_every_recorded_op_has_a_picture_and_a_sentence_every_run_a_link_and_every_other_op_a_button(
    bench: RehearsedBench,
) -> None:
    test = opened()
    assert sorted(linked(test)) == sorted(shipped_runs.names())
    shown = layout(gallery(bench))
    assert len(list(test.get("image"))) == shown.charts
    said = words(test)
    assert f"{len(shipped_runs.names())} recorded runs of" in said
    assert all(str(insight_sentence(card.run.recording.insight)) in said for _, of in shown.cards for card in of)
    missing = [one.op for family in gallery(bench) for one in family.missing]
    assert len(missing) == len(bench.ops()) - len({run.op for run in bench.history.shipped()} & set(bench.ops()))
    for op in missing:
        assert f"**{op.name}** {op.summary}" in said
        assert test.button(key=f"measure_{op.name}").label == "Measure this here"


def test_families_beyond_the_limit_are_tables_of_links_with_a_button_that_draws_their_charts(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernelviz.bench.gallery, "layout", partial(layout, most=1))
    test = opened(recorded_on="NVIDIA H200")
    found = gallery(bench, device="NVIDIA H200")
    first, second, *_ = (family for family in found if family.recorded)
    assert sorted(linked(test)) == sorted(run.run.id for family in found for one in family.ops for run in one.runs)
    assert len(list(test.get("image"))) == len(first.recorded)
    assert f"Charts are drawn for the {len(first.recorded)} ops of {first.name}, one an op." in words(test)
    assert f'<th scope="row">{second.recorded[0].op.name}</th>' in tables(test)
    button = test.button(key=f"charts_of_{second.name}")
    assert button.label == f"Show the charts of {second.name}"
    button.click().run()
    assert not test.exception
    assert test.query_params["family"] in (second.name, [second.name])
    assert test.query_params["recorded_on"] in ("NVIDIA H200", ["NVIDIA H200"])
    assert len(list(test.get("image"))) == layout(gallery(bench, family=second.name, device="NVIDIA H200")).charts


def test_a_link_says_op_device_and_direction_what_tells_equal_runs_apart_and_no_name_is_read_as_html(
    bench: RehearsedBench,
) -> None:
    hostile = '<b>x</b>"&'
    op = replace(bench.ops()["softmax"], name=hostile)
    one = recorded_runs(bench)[0]
    forward, sizes = (msgspec.structs.replace(one.recording, direction="forward", sizes=number) for number in (5, 7))
    backward = msgspec.structs.replace(one.recording, direction="backward")
    runs = tuple(
        RecordedRun(msgspec.structs.replace(one.run, id=f'{n}"><i>', op=hostile, device=f"NVIDIA {hostile}"), recording)
        for n, recording in enumerate((backward, forward, sizes))
    )
    family = Family(hostile, (GalleryOp(op, runs),))
    for html in (links.table(family), links.other_runs(Card(family.ops[0], runs[2], runs[:2]))):
        assert "<b>" not in html
        assert "<i>" not in html
        assert "(5 sizes)" in html
        names = re.findall(r'href="\?run=([^"]+)" aria-label="([^"]+)"', html)
        assert names[0][0] == "1%22%3E%3Ci%3E", "the forward pass first"
        assert unescape(names[0][1]).startswith(f"{hostile}, NVIDIA {hostile}: ")


def test_filters_are_in_the_address_and_a_wrong_one_is_reported(bench: RehearsedBench) -> None:
    test = opened(family="reduction", recorded_on="NVIDIA H200")
    assert test.selectbox(key="family").value == "reduction"
    assert "Softmax of each row" not in words(test)
    reductions = [
        one.op.name for family in gallery(bench, device="NVIDIA H200", family="reduction") for one in family.recorded
    ]
    assert [run for run in linked(test) if run.endswith("-row_sum")] == ["h200-row_sum"]
    assert len(reductions) > 1
    test.selectbox(key="of_op").select("argmax").run()
    assert not test.exception
    assert {run.removesuffix("-backward") for run in linked(test)} == {"h200-argmax"}
    assert test.query_params["of_op"] in ("argmax", ["argmax"])
    assert "showing reduction" in words(opened(family="reductions"))


def test_measure_this_here_starts_the_op_and_opens_its_run(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tuple(one for one in kernelviz.bench.gallery.recorded_runs(bench) if one.run.op != "relu")
    monkeypatch.setattr(kernelviz.bench.gallery, "recorded_runs", lambda bench: others)
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
    known, name = recordings.recordings(), "h200-softmax-backward"
    backward = msgspec.structs.replace(known[name], variants=3)
    monkeypatch.setattr(kernelviz.bench.gallery, "recordings", lambda: {**known, name: backward}, raising=True)
    test = opened(of_op="softmax")
    assert {link.label for link in test.get("page_link") if f"run={name}" in link.proto.query_string} == {
        "**softmax** backward · NVIDIA H200"
    }
    op = bench.ops()["softmax"]
    with_backward = [v for v in op.variants if "backward" in v.directions]
    assert f"3 variants ({len(with_backward) - 3} more of the op not in this run)" in words(test)
    assert first_of(bench, "softmax") == bench.history.summary("h200-softmax"), "the newest forward pass"
    test.button(key=f"measure_again_{name}").click().run()
    (started,) = test.query_params["run"] if isinstance(test.query_params["run"], list) else [test.query_params["run"]]
    assert {problem.direction for problem in bench.load(started).plan.problems} == {"backward"}
    shown = {one["run"]: one["direction"] for one in records(gallery(bench, op="softmax", device="NVIDIA H200"))}
    assert shown == {"h200-softmax": "forward", name: "backward"}
