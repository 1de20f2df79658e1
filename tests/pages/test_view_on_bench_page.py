"""What the Bench page's address keeps of the view: hidden variants, the open tab, a second run; and what it saves."""

from __future__ import annotations

import msgspec
import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench.snapshots import selected
from kernelviz.core.run import Run
from kernelviz.formats import decode, digest
from kernelviz.ui.shared import share

ELSEWHERE = msgspec.structs.replace(samples.H200, name="NVIDIA H200 NVL", uuid="GPU-elsewhere")
SIZES = tuple({"n": 2**e} for e in (12, 14, 16))


def foreign() -> Run:
    """A run of another machine, with its own roofs."""
    roofs = tuple(
        msgspec.structs.replace(r, bandwidth_bytes_per_s=2e12) if r.bandwidth_bytes_per_s else r
        for r in samples.H200_ROOFS
    )
    return samples.run(
        id="far", title="from afar", op="add", sizes=SIZES, dtype="fp32", device=ELSEWHERE, roofs=roofs,
        shares={"torch_eager": 0.5, "triton_block": 0.8, "cuda_vec16": 0.9},
    )  # fmt: skip


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> rehearsed.RehearsedBench:
    near = samples.run(
        id="near", title="here", op="add", sizes=SIZES, dtype="fp32",
        shares={"torch_eager": 0.6, "triton_block": 0.7, "cuda_vec16": 0.95},
    )  # fmt: skip
    made = rehearsed.RehearsedBench(
        (samples.H200, samples.CPU), roofs=samples.H200_ROOFS, stored=(foreign(), near, samples.run(id="other-op"))
    )
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def traces(test: AppTest, key: str = "by_size") -> list[str]:
    (chart,) = (c for c in charts(test) if key == c.key)
    return [t.get("name", "") for t in chart.figure["data"]]


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info")
    return "\n".join(str(e.value) for kind in kinds for e in getattr(test, kind))


@pytest.mark.usefixtures("bench")
def test_hidden_variants_leave_every_chart_and_stand_in_the_address() -> None:
    test = open_page({"run": "near"}, state={"shown_popover": True})
    assert "hide" not in test.query_params
    assert {"torch eager", "triton block", "cuda vec16"} <= set(traces(test))
    test.button_group(key="shown").set_value(["cuda_vec16"]).run()
    assert test.query_params["hide"] == "triton_block"
    assert "triton block" not in set(traces(test))
    assert "triton block" not in set(traces(test, "bars"))
    assert "triton block" not in set(traces(test, "roofline"))
    again = open_page(dict(test.query_params), state={"shown_popover": True})
    assert traces(again) == traces(test)
    assert again.button_group(key="shown").value == ["cuda_vec16"]


@pytest.mark.usefixtures("bench")
def test_what_cannot_be_hidden_is_named() -> None:
    test = open_page({"run": "near", "hide": "torch_eager,no_such"})
    assert "hide: torch\\_eager, no\\_such cannot be hidden" in words(test)
    assert "hide" not in test.query_params
    assert {"torch eager", "triton block", "cuda vec16"} <= set(traces(test))


@pytest.mark.usefixtures("bench")
def test_the_open_tab_stands_in_the_address() -> None:
    test = open_page({"run": "near", "tab": "kernels"})
    assert test.session_state["tables"] == "Kernels"
    assert test.query_params["tab"] == "kernels"
    wrong = open_page({"run": "near", "tab": "kernel"})
    assert wrong.session_state["tables"] == "Kernels", "the nearest one"
    assert "tab" not in open_page({"run": "near"}).query_params


@pytest.mark.usefixtures("bench")
def test_two_runs_are_drawn_each_against_its_own_roofs() -> None:
    test = open_page({"run": "near", "with": "far"})
    assert test.query_params["with"] == "far"
    names = traces(test)
    for device in ("NVIDIA H200", "NVIDIA H200 NVL"):
        assert f"torch eager · {device}" in names
        assert any(n.startswith("measured roof") and n.endswith(f" · {device}") for n in names)
    assert len([n for n in traces(test, "bars") if "H200 NVL" in n]) == 3
    assert "**NVIDIA H200** (solid) and **NVIDIA H200 NVL** (dotted)" in words(test)
    near, far = (d.value for d in test.dataframe)
    assert len(near) == len(far) == 9
    assert list(near["Share of roof, %"]) != list(far["Share of roof, %"])
    test.button(key="show_one").click().run()
    assert "with" not in test.query_params
    assert not any("NVL" in n for n in traces(test))


@pytest.mark.usefixtures("bench")
def test_a_second_run_that_cannot_be_drawn_is_said() -> None:
    assert "Run gone is not on this server" in words(open_page({"run": "near", "with": "gone"}))
    assert "is a run of another op" in words(open_page({"run": "near", "with": "other-op"}))


def test_a_run_of_another_machine_is_measured_here_and_both_are_shown(bench: rehearsed.RehearsedBench) -> None:
    test = open_page({"run": "far"})
    assert "measured on another machine" in words(test)
    test.button(key="run_here").click().run()
    assert not test.exception
    made = test.query_params["run"]
    assert made != "far"
    assert test.query_params["with"] == "far"
    new, old = bench.load(made), foreign()
    assert new.plan.problems == old.plan.problems
    assert new.plan.variants == old.plan.variants
    assert new.method == old.method
    assert new.environment.device.uuid == samples.H200.uuid
    here = open_page({"run": "near"})
    assert not [b for b in here.button if b.key == "run_here"], "it was measured here"


@pytest.mark.usefixtures("bench")
def test_the_share_button_saves_what_is_shown() -> None:
    test = open_page({"run": "near", "hide": "triton_block", "l2": "cold"}, state={"share_popover": True})
    assert "torch eager, cuda vec16" in words(test)
    assert "6 of 9 cases" in words(test)
    test.multiselect(key="save_sizes").set_value(["add fp32 n=4096"]).run()
    assert "2 of 9 cases" in words(test)
    near = kernelviz.bench.current().load("near")
    part = selected(near, variants=("torch_eager", "cuda_vec16"), problems=["add fp32 n=4096"])
    assert digest(part) in words(test)
    test.text_input(key="save_title_near").set_value("for you")
    test.selectbox(key="save_format").set_value("json")
    test.button(key="save_selection").click().run()
    (given,) = test.get("download_button")
    assert given.proto.label.startswith(f"kernelviz-{part.id}.json · ")
    saved = decode(test.session_state["save_selection_saving"].data)
    assert (saved.title, digest(saved)) == ("for you", digest(part))


def test_the_query_of_a_view_has_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share.st, "query_params", {"run": "r", "op": "add", "l2": "warm", "hide": "x"})
    assert share.view_parameters(("l2", "hide", "tab")) == {"l2": "warm", "hide": "x"}
