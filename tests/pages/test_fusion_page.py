"""The page Fusion, run by AppTest from the real entry script over a real store and the shipped runs."""

from __future__ import annotations

import msgspec
import pytest
import sample_fusions as plant
import sample_runs as samples
from open_page import charts, open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.bench import fusion as use_case
from kernelviz.core import Problem
from kernelviz.store import Store
from kernelviz.text.fusion import FAMILIES


def opened(**params: str) -> AppTest:
    return open_page(params, "fusion")


def words(test: AppTest) -> str:
    said = (str(e.value) for kind in ("markdown", "caption", "warning", "error", "info") for e in getattr(test, kind))
    return "\n".join(said).replace("\\", "")


def param(test: AppTest, name: str) -> str | None:
    found = test.query_params.get(name)
    return found[0] if isinstance(found, list) else found


def without_run_of(monkeypatch: pytest.MonkeyPatch, op_name: str) -> None:
    """Offer no run of this op. Each op that declares a fusion has a recorded run."""
    offered = use_case.offered
    monkeypatch.setattr(use_case, "offered", lambda bench, op: () if op == op_name else offered(bench, op))


def sweep() -> object:
    """A stored run over a sweep in which fusing pays from m = 1,024 on."""
    results = []
    sizes = [{"m": m, "n": 8192} for m in (256, 1024, 16384)]
    for size in sizes:
        problem = Problem(op="reshape_elementwise", sizes=size, dtype="bf16")
        moved_s = 4 * size["m"] * size["n"] / plant.BANDWIDTH
        fused_s = moved_s + 1e-6 if size["m"] > 256 else 3 * moved_s + 4e-6
        results += [
            plant.result(problem, "cuda_stepwise", 2 * moved_s + 2e-6, kernels=2),
            plant.result(problem, "contiguous_then_op", 7 * moved_s + 2e-6, kernels=2),
            plant.result(problem, "triton_fused", fused_s),
        ]
    return plant.run("reshape_elementwise", results, sizes)


def test_the_first_visit_shows_a_recorded_run_and_a_card_for_each_family(bench: Bench) -> None:
    test = opened()
    said = words(test)
    for title in FAMILIES.values():
        assert f"**{title}**" in said
    assert "NVIDIA H200" in said
    recorded = [run for family in use_case.FAMILIES if (run := use_case.newest_of(bench, family)) is not None]
    assert param(test, "of_run") == recorded[0].id
    assert len(charts(test)) == 1


def test_a_run_without_roofs_says_whose_roofs_are_used(bench: Bench) -> None:
    assert "This run has no measured roofs, so those of the run" in words(opened(of_run="h200-linear_gelu-code"))


