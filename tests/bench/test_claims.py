"""Claims on a device: what can be tested there, the runs that test it, recorded results; command and Python agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench, claim_runs
from kernelviz.bench import claims as on_device
from kernelviz.cli import main
from kernelviz.core.claim import NoTest
from kernelviz.core.errors import UnknownName
from kernelviz.core.events import RunEnded
from kernelviz.core.problem import QUICK as QUICK_METHOD
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Failure
from kernelviz.formats import recorded_claims, shipped_runs
from kernelviz.formats.claim_files import read_claims, shipped_claims
from kernelviz.metrics import claim_reasons as r
from kernelviz.store import Store
from tests.bench.bench_of_sessions import bench_in


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Nothing measured, on a processor."""
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_on_a_processor_each_claim_has_a_verdict_or_says_what_is_lacking(bench: Bench) -> None:
    listed = on_device.claims_on(bench, "cpu").assessments
    assert [a.claim for a in listed] == list(shipped_claims().claims)
    by_id = {a.claim.id: a for a in listed}
    assert by_id["elementwise-plain"].reason == r.NeedsKind("cuda")
    assert by_id["fastcu-4096"].reason == r.NeedsCapability((9, 0))
    assert by_id["a100-read"].reason == r.NeedsCard(("NVIDIA A100-SXM4-80GB",))
    assert by_id["gradient-bytes"].verdict == "does not hold"
    assert by_id["a100-fp16"].verdict == "holds"
    for one in listed:
        if isinstance(one.claim.test, NoTest):
            assert one.reason == r.NeedsWork(one.claim.test.takes)
    runs = claim_runs.claim_runs(bench, on_device.claims_on(bench, "cpu"))
    assert {run.problem.op for run in runs} == {"add", "scale", "pointwise_chain_scalar"}
    (scale,) = (run for run in runs if run.problem.op == "scale")
    assert scale.figures == ("cold", "loop")
    assert claim_runs.plan_of(bench, scale, "cpu").baseline == "torch_eager"


def test_on_another_gpu_a_time_is_converted_and_a_processor_s_claims_need_a_processor(tmp_path: Path) -> None:
    made = Bench(Store.open(tmp_path), (samples.H200, samples.CPU))
    by_id = {a.claim.id: a for a in on_device.claims_on(made, "cuda:0").assessments}
    plain = by_id["elementwise-plain"]
    assert plain.scale is not None
    assert plain.expected == pytest.approx(12.5e-3 * 1792 / 4800)
    assert by_id["scale-cpu-gain"].reason == r.NeedsKind("cpu")
    assert by_id["tilus-cublas-4096"].expected == 765e12
    made.close()


@pytest.mark.parametrize(
    ("method", "verdict"),
    [
        (Method(), "does not hold"),
        (QUICK_METHOD, "not measured yet"),
        (Method(clock="sustained"), "not measured yet"),
    ],
)
def test_a_run_of_live_mode_or_under_sustained_load_says_nothing_about_a_claim(
    bench: Bench, method: Method, verdict: str
) -> None:
    """Any other run of the case counts, whoever has started it."""
    problem = Problem(op="pointwise_chain_scalar", sizes={"n": 2**24, "k": 1}, dtype="fp32")
    results = [samples.timed(problem, variant, 0.5, device=samples.CPU) for variant in ("torch_eager", "torch_compile")]
    run = samples.run(results, op=problem.op, sizes=[problem.sizes], dtype="fp32", shares={}, device=samples.CPU)
    bench.history.add(msgspec.structs.replace(run, method=method))
    one = on_device.named(on_device.claims_on(bench, "cpu").assessments, "fused-multiply-relu-cpu")
    assert one.verdict == verdict
    bench.history.delete(run.id)
    gone = on_device.named(on_device.claims_on(bench, "cpu").assessments, "fused-multiply-relu-cpu")
    assert gone.verdict == "not measured yet"


def test_recorded_results_have_numbers_without_their_device(bench: Bench) -> None:
    assert recorded_claims.names() == ("h200",)
    of_device = on_device.recorded_claims_on("h200")
    assert of_device.device.name == "NVIDIA H200"
    assert on_device.recorded_devices() == {"h200": "NVIDIA H200"}
    ladder = on_device.named(of_device.assessments, "step-hilbert")
    assert ladder.measured is not None
    assert 0.9 < ladder.measured.estimate < 1.1
    run = bench.load(ladder.run_ids[0])
    assert run is not None
    assert run.plan.op == "matmul"
    with pytest.raises(UnknownName):
        on_device.recorded_claims_on("h20")
    with pytest.raises(UnknownName):
        on_device.named(of_device.assessments, "step-hilbrt")


