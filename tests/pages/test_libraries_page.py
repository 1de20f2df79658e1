"""The page Libraries, run by AppTest from the real entry script over a real store and the recorded runs."""

from __future__ import annotations

import pytest
import sample_runs as samples
from open_page import open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.bench.library_comparison import key_of, library_comparison
from kernelviz.ops.catalog.choice import rule_of


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> RehearsedBench:
    made = RehearsedBench((samples.CPU,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def opened(**params: str) -> AppTest:
    return open_page(params, "libraries")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "info", "error") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def test_the_page_lists_every_recorded_problem_the_misses_first(bench: RehearsedBench) -> None:
    test = opened()
    every = library_comparison(bench)
    (shown,) = test.dataframe
    assert len(shown.value) == len(every)
    ratios = list(shown.value["Own / library"].dropna())
    assert ratios == sorted(ratios)
    assert {"Auto", "Auto / own", "Auto / library", "Best own", "Best library", "Every library", "Card"} <= set(
        shown.value
    )
    said = words(test)
    assert f"{sum(row.ratio is not None for row in every)} problems: own variants are " in said
    assert "Auto: within 3 % of the best own variant" in said
    assert f"{len(every)} problems recorded with kernelviz, 0 measured or imported here" in said


def test_card_family_op_and_problem_are_in_the_address(bench: RehearsedBench) -> None:
    card = "NVIDIA H100 80GB HBM3"
    row = library_comparison(bench, card=card, op="softmax")[0]
    test = opened(card=card, family="normalisation", op="softmax", problem=key_of(row))
    (shown,) = test.dataframe
    assert len(shown.value) == len(library_comparison(bench, card=card, op="softmax"))
    assert "Card" not in shown.value
    assert test.selectbox(key="of_op").value == "softmax"
    said = words(test)
    assert f"Rule of softmax: {rule_of(bench.ops()['softmax'])}" in said
    assert all(result.variant.replace("_", " ") in said.replace("_", " ") for result in row.libraries)
    links = [link.proto.query_string for link in test.get("page_link")]
    assert f"run={row.run_id}" in links
    test.selectbox(key="of_op").set_value("rmsnorm").run()
    assert not test.exception
    assert test.query_params["of_op"] == "rmsnorm"
    assert "Rule of" not in words(test)


def test_a_wrong_value_and_an_unknown_parameter_are_named(bench: RehearsedBench) -> None:
    said = words(opened(card="NVIDIA H300", colour="red"))
    assert "'NVIDIA H300' is not among" in said
    assert "'colour' is ignored" in said
    assert "op 'unknown' is not among the values that this page knows: showing all" in words(opened(op="unknown"))


def test_without_any_run_of_a_gpu_the_page_says_what_to_do(
    bench: RehearsedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(bench.history), "shipped", lambda self, search="": ())
    test = opened()
    assert "Measure one on the page Bench" in words(test)
    assert not test.dataframe