def test_an_own_run_has_a_sentence_a_chart_both_predictions_and_where_it_pays(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = opened(fusion_family="reshape_elementwise")
    said = words(test)
    assert "Fusing transposition → relu at m = 16,384, n = 8,192 saves 537 MB and 1 launch: 2.0" in said
    assert "Fusing pays from m = 1,024 on, and stops paying at m = 256 and below." in said
    assert "Over contiguous then op the fused variant is" in said
    assert "Better kernels alone bring" in said
    assert "| 537 MB | 0 | 268 MB |" in said, "moved bytes and tensors have the same kind of unit"
    assert "MiB" not in said.split("| Step |")[1].split("**Measured**")[0]
    (chart,) = charts(test)
    assert [trace["name"].split(":")[0] for trace in chart.figure["data"]] == [
        "prediction A",
        "prediction B",
        "measured",
    ]
    assert len(test.dataframe[0].value) == 3
    test.segmented_control(key="compositions").set_value("all").run()
    assert len(test.dataframe[0].value) == 6
    assert param(test, "compositions") == "all"


def test_the_address_opens_the_same_case_again(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    key = "reshape_elementwise bf16 m=256 n=8192"
    test = opened(fusion_family="reshape_elementwise", of_run="fusion-reshape_elementwise", fusion_case=key)
    said = words(test)
    assert test.selectbox(key="fusion_case").value == key
    assert "verdict slower" in said
    assert "saves 8.39 MB and 1 launch, but takes 1." in said
    assert "cache-resident" in said
    again = opened(**{name: param(test, name) or "" for name in test.query_params})
    assert again.selectbox(key="fusion_case").value == key
    assert words(again) == said


def test_the_chart_is_drawn_through_the_selected_sizes_or_says_that_it_is_not(bench: Bench) -> None:
    sizes = [*({"m": m, "n": 8192, "k": 64} for m in (256, 512)), *({"m": 8192, "n": 8192, "k": k} for k in (128, 256))]
    bench.history.add(plant.run("linear_gelu", {"torch_eager": 2e-3, "triton_fused": 1e-3}, sizes))
    along_k, along_m = "linear_gelu bf16 m=8192 n=8192 k=128", "linear_gelu bf16 m=256 n=8192 k=64"
    test = opened(of_run="fusion-linear_gelu", fusion_case=along_k)
    assert test.segmented_control(key="along").value == "k", "the axis with a sweep through these sizes"
    assert "Speed-up along k at m = 8,192, n = 8,192\n" in words(test)
    test.selectbox(key="fusion_case").set_value(along_m).run()
    assert test.segmented_control(key="along").value == "m"
    assert "Speed-up along m at n = 8,192, k = 64\n" in words(test)
    test.segmented_control(key="along").set_value("k").run()
    no_sweep = "This run has no sweep along k through the selected sizes, m = 256, n = 8,192, k = 64"
    assert f"Speed-up along k at m = 8,192, n = 8,192. {no_sweep}" in words(test)
    again = opened(**{name: param(test, name) or "" for name in test.query_params})
    assert words(again) == words(test)


def test_show_on_a_card_changes_the_family_and_its_address(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = opened(fusion_family="reshape_elementwise")
    test.button(key="show_linear_activation").click().run()
    assert test.selectbox(key="fusion_family").value == "linear_activation"
    recorded = use_case.newest_of(bench, "linear_activation")
    assert recorded is not None
    assert param(test, "of_run") == recorded.id
    test.button(key="show_reshape_elementwise").click().run()
    assert param(test, "of_run") == "fusion-reshape_elementwise"


def test_another_family_in_the_box_shows_its_run_without_an_error(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_run_of(monkeypatch, "batchnorm_relu")
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = opened()
    test.selectbox(key="fusion_family").set_value("linear_activation").run()
    recorded = use_case.newest_of(bench, "linear_activation")
    assert recorded is not None
    assert param(test, "of_run") == recorded.id
    test.selectbox(key="fusion_family").set_value("reshape_elementwise").run()
    assert (param(test, "of_run"), param(test, "fusion_op")) == ("fusion-reshape_elementwise", "reshape_elementwise")
    test.selectbox(key="fusion_family").set_value("linear_activation").run()
    test.selectbox(key="fusion_op").set_value("linear_silu").run()
    assert param(test, "of_run") == "h200-linear_silu"
    test.selectbox(key="fusion_family").set_value("norm_activation").run()
    test.selectbox(key="fusion_op").set_value("batchnorm_relu").run()
    assert param(test, "of_run") is None
    assert not test.error


def test_a_run_of_a_backward_pass_is_not_offered_and_named_in_the_address(bench: Bench) -> None:
    offered = [run.id for run in use_case.offered(bench, "linear_relu")]
    assert "h200-linear_relu" in offered
    assert "h200-linear_relu-backward" not in offered
    test = opened(of_run="h200-linear_relu-backward", fusion_op="linear_relu")
    assert "or it lacks a fused variant, a composition or a forward pass" in words(test)
    assert not charts(test)


def test_ordinary_clicks_leave_nothing_in_the_address_that_the_page_complains_about(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = opened(fusion_family="reshape_elementwise")
    test.selectbox(key="fusion_case").set_value("reshape_elementwise bf16 m=256 n=8192").run()
    assert param(test, "fusion_case") == "reshape_elementwise bf16 m=256 n=8192"
    test.selectbox(key="fusion_family").set_value("linear_activation").run()
    test.selectbox(key="fusion_op").set_value("linear_silu").run()
    assert param(test, "fusion_case") is None
    test.button(key="show_pointwise").click().run()
    assert "In the address" not in words(test)
    assert test.selectbox(key="fusion_family").value == "pointwise"


def test_an_op_alone_in_the_address_opens_its_family_and_what_is_unknown_is_named(bench: Bench) -> None:
    for name in ("op", "fusion_op"):
        test = opened(**{name: "linear_silu"})
        assert (test.selectbox(key="fusion_family").value, test.selectbox(key="fusion_op").value) == (
            "linear_activation",
            "linear_silu",
        )
        assert "In the address" not in words(test.run())
        assert test.selectbox(key="fusion_op").value == "linear_silu"
    assert "In the address, 'familie' is ignored: this page knows fusion_family, fusion_op" in words(
        opened(familie="x")
    )
    assert "In the address, family 'x' is not among" in words(opened(family="x"))
    assert "No run **nonsense** of " in words(opened(run="nonsense"))
    assert param(opened(run="h200-linear_gelu"), "of_run") == "h200-linear_gelu"


def test_a_run_alone_in_the_address_is_enough(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = opened(of_run="fusion-reshape_elementwise")
    assert test.selectbox(key="fusion_family").value == "reshape_elementwise"
    other = opened(of_run="h200-linear_gelu")
    assert other.selectbox(key="fusion_family").value == "linear_activation"
    assert other.selectbox(key="fusion_op").value == "linear_gelu"


def test_the_page_opens_with_the_run_in_hand(bench: Bench) -> None:
    bench.history.add(sweep())  # type: ignore[arg-type]
    test = open_page({}, "fusion", state={"run_in_hand": "h200-linear_gelu"})
    assert param(test, "of_run") == "h200-linear_gelu"


def test_a_run_that_is_not_here_is_named_at_the_top_and_no_other_is_shown_until_it_is_chosen(bench: Bench) -> None:
    test = opened(of_run="no-such-run")
    assert "No run **no-such-run** of " in words(test)
    order = [element.type for element in test.main]
    assert order.index("error") < order.index("selectbox")
    assert not charts(test)
    assert not test.dataframe
    assert param(test, "of_run") == "no-such-run"
    other = test.selectbox(key="fusion_run_instead")
    assert other.value is None
    other.select_index(0).run()
    assert not test.error
    assert len(charts(test)) == 1
    op = str(test.selectbox(key="fusion_op").value)
    assert param(test, "of_run") == test.selectbox(key=f"fusion_run_{op}").value == use_case.offered(bench, op)[0].id


def test_what_cannot_run_here_says_so_and_offers_no_button(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without_run_of(monkeypatch, "linear_silu")
    test = opened(fusion_family="linear_activation", fusion_op="linear_silu")
    said = words(test)
    assert "linear_silu cannot be measured on AMD EPYC 9654" in said
    assert "cuda_wgmma_fused" in said
    assert not [b for b in test.button if b.key == "measure_fusion"]
    recorded = use_case.newest_of(bench, "linear_activation")
    assert recorded is not None
    assert f"Of the same family, {recorded.op} was measured on NVIDIA H200." in said
    assert "**Linear + activation** :gray[· shown below]" not in said, "its card is about another op"
    test.button(key="show_near").click().run()
    assert param(test, "of_run") == recorded.id
    assert "**Linear + activation** :gray[· shown below]" in words(test)


def test_an_op_without_a_run_offers_to_measure_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without_run_of(monkeypatch, "pointwise_chain_scalar")
    test = opened(fusion_family="pointwise", fusion_op="pointwise_chain_scalar")
    assert "No run shows the fusion of pointwise_chain_scalar yet" in words(test)
    assert [b.label for b in test.button if b.key == "measure_fusion"] == ["Measure on AMD EPYC 9654"]


def test_a_run_without_a_correct_time_says_so(bench: Bench) -> None:
    made = sweep()
    problems = made.plan.problems  # type: ignore[attr-defined]
    failures = tuple(samples.failed(p, v, "crash") for p in problems for v in ("cuda_stepwise", "triton_fused"))
    bench.history.add(msgspec.structs.replace(made, id="failed", results=failures))  # type: ignore[type-var]
    test = opened(fusion_family="reshape_elementwise", of_run="failed")
    assert "No composition of this run has a correct time yet" in words(test)


def test_the_button_measures_and_the_page_shows_the_new_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, str]] = []

    def start(_bench: Bench, op: str, device: str, *, owner: str = "") -> str:
        started.append((op, device))
        return bench.history.add(sweep())  # type: ignore[arg-type]

    monkeypatch.setattr(use_case, "start", start)
    test = opened(fusion_family="reshape_elementwise")
    test.button(key="measure_fusion").click().run()
    assert started == [("reshape_elementwise", "cpu")]
    assert param(test, "of_run") == "fusion-reshape_elementwise"
    assert "Fusing pays from m = 1,024 on" in words(test)


def test_an_interrupted_run_can_be_resumed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Bench(Store.open(tmp_path_factory.mktemp("store")), (samples.CPU,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    made.history.add(msgspec.structs.replace(sweep(), status="interrupted"))  # type: ignore[type-var]
    test = opened(fusion_family="reshape_elementwise")
    assert "This measurement was interrupted: 9 of 9 cases have a result." in words(test)
    assert [b.label for b in test.button if b.key == "resume_fusion"] == ["Resume"]
    # Cancelled before its first result: it is shown as cancelled, and a new visit shows the run that has results.
    empty = msgspec.structs.replace(sweep(), id="empty", status="cancelled", results=())  # type: ignore[type-var]
    made.history.add(empty)
    test = opened(fusion_family="reshape_elementwise", of_run="empty")
    assert not test.error
    assert "This measurement was cancelled: 0 of 9 cases have a result." in words(test)
    assert [b.label for b in test.button if b.key == "resume_fusion"] == ["Resume"]
    assert param(opened(fusion_family="reshape_elementwise"), "of_run") == "fusion-reshape_elementwise"
    made.close()
