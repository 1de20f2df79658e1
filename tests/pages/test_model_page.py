"""The page Model, run by AppTest, and `kernelviz model`: recorded, empty, measured, cancelled and wrong results."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
import sample_runs as samples
from open_page import charts, open_page
from rehearsed_bench import RehearsedBench
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench, model, model_report, model_runs
from kernelviz.bench.model_mix import traffic_mix
from kernelviz.cli.commands import invoke
from kernelviz.core import BadField, Method
from kernelviz.core.reasons import LowerPrecision
from kernelviz.core.result import Failure, Timing
from kernelviz.core.run import Run, Status
from kernelviz.core.workload import Measured, WorkloadCase, WorkloadGroup, WorkloadPlan, WorkloadResult, WorkloadRun
from kernelviz.hardware.toolchain import environment_of
from kernelviz.models.presets import preset_named
from kernelviz.workloads.catalog import workloads


def opened(**params: str) -> AppTest:
    return open_page(params, "model")


def said(test: AppTest) -> str:
    texts = (str(e.value) for kind in ("markdown", "caption", "info", "warning", "error") for e in getattr(test, kind))
    return "\n".join(texts).replace("\\", "")


def layer_of(bench: Bench, phase: str = "prefill", batch: int = 1, context: int = 64) -> model.Layer:
    preset, call = model.call_of("gpt-2", phase, batch, context, "bf16")
    return model.opened(bench, preset, call, model.source_named(bench, "cpu"))


def store(bench: Bench, layer: model.Layer, status: Status = "finished") -> None:
    """A run of each problem of the layer: torch.compile is right and twice as fast, but wrong for the activation."""
    for number, one in enumerate(model_runs.runs_of(layer)):
        plan = model_runs.plan_of(bench, one, "cpu")
        results = []
        for variant in plan.variants if status == "finished" else ():
            figure = samples.figure(1e-3 if variant == "torch_eager" else 0.5e-3, seed=number, clock_hz=None)
            timing = Timing(device_cold_s=figure, again_s=figure)
            wrong = one.problem.op == "gelu" and variant != "torch_eager"
            failure = Failure(stage="wrong", reasons=(LowerPrecision(precision="fp16"),), timing=timing)
            result = samples.timed(one.problem, variant, 1.0, device=samples.CPU)
            results.append(msgspec.structs.replace(result, outcome=failure if wrong else timing))
        run: Run = samples.run(
            results, id=f"model-{layer.call.phase}-{number}-{status}", op=one.problem.op, sizes=[one.problem.sizes],
            dtype="bf16", shares={}, device=samples.CPU, status=status, title=one.title,
        )  # fmt: skip
        method = Method() if status == "finished" else Method(budget_s=model_runs.BUDGET_S)
        bench.history.add(msgspec.structs.replace(run, plan=plan, method=method))


def store_truth(bench: Bench, layer: model.Layer, *, name: str = "eager") -> None:
    """The whole layer with one named and one unnamed group."""

    def measured(estimate: float) -> Measured:
        return Measured(estimate=estimate, low=0.99 * estimate, high=1.01 * estimate)

    case = WorkloadCase(workload=model.WORKLOAD, values=model.truth_values(layer.call), variant=name)
    values = {"layer_s": 10e-3, "groups_s": 9.5e-3, "rest_s": 0.5e-3, "rest_share": 0.05}
    groups = (
        WorkloadGroup(parts=("up",), kernels=("gemm_<i>",), time=measured(9e-3), kernels_s=(9e-3,), profiler_s=9.1e-3),
        WorkloadGroup(parts=(), kernels=("stray",), time=measured(0.5e-3), kernels_s=(0.5e-3,)),
    )
    result = WorkloadResult(case=case, values={k: measured(v) for k, v in values.items()}, groups=groups)
    bench.workloads.add(
        WorkloadRun(
            id="w-model",
            title="Layer",
            created_at="2026-11-27T10:00:00+00:00",
            environment=environment_of(samples.CPU, ()),
            devices=(samples.CPU,),
            declared=workloads()[model.WORKLOAD].workload,
            plan=WorkloadPlan(workload=model.WORKLOAD, cases=(case,), baseline=name, devices=("cpu",)),
            results=(result,),
        )
    )


def test_an_unknown_parameter_is_named() -> None:
    assert "In the address, 'foo' is ignored: this page knows results, model, " in said(opened(foo="1"))
    assert "is ignored" not in said(opened(batch="2", mix_batch="4", share="0"))


def test_without_a_gpu_the_page_opens_with_recorded_results(bench: Bench) -> None:
    test = opened()
    text = said(test)
    assert not test.exception
    most = "NVIDIA H200"
    assert f"recorded on {most}" in text
    assert "recorded on another machine" in text
    assert re.search(f"is of {most} .[0-9]+ results., so the page opens with it", text)
    address = "https://huggingface.co/meta-llama/Meta-Llama-3-8B"
    sizes = next(str(c.value) for c in test.caption if str(c.value).startswith("Sizes: "))
    assert sizes.endswith(f"]({address}) config.json"), "the address of the sizes is a link"
    assert "its parts within it 2.898 ms; the unexplained rest is" in text
    assert not [b for b in test.button if b.key == "measure_model"]
    assert test.query_params["results"] in (most, [most])
    text = said(opened(results="NVIDIA H100 80GB HBM3"))
    assert re.search(f"is of {most} .[0-9]+ results..", text)
    assert "Measured as one module, the layer takes 2.983 ms in torch eager and 2.708 ms with torch.compile" in text
    assert "Op by op, only 1 of the 13 parts" in text


def test_without_results_the_page_says_what_to_do(bench: Bench) -> None:
    test = opened(results="cpu", model="gpt-2", phase="decode", context="64", batch="3")
    assert not test.exception
    text = said(test)
    assert "GPT-2, decoding, 3 sequences of 64 tokens, bf16" in text
    assert text.count("No part has a time yet") == 1
    assert "The whole layer was not measured" in text
    assert not charts(test), "an empty chart has nothing to copy or save"
    assert "unknown" not in text
    assert not test.button(key="measure_model").disabled
    assert test.number_input(key="batch_decode").value == 3


def test_a_bad_address_is_named_and_loses_nothing(bench: Bench) -> None:
    text = said(opened(results="cpu", model="gpt-3", batch="many"))
    assert "'gpt-3' is not among" in text
    assert "batch 'many' is not from 1 to" in text
    test = opened(results="cpu", model="deepseek-v3-dense", phase="decode", batch="4096", context="163840")
    assert not test.exception
    assert "context 163840" in said(test)
    assert test.number_input(key="batch_decode").value == 4096
    # Another address in the open page, as of the browser's Back button.
    test.query_params.clear()
    test.query_params.update({"results": "cpu", "model": "gpt-2", "phase": "decode", "batch": "3", "share": "70"})
    assert not test.run().exception
    assert (test.selectbox(key="model").value, test.number_input(key="batch_decode").value) == ("gpt-2", 3)
    assert test.slider(key="model_share").value == 70


def test_stored_results_and_the_whole_layer_are_shown(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    layer = layer_of(bench)
    store(bench, layer)
    store(bench, layer_of(bench, "decode", 64, 1024))
    store_truth(bench, layer)
    test = opened(results="cpu", model="gpt-2", context="64", share="25")
    assert not test.exception
    text = said(test)
    assert "torch.compile is" in text
    assert "wrong: torch_compile" in str(list(test.dataframe[0].value["Note"]))
    assert "the unexplained rest is +5.0 %" in text
    assert "**1** kernels above 2 % of the layer belong to no part" in text
    assert "With 25 % of the tokens decoded" in text
    assert "gemm_<i>" in list(test.dataframe[2].value["Kernel"])
    assert len(charts(test)) == 2

    assert invoke(["model", "gpt-2", "--context", "64", "--device", "cpu", "--markdown", "--share", "0.25"]) == 0
    printed = capsys.readouterr().out
    assert "`gemm_<i>`" in printed
    assert "With 25 % of the tokens decoded" in printed
    assert invoke(["model", "gpt-2", "--context", "64", "--device", "cpu", "--json", "--share", "0.25"]) == 0
    record = json.loads(capsys.readouterr().out)
    (activation,) = (part for part in record["parts"] if part["part"] == "activation")
    assert activation["best"] == "torch_eager", "a wrong variant never wins"
    assert record["sums"][0]["missing"] == ["qkv_bias", "output_bias", "up_bias", "down_bias"]
    assert record["sums"][1]["missing"] == ["qkv_bias", "output_bias", "up_bias", "activation", "down_bias"]
    assert record["mix"]["parts"][1]["part"] == "attention"


def test_what_was_cancelled_is_resumed_and_recorded_results_are_not_measured(bench: Bench) -> None:
    layer = layer_of(bench)
    store(bench, layer, "cancelled")
    state = model_runs.progress(bench, layer)
    assert (state.runs_done, state.stopped) == (0, state.runs)
    assert "Resume measuring" in [b.label for b in opened(results="cpu", model="gpt-2", context="64").button]
    recorded = model.opened(bench, layer.preset, layer.call, model.source_named(bench, "NVIDIA H200"))
    for start in (model_runs.start_all, model_runs.start_truth):
        with pytest.raises(BadField, match="recorded elsewhere"):
            start(bench, recorded)


def test_every_document_opens_for_every_model(bench: Bench) -> None:
    source = model.source_named(bench, "cpu")
    for name in ("llama-3-8b", "deepseek-v3-dense"):
        preset = preset_named(name)
        mix = traffic_mix(bench, preset, "bf16", source, batch=2, context=64, prefill=128)
        for layer in (mix.prefill, mix.decode):
            assert preset.title in model_report.markdown(layer, mix)
            assert json.loads(model_report.as_json(layer))["model"] == name


def test_a_product_is_measured_by_what_a_user_would_get_in_either_phase_and_by_no_first_rung() -> None:
    bench = RehearsedBench((samples.H200,))
    for phase, sequences, context in (("prefill", 1, 4096), ("decode", 64, 8192)):
        preset, call = model.call_of("llama-3-8b", phase, sequences, context, "bf16")
        layer = model.opened(bench, preset, call, model.source_named(bench, "cuda:0"))
        planned = [set(model_runs.plan_of(bench, run, "cuda:0").variants) for run in model_runs.runs_of(layer)]
        products = [
            variants for variants in planned if "cuda_wgmma_by_size" in variants and "sdpa_cudnn" not in variants
        ]
        assert len(products) == 4
        for variants in products:
            assert {"torch_eager", "gluon_warp_specialised"} <= variants
            assert ("cuda_wgmma_skinny" in variants) is (phase == "decode"), "it takes 128 rows at most"
            assert "cuda_naive" not in variants
