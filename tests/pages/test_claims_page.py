"""The page Claims, run by AppTest from the real entry script: recorded results, an empty machine, measured and cancelled runs."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples
from open_page import open_page
from streamlit.testing.v1 import AppTest

from kernelviz.bench import Bench, claim_runs
from kernelviz.bench import claims as on_device
from kernelviz.core.problem import Method
from kernelviz.core.reasons import LowerPrecision
from kernelviz.core.result import Failure, Result, Timing
from kernelviz.core.run import Run, Status
from kernelviz.formats.claim_files import shipped_claims


def opened(**params: str) -> AppTest:
    return open_page(params, "claims")


def said(test: AppTest) -> str:
    texts = (str(e.value) for kind in ("markdown", "caption", "info", "warning", "error") for e in getattr(test, kind))
    return "\n".join(texts).replace("\\", "")


def listed(test: AppTest) -> list[str]:
    return list(test.dataframe[0].value["Claim"])


def stored(bench: Bench, status: Status = "finished") -> Run:
    """A run of the claims about `scale` on this processor: torch is right, and the extension is wrong at twice its speed."""
    (one,) = (
        run for run in claim_runs.claim_runs(bench, on_device.claims_on(bench, "cpu")) if run.problem.op == "scale"
    )
    results: list[Result] = []
    for variant, time_s in (("torch_eager", 1e-3), ("cpp_extension", 0.5e-3)):
        figure = samples.figure(time_s, seed=len(variant), clock_hz=None)
        timing = Timing(device_cold_s=figure, again_s=figure, loop_s=figure)
        failure = Failure(stage="wrong", reasons=(LowerPrecision(precision="fp16"),), timing=timing)
        of_variant = samples.timed(one.problem, variant, 1.0, device=samples.CPU)
        outcome = failure if variant == "cpp_extension" else timing
        results.append(msgspec.structs.replace(of_variant, outcome=outcome))
    if status != "finished":
        results = []
    run = samples.run(
        results, id=f"scale-{status}", op="scale", sizes=[one.problem.sizes], dtype="fp32", shares={}, device=samples.CPU,
        status=status, title=one.title,
    )  # fmt: skip
    plan = claim_runs.plan_of(bench, one, "cpu")
    method = msgspec.structs.replace(one.method) if status != "finished" else Method()
    bench.history.add(msgspec.structs.replace(run, plan=plan, method=method))
    return run


def test_without_a_gpu_the_page_opens_with_recorded_results(bench: Bench) -> None:
    test = opened()
    text = said(test)
    assert "NVIDIA H200" in text
    assert "recorded on another machine" in text
    assert test.query_params["results"] in ("h200", ["h200"]), "the address opens the same page elsewhere"
    assert len(listed(test)) == len(shipped_claims().claims)
    assert not [b for b in test.button if b.key == "measure_claims"]
    for contradiction in shipped_claims().contradictions:
        assert contradiction.sentence in text


def test_a_claim_is_described_with_its_source_its_test_and_its_run(bench: Bench) -> None:
    test = opened(results="h200", claim="fp32-column")
    text = said(test)
    assert "does not hold" in text
    assert "cuda_register_column" in text
    assert "Simon Boehm" in text
    assert "kernelviz claims run" in test.code[0].value
    assert [
        link.proto.query_string.partition("run=")[2]
        for link in test.get("page_link")
        if "run=" in link.proto.query_string
    ] == ["claims-matmul-fp32-m-2-12-n-2-12-k-2-12-237a8c"]
    assert test.code[0].value == "kernelviz claims run fp32-column"
    none = opened(results="h200", claim="table-forward-cuda")
    assert "eight GPUs" in said(none)
    assert not none.code, "nothing measures it"


def test_filters_are_in_the_address_and_a_wrong_one_is_reported(bench: Bench) -> None:
    test = opened(results="h200", source="siboehm", verdict="does not hold")
    assert set(listed(test)) == {"fp32-column", "fp32-tile", "fp32-warps"}
    test.selectbox(key="verdict").select("wrong result").run()
    assert not test.exception
    assert "No claim has all of these properties" in said(test)
    assert "showing siboehm" in said(opened(results="h200", source="siboem"))
    assert "showing h200" in said(opened(results="h20"))
    assert "In the address, op 'z' is not among the values that this page knows" in said(opened(op="z"))
    assert len(listed(opened(op="scale"))) < len(shipped_claims().claims)
    assert "In the address, 'clam' is ignored" in said(opened(clam="x"))


def test_a_machine_on_which_nothing_was_measured_says_what_to_do(bench: Bench) -> None:
    test = opened(results="cpu")
    assert "nothing is measured yet" in said(test)
    assert test.button(key="measure_claims").label == "Measure all that can be tested here"
    assert "6 of 6 runs are to be measured" in said(test)


def test_a_wrong_result_shows_its_ratio_and_that_it_is_wrong(bench: Bench) -> None:
    run = stored(bench)
    test = opened(results="cpu", claim="scale-cpu-gain")
    text = said(test)
    assert "wrong result" in text
    assert "By its time it is 2.0" in text or "By its time it is 1.99" in text
    assert "the result of cpp_extension is wrong" in text
    assert "fp16" in text
    assert run.id in [link.proto.query_string.partition("run=")[2] for link in test.get("page_link")]
    row = test.dataframe[0].value.set_index("Claim").loc["scale-cpu-gain"]
    assert row["Verdict"] == "⚠ wrong result"
    assert "(wrong)" in row["Result"]
    assert "5 of 6 runs are to be measured" in text
    assert test.button(key="measure_claim").label == "Measure this claim again"
    assert not [b for b in opened(results="cpu", claim="a100-fp16").button if b.key == "measure_claim"]
    assert not [b for b in opened(results="h200", claim="marlin").button if b.key == "measure_claim"]


def test_an_interrupted_measurement_is_offered_to_be_resumed(bench: Bench) -> None:
    stored(bench, "interrupted")
    test = opened(results="cpu")
    assert test.button(key="measure_claims").label == "Resume measuring"
    assert "6 of 6 runs are to be measured, of which 1 cancelled or interrupted before" in said(test)


@pytest.mark.parametrize("params", [{}, {"results": "cpu"}])
def test_nothing_on_the_page_contradicts_itself(bench: Bench, params: dict[str, str]) -> None:
    """The counts of the sentence are those of the table."""
    test = opened(**params)
    verdicts = list(test.dataframe[0].value["Verdict"])
    text = said(test)
    assert f"{len(verdicts)} claims" in text
    assert f"{sum(v == '✓ holds' for v in verdicts)} hold" in text
    assert f"{sum(v == '⊘ cannot be tested' for v in verdicts)} cannot be tested" in text
