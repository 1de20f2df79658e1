"""The Method page, run by AppTest from the real entry script over a bench that plays a selftest."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples
from open_page import charts, open_page
from sample_figures import SelftestedBench
from streamlit.testing.v1 import AppTest

import kernelviz
import kernelviz.bench
from kernelviz.core.cheats import CHEATS
from kernelviz.core.selftest import Selftest
from kernelviz.formats import shipped_runs
from kernelviz.metrics.quality import LEVELS, quality
from kernelviz.text import method
from kernelviz.text.cheats import EXPLANATIONS, NAMES
from kernelviz.text.quality import describe_part, describe_quality, format_level
from kernelviz.text.times import FIGURES

Open = Callable[..., AppTest]


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Open:
    def opened(bench: SelftestedBench, **params: str) -> AppTest:
        monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
        return open_page(params, "method")

    return opened


@pytest.fixture
def none_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped_runs, "selftests", lambda: ())


def bench_with(kept: Selftest | None = None) -> SelftestedBench:
    made = SelftestedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS, stored=(figures.run(),))
    made.kept = kept
    return made


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "").replace("\u00a0", " ")


def test_every_section_is_there_and_linked(page: Open) -> None:
    said = words(page(bench_with(figures.selftest())))
    sections = (
        "Device cold",
        "Selftest",
        "Timings of a case",
        "Verdicts",
        "Measurement quality",
        "Roofs",
        "Rejected results",
    )
    for name in sections:
        assert f"##### {name}" in said
        assert f"[{name}](#{name.lower().replace(' ', '-')})" in said
    assert all(f"**{f.name}** {f.question}" in said for f in FIGURES)
    assert all(f"**{NAMES[cheat]}**: {EXPLANATIONS[cheat]}" in said for cheat in CHEATS)
    assert all(f"**{format_level(level)}**" in said for level in LEVELS)


def test_the_picture_is_that_of_the_last_selftest(page: Open) -> None:
    test = page(bench_with(figures.selftest()))
    assert len(charts(test)) == 1
    assert "add fp32 n=2^20, torch_eager, NVIDIA H200" in words(test)


def test_a_shipped_picture_says_whose_it_is(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped_runs, "selftests", lambda: (figures.selftest(id="selftest-h200"),))
    test = page(bench_with(figures.selftest(pictured=False)))
    assert len(charts(test)) == 1
    assert "This recording comes with kernelviz" in words(test)
    on_cpu = page(bench_with(), on="cpu")
    assert "On a GPU, the device itself records" in words(on_cpu)
    (found,) = (e for e in on_cpu.expander if "Results from another machine, NVIDIA H200" in e.label)
    assert "cheat\\_stale" in "".join(m.value for m in found.markdown)
    assert not [e for e in test.expander if "Results from another machine" in e.label], "its own results stand first"


@pytest.mark.usefixtures("none_shipped")
def test_without_a_picture_nothing_is_drawn_and_the_reason_is_said(page: Open) -> None:
    test = page(bench_with())
    assert not charts(test)
    assert method.NOT_PICTURED["cuda"] in words(test)
    on_cpu = page(bench_with(), on="cpu")
    assert method.NOT_PICTURED["cpu"] in words(on_cpu)
    assert "The selftest did not run on AMD EPYC 9654 yet" in words(on_cpu)


def test_the_last_selftest_is_a_table_with_its_date_device_and_software(page: Open) -> None:
    said = words(page(bench_with(figures.selftest())))
    assert "**:red[✕ 1 failed]**, 1 passed, 1 not possible here" in said
    assert "NVIDIA H200 · " in said
    assert "driver 580.159 · kernelviz 0.1.0 · Python 3.12.3 · torch 2.13.0 · triton 3.7.1" in said
    rows = [line for line in said.splitlines() if line.startswith("| :")]
    assert [row.split("]")[0] for row in rows] == [
        "| :red[✕ failed",
        "| :green[✓ passed",
        "| :gray[– not possible here",
    ]
    assert "| 1.050 µs | at most 1.500 µs |" in rows[1]
    assert "| 0 | at least 1 |" in rows[0]
    assert "ncu is not on the PATH" in rows[2]
    assert said.count("**it was taken for right <b>**") == 1


def test_words_of_a_check_are_not_markup(page: Open) -> None:
    test = page(bench_with(figures.selftest()))
    table = next(m.value for m in test.markdown if "cheat\\_stale" in m.value)
    assert r"\<b\>" in table


def test_the_figures_behind_the_checks_can_be_read(page: Open) -> None:
    frame = page(bench_with(figures.selftest())).dataframe[0].value
    assert list(frame["value"]) == ["1.050 µs", "1.020 µs"]


def test_a_selftest_is_started_followed_and_kept(page: Open) -> None:
    bench = bench_with()
    test = page(bench)
    test.button(key="run_selftest").click().run()
    assert not test.exception
    assert test.query_params["selftest"] == "selftest-new"
    assert test.button(key="run_selftest").disabled
    assert "Running the selftest on NVIDIA H200: 0 checks done" in words(test)
    bench.tell_check(figures.CHECKS[0])
    test.run()
    assert "Results so far" in words(test)
    assert "empty_kernel" in words(test)
    bench.end()
    test.run()
    assert not test.button(key="run_selftest").disabled
    assert "**:green[✓ 1 passed]**, none failed" in words(test)


def test_one_that_goes_on_is_found_again_by_its_address_and_can_be_cancelled(page: Open) -> None:
    bench = bench_with(figures.selftest())
    name = bench.selftest("cuda:0")
    test = page(bench, selftest=name)
    assert test.button(key="run_selftest").disabled
    test.button(key="cancel_selftest").click().run()
    test.run()
    assert "was cancelled, and its results were not stored" in words(test)
    assert "1 failed" in words(test), "the last whole one is still shown"


def test_one_that_broke_off_says_so(page: Open) -> None:
    bench = bench_with()
    name = bench.selftest("cuda:0")
    bench.end("interrupted", "the worker died: SIGABRT <b>")
    assert "The selftest failed: the worker died: SIGABRT <b>" in words(page(bench, selftest=name))


def test_an_address_of_a_selftest_that_is_not_here_shows_the_last(page: Open) -> None:
    test = page(bench_with(figures.selftest()), selftest="selftest-gone")
    assert "1 failed" in words(test)
    assert not test.button(key="run_selftest").disabled


def test_a_device_that_cannot_be_used_is_not_tested(page: Open) -> None:
    broken = msgspec.structs.replace(samples.H200, usable=False, reason="the driver is too old; update it")
    bench = SelftestedBench((broken,))
    test = page(bench)
    assert test.button(key="run_selftest").disabled
    assert "the driver is too old" in words(test)


def test_every_part_of_the_line_is_explained_beside_a_real_one(page: Open) -> None:
    test = page(bench_with())
    said = words(test)
    found = quality(figures.run().results[0], clock="burst")
    assert found is not None
    assert str(describe_quality(found)) in said
    assert all(f"| **{p.name}** | {describe_part(p)} |" in said for p in found.parts)
    assert [p.name for p in found.parts] == [
        n for n in method.PARTS if n not in ("stability", "configuration", "notes")
    ]
    assert set(method.LEVEL_RULES) == set(LEVELS)
