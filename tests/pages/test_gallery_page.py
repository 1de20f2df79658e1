"""The Gallery page, run by AppTest from the real entry script over a real store and the recorded runs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench.gallery import first_of, gallery, recorded_runs, records
from kernelviz.formats import recordings, shipped_runs
from kernelviz.text.insight import insight_sentence

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
    return [run for run in links if run]


def test_every_recorded_run_has_a_picture_a_sentence_and_a_link_and_every_other_op_a_button(
    bench: RehearsedBench,
) -> None:
    test = opened()
    assert sorted(linked(test)) == sorted(shipped_runs.names())
    images = list(test.get("image"))
    assert len(images) == len(shipped_runs.names())
    said = words(test)
    assert all(said.count(str(insight_sentence(one.recording.insight))) >= 1 for one in recorded_runs(bench))
    missing = [one.op for family in gallery(bench) for one in family.missing]
    assert len(missing) > 30
    for op in missing:
        assert f"**{op.name}** {op.summary}" in said
        assert test.button(key=f"measure_{op.name}").label == "Measure this here"


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
    test = opened(op="softmax")
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