def test_the_command_python_and_markdown_hold_the_same(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--json", "--source", "siboehm", "--recorded", "h200"]) == 0
    listed = json.loads(capsys.readouterr().out)
    frame = kv.claims(source="siboehm", recorded="h200")
    assert [row["id"] for row in listed] == list(frame["id"])
    assert [row["verdict"] for row in listed] == list(frame["verdict"])
    assert main(["claims", "--markdown", "--recorded", "h200"]) == 0
    document = capsys.readouterr().out
    assert document == kv.claims_markdown(recorded="h200")
    for claim in shipped_claims().claims:
        assert f"**{claim.id}**" in document.replace("\\", "")
    assert main(["claims", "show", "marlin"]) == 0
    assert "2.17×" in capsys.readouterr().out
    assert main(["claims", "show", "marlinn"]) == 2
    assert "marlin" in capsys.readouterr().err
    assert main(["claims", "run", "marlin"]) == 2
    assert "needs a GPU" in capsys.readouterr().err
    assert main(["claims", "--recorded", "h200", "--device", "cpu"]) == 2
    assert "leave out --device" in capsys.readouterr().err
    assert main(["claims", "--verdict", "hold"]) == 2
    assert "'holds'" in capsys.readouterr().err


def test_the_document_is_what_the_command_prints_of_the_recorded_runs(bench: Bench) -> None:
    """`kernelviz claims --recorded h200 --markdown > docs/claims.md` writes it again."""
    document = Path(__file__).parents[2] / "docs" / "claims.md"
    assert document.read_text() == kv.claims_markdown(recorded="h200")


CASE = '{{ op = "add", variant = "{}", sizes = {{ n = {} }}, dtype = "fp32" }}'


def claim_of(name: str, n: int, own: str, other: str) -> str:
    return (
        f'[[claim]]\nid = "{name}"\nsource = "s"\nsetup = "x"\npublished = {{ value = 1.5, unit = "x" }}\n'
        f'direction = "at_least"\ntest = {{ kind = "ratio", case = {CASE.format(own, n)}, over = [{CASE.format(other, n)}] }}\n'
    )


SOURCE = '[[source]]\nname = "s"\ntitle = "t"\nwhere = "w"\n'
QUICK = read_claims({"": SOURCE + claim_of("one", 1, "b", "a") + claim_of("two", 2, "raises", "a")})
WAITS = read_claims({"": SOURCE + claim_of("waits", 3, "until_cancelled", "a")})


@pytest.fixture
def measuring(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def ended(bench: Bench, *run_ids: str) -> None:
    for run_id in run_ids:
        *_, (_, last) = bench.follow(run_id, timeout_s=20)
        assert isinstance(last, RunEnded)


def test_each_problem_is_one_run_and_what_has_results_is_not_measured_again(measuring: Bench) -> None:
    before = on_device.claims_on(measuring, "cpu", QUICK)
    assert [a.verdict for a in before.assessments] == ["not measured yet"] * 2
    started = claim_runs.start_all(measuring, "cpu", collection=QUICK)
    assert len(started) == 2
    ended(measuring, *started)
    after = on_device.claims_on(measuring, "cpu", QUICK)
    one, two = after.assessments
    assert one.run_ids == (started[0],)
    assert one.measured is not None
    assert (two.verdict, type(two.reason)) == ("cannot be tested here", r.CaseFailed)
    outcomes = [x.outcome for x in measuring.load(started[1]).results if x.variant == "raises"]
    assert isinstance(outcomes[0], Failure)
    assert claim_runs.start_all(measuring, "cpu", collection=QUICK) == ()
    state = claim_runs.progress(measuring, after)
    assert (state.runs, state.runs_done, state.living) == (2, 2, False)
    again = claim_runs.start_all(measuring, "cpu", claims=["one"], again=True, collection=QUICK)
    assert len(again) == 1
    assert again[0] not in started
    ended(measuring, *again)
    assert on_device.claims_on(measuring, "cpu", QUICK).assessments[0].run_ids == again, "the newest run counts"


def test_cancelled_measurements_go_on_in_the_same_run(measuring: Bench) -> None:
    (run_id,) = claim_runs.start_all(measuring, "cpu", collection=WAITS)
    of_device = on_device.claims_on(measuring, "cpu", WAITS)
    assert claim_runs.progress(measuring, of_device).current == run_id
    assert claim_runs.progress(measuring, of_device, ("waits",)).current == run_id
    other = on_device.claims_on(measuring, "cpu", QUICK)
    assert claim_runs.progress(measuring, other, ("one",)).current is None, "the progress of one claim is its own"
    claim_runs.cancel_all(measuring, "cpu", claim_runs.claim_runs(measuring, other, ("one",)))
    assert claim_runs.progress(measuring, of_device).current == run_id, "only the runs of that claim are cancelled"
    assert claim_runs.start_all(measuring, "cpu", collection=WAITS) == (run_id,), (
        "what is measured is not started again"
    )
    claim_runs.cancel_all(measuring, "cpu")
    ended(measuring, run_id)
    state = claim_runs.progress(measuring, on_device.claims_on(measuring, "cpu", WAITS))
    assert (state.current, state.stopped, state.runs_done) == (None, 1, 0)
    assert claim_runs.start_all(measuring, "cpu", collection=WAITS) == (run_id,)
    claim_runs.cancel_all(measuring, "cpu")
    ended(measuring, run_id)


def test_runs_are_written_and_opened_without_their_device(measuring: Bench, tmp_path: Path) -> None:
    ended(measuring, *claim_runs.start_all(measuring, "cpu", claims=["one"], collection=QUICK))
    of_device = on_device.claims_on(measuring, "cpu", QUICK)
    (name,) = claim_runs.record(measuring, of_device, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == [f"{name}.kvz"]
    written = shipped_runs.load_from(tmp_path / "out", name)
    before = measuring.load(of_device.assessments[0].run_ids[0])
    assert [r.case for r in written.results] == [r.case for r in before.results]
    estimates = [[r.timing.device_cold_s.estimate for r in run.results if r.timing and r.timing.device_cold_s]
                 for run in (before, written)]  # fmt: skip
    assert estimates[0] == estimates[1]
    assert len(estimates[0]) == 2
