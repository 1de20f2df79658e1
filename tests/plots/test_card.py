"""The card of a run: what is on it, that nothing leaves it, and the same in CLI and Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sample_runs as samples
from msgspec.structs import replace

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core import Run
from kernelviz.core.errors import UnknownName
from kernelviz.formats import shipped_runs
from kernelviz.metrics.insight import insight
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.plots.card import HEIGHT, WIDTH, card
from kernelviz.plots.frame import shorten
from kernelviz.store import Store
from kernelviz.text.insight import insight_sentence
from kernelviz.text.tiles import tiles

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{SVG}text"))


def words(svg: str) -> str:
    return " ".join("".join(e.itertext()) for e in texts(svg))


@pytest.mark.parametrize("name", shipped_runs.names())
def test_the_card_says_what_the_page_says(name: str) -> None:
    run = shipped_runs.load(name)
    table = rows(run, run.environment.roofs)
    svg = card(run, link="https://gpu.lab/?run=x&l2=cold")
    said = words(svg)
    for part in (
        insight_sentence(insight(table)),
        *(part for tile in tiles(summary(table), run.plan) for part in (tile.value, tile.basis)),
        f"{run.environment.device.name} · {run.created_at[:10]}",
        "https://gpu.lab/?run=x&l2=cold",
    ):
        # What is too wide for its tile is cut.
        assert str(part) in said or any(shorten(str(part), length) in said for length in range(12, len(str(part))))
    more = next((one.get("x") for one in texts(svg) if (one.text or "").startswith("and ")), None)
    legend = {one.text for one in texts(svg) if more is None or one.get("x") == more}
    unnamed = [name for name in run.plan.variants if name.replace("_", " ") not in legend]
    assert len(run.plan.variants) - len(unnamed) >= min(len(run.plan.variants), 10)
    assert not unnamed or f"and {len(unnamed)} more" in said
    assert ("dashed: measured roof" in said) == bool(run.environment.roofs)
    assert f"run {run.id}" in words(card(run))


def test_nothing_leaves_the_card_and_foreign_text_is_text() -> None:
    run = samples.mixed()
    long = "a_very_long_name_<b>of</b>_a_variant_&_more" * 3
    renamed = tuple(replace(r, variant=long) if r.variant == "torch_compile" else r for r in run.results)
    plan = replace(run.plan, variants=tuple(long if v == "torch_compile" else v for v in run.plan.variants))
    foreign = replace(run, results=renamed, plan=plan, id="<script>alert(1)</script>")
    for shown in (foreign, shipped_runs.load("h200-add")):
        svg = card(shown, link="https://x.example/?" + "q=1&" * 60, scheme="dark")
        assert "<script" not in svg
        for text in texts(svg):
            # The estimate by which the card wraps its text; a test in a browser would measure one font only.
            width = len("".join(text.itertext())) * float(text.get("font-size") or 0) * 0.56
            x = float(text.get("x") or 0)
            left = {"end": x - width, "middle": x - width / 2}.get(text.get("text-anchor") or "", x)
            assert left >= 0, "".join(text.itertext())
            assert left + width <= WIDTH, "".join(text.itertext())
            assert 0 < float(text.get("y") or 0) < HEIGHT


def test_a_run_without_a_correct_time_has_a_card_that_says_so() -> None:
    problems = samples.problems("rmsnorm", samples.RMSNORM_SWEEP)
    made = [samples.failed(p, "torch_eager", "crash") for p in problems]
    assert "No case has a correct time." in words(card(samples.run(made, shares={})))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_the_command_and_the_method_write_the_same_card(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "card.svg"
    arguments = ["runs", "card", "h200-softmax", "--variants", "triton_persistent", "--scheme", "dark"]
    assert main([*arguments, "--output", str(file)]) == 0
    assert main(arguments) == 0
    report = kv.load("h200-softmax")
    svg = report.card(tmp_path / "own.svg", variants=["triton_persistent"], scheme="dark")
    assert file.read_text() == svg == (tmp_path / "own.svg").read_text() == capsys.readouterr().out.rstrip("\n")
    assert "composite eager" not in words(svg)
    assert main(["runs", "card", "h200-softmax", "--scheme", "drak"]) == 2
    assert "dark" in capsys.readouterr().err
    with pytest.raises(UnknownName):
        report.card(l2="hot")


def test_the_roofs_of_the_card_are_those_of_the_page(bench: Bench) -> None:
    bare: Run = replace(samples.run(roofs=()), id="bare")
    assert "dashed" not in words(card(bare))
    assert "dashed" not in kv.Report.of(bare).card()
