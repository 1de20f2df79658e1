"""The whole product on a GPU: Bench, queue, supervisor and worker, with variants that misbehave, and the page itself."""

import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from figures import record, save
from parts import part

from kernelviz.bench import Bench
from kernelviz.core.events import CaseDone, CaseStep, RunEnded, WorkerStarting
from kernelviz.core.problem import Method, Plan
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Failure, Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import document
from kernelviz.metrics.stability import stability
from kernelviz.metrics.statistics import block_means
from kernelviz.text.failures import describe_failure
from kernelviz.worker.limits import Limits

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]

TESTS = Path(__file__).parents[1]
PLANTED = str(TESTS / "planted.py")
PLANTED_CUDA = str(TESTS / "planted_cuda.py")


POINTS = 500
"""Of the soak: five of them beyond either end of the middle 98 %."""


def finished(
    bench: Bench, plan: Plan, method: Method | None = None, starts: list[float] | None = None
) -> tuple[Run, dict[str, float]]:
    """The run when it has ended, and when (seconds since its start) each variant's result arrived.

    `starts` gets how long each start of a worker took, until that worker began its first case.
    """
    begun = time.monotonic()
    starting: float | None = None
    run_id = bench.run(plan, method or Method(budget_s=0.2), owner="test")
    arrived: dict[str, float] = {}
    for _, event in bench.follow(run_id, timeout_s=300):
        if isinstance(event, WorkerStarting):
            starting = time.monotonic()
        if isinstance(event, CaseStep) and starting is not None:
            if starts is not None:
                starts.append(time.monotonic() - starting)
            starting = None
        if isinstance(event, CaseDone):
            arrived[event.result.variant] = time.monotonic() - begun
        if isinstance(event, RunEnded):
            break
    return bench.load(run_id), arrived


def outcomes(run: Run) -> dict[str, Timing | Failure]:
    return {r.variant: r.outcome for r in run.results}


@part("smoke")
@pytest.mark.parametrize(
    ("name", "plugin", "stage"),
    [
        ("aborts", PLANTED, "crash"),
        ("illegal_address", PLANTED_CUDA, "crash"),
        ("runs_out_of_memory", PLANTED, "out_of_memory"),
        ("writes_nothing", PLANTED, "wrong"),
        ("remembers", PLANTED, "wrong"),
        ("is_wrong", PLANTED, "wrong"),
        ("changes_its_input", PLANTED, "wrong"),
    ],
    ids=lambda value: Path(value).stem,
)
def test_a_planted_variant_costs_only_its_own_case(bench: Bench, name: str, plugin: str, stage: str) -> None:
    plan = bench.plan(
        RunRequest(
            op="add",
            sizes={"n": "2^20"},
            dtype="fp32",
            variants=("torch_eager", name, "triton_block"),
            device="cuda:0",
            plugins=(plugin,),
        )
    )
    starts: list[float] = []
    run, arrived = finished(bench, plan, starts=starts)
    found = outcomes(run)
    failure = found[name]
    assert isinstance(failure, Failure), failure
    assert failure.stage == stage, failure
    assert isinstance(found["torch_eager"], Timing), found["torch_eager"]
    assert isinstance(found["triton_block"], Timing), found["triton_block"]
    message = str(describe_failure(failure))
    record(f"planted_{name}", {"message": message, "arrived_s": arrived, "starts_s": starts})
    if stage == "crash":
        # The start of a worker (torch's import, a CUDA context) takes 3 to 6 s by machine; what the product adds to the one that
        # replaces it is the end of the dead process, and binding and measuring two short cases.
        others_s = min(arrived["torch_eager"], arrived["triton_block"])
        assert others_s - arrived[name] - starts[-1] <= Limits().end_s


@part("smoke")
def test_a_declared_change_of_an_input_is_restored_before_every_call(bench: Bench) -> None:
    plan = bench.plan(
        RunRequest(
            op="add",
            sizes={"n": "2^20"},
            dtype="fp32",
            variants=("torch_eager", "adds_in_place"),
            device="cuda:0",
            plugins=(PLANTED,),
        )
    )
    found = outcomes(finished(bench, plan)[0])
    assert isinstance(found["adds_in_place"], Timing), found["adds_in_place"]
    assert isinstance(found["torch_eager"], Timing)


@part("smoke")
def test_a_hang_in_c_is_ended_and_the_next_case_measured(bench: Bench, tmp_path: Path) -> None:
    from kernelviz.hardware.discovery import discover
    from kernelviz.store import Store

    limits = Limits(bind_s=20.0, step_s=5.0, check_s=5.0)
    own = Bench(Store(f"sqlite:///{tmp_path}/runs.sqlite"), discover(), limits=limits)
    plan = own.plan(
        RunRequest(
            op="add", sizes={"n": "2^20"}, variants=("torch_eager", "hangs"), device="cuda:0", plugins=(PLANTED,)
        )
    )
    found = outcomes(finished(own, plan)[0])
    own.close()
    assert isinstance(found["hangs"], Failure)
    assert found["hangs"].stage == "timeout"
    assert isinstance(found["torch_eager"], Timing)


@part("product")
def test_the_soak_through_the_worker(bench: Bench) -> None:
    """POINTS points with idle gaps: every bad block noticed and repeated, memory steady.

    The middle 98 % lie within 3 % of each other's centre: on an H100, blocks of this call take 4.67 or 4.92 us at the same clock,
    and in about one point of 50 most of its ten blocks are slow ones. On an H200 they lie within 0.7 %.
    """
    import psutil

    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "2^20"}, dtype="fp32", variants=("torch_eager",), device="cuda:0")
    )
    figures: list[Figure] = []
    clocks: list[float] = []
    memory: list[int] = []
    seconds: list[float] = []
    retried: list[int] = []
    for point in range(POINTS):
        begun = time.perf_counter()
        run, _ = finished(bench, plan, Method(budget_s=0.001))
        seconds.append(time.perf_counter() - begun)
        outcome = run.results[0].outcome
        assert isinstance(outcome, Timing), outcome
        assert outcome.device_cold_s is not None
        retried.append(sum(r.conditions.retried_blocks for r in run.results if r.conditions))
        figures.append(outcome.device_cold_s)
        clocks.append(next((r.conditions.sm_clock_hz or 0.0 for r in run.results if r.conditions), 0.0))
        if point % 50 == 0:
            processes = psutil.Process().children(recursive=True)
            memory.append(max((p.memory_info().rss for p in processes if p.is_running()), default=0))
            time.sleep((point // 50) % 3 * 0.5)
    centiles = statistics.quantiles(sorted(f.estimate for f in figures), n=100)
    p1, p5, p95, p99 = (centiles[one - 1] for one in (1, 5, 95, 99))
    ordered = sorted(figure.estimate for figure in figures)
    usual_s = statistics.median(ordered)
    farthest = sorted(range(len(figures)), key=lambda i: -abs(figures[i].estimate - usual_s))[:20]
    record(
        "soak",
        {
            "points": len(figures),
            "estimate_s": {
                "min": ordered[0],
                "p1": p1,
                "p5": p5,
                "median": usual_s,
                "p95": p95,
                "p99": p99,
                "max": ordered[-1],
            },
            "point_s": {"median": statistics.median(seconds), "p99": statistics.quantiles(seconds, n=100)[98]},
            "worker_resident_bytes": memory,
            "retried_blocks": retried[-1],
            "farthest": [
                {
                    "point": i,
                    "estimate_s": figures[i].estimate,
                    "interval_s": (figures[i].low, figures[i].high),
                    "block_means_s": block_means(figures[i].samples or (), figures[i].blocks or ()).tolist(),
                    "clock_hz": clocks[i],
                }
                for i in farthest
            ],
        },
    )
    assert (p95 - p5) / 2 / usual_s < 0.02
    assert (p99 - p1) / 2 / usual_s < 0.03
    assert memory[-1] - memory[4] < 200 * 2**20


SIX = "torch_eager,torch_compile,triton_block,triton_adaptive,cuda_scalar,cuda_vec16"


@part("smoke")
def test_the_page_runs_a_sweep_of_six_variants_and_shows_what_is_stored(bench: Bench) -> None:
    from streamlit.testing.v1 import AppTest

    import kernelviz.ui

    app = AppTest.from_file(str(Path(kernelviz.ui.__file__).parent / "server" / "main.py"), default_timeout=60)
    asked = {"op": "add", "variants": SIX, "dtype": "fp32", "n": "2^12,2^18,2^24", "device": "cuda:0", "budget": "0.25"}
    for name, value in asked.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    begun = time.monotonic()
    app.button(key="run").click().run()
    assert not app.exception
    value = app.query_params["run"]
    run_id = value if isinstance(value, str) else value[0]
    for _, event in bench.follow(run_id, timeout_s=300):
        if isinstance(event, RunEnded):
            break
    taken = time.monotonic() - begun
    app.run()
    assert not app.exception
    run = bench.load(run_id)
    shown = next(d.value for d in app.dataframe if "Variant" in d.value.columns and "Quality" in d.value.columns)
    assert {r.case.key for r in run.results} == {case.key for case in run.plan.cases()}
    assert set(run.plan.variants) == set(SIX.split(","))
    assert len(run.results) == len(shown)
    times = next(c for c in shown.columns if c.startswith("Cold time"))
    scale = {"ms": 1e-3, "µs": 1e-6}[times.split(", ")[1]]
    page = {(str(r["Variant"]).replace(" ", "_"), int(r["n"])): float(r[times]) * scale for _, r in shown.iterrows()}
    stored = {}
    for result in run.results:
        assert isinstance(result.outcome, Timing), result
        cold_s = result.outcome.device_cold_s
        assert cold_s is not None
        # A time with two levels is not shown as one number. Such times occur here, because other processes use the GPU.
        shown_s = math.nan if stability(cold_s).unstable else cold_s.estimate
        stored[result.variant, result.problem.sizes["n"]] = shown_s
    assert page == pytest.approx(stored, nan_ok=True)
    compiled = [r for r in run.results if r.variant == "torch_compile"]
    assert all(r.kernels[0].name.startswith("triton_") for r in compiled)
    record("page_sweep", {"seconds": taken, "results": len(run.results)})
    save(run, "add-h200.json")


@part("product")
def test_others_on_the_gpu_leave_no_trace_in_what_is_measured_after_them(bench: Bench) -> None:
    """A CUDA context that is made after the worker's makes its short kernels read 0.08-0.1 us longer for good: after the
    selftest's own processes, and after another kernelviz on the same GPU, another worker measures."""
    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "2^12,2^18"}, dtype="fp32", variants=("torch_eager",), device="cuda:0")
    )

    def measured() -> tuple[list[float], int]:
        run, _ = finished(bench, plan, Method(budget_s=0.2))
        times = [r.timing.device_cold_s.estimate for r in run.results if r.timing and r.timing.device_cold_s]
        state = bench._runner.state("cuda:0")
        assert state is not None
        return times, state.workers_started

    found = {"alone": measured()}
    for _ in bench.follow(bench.selftest("cuda:0", only=("events_fallback",)), timeout_s=120):
        pass
    found["after a selftest"] = measured()
    command = [
        sys.executable,
        "-m",
        "kernelviz",
        "run",
        "add",
        "--size",
        "n=4096",
        "--variants",
        "torch_eager",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found["after another kernelviz"] = measured()
    found["once more"] = measured()
    record("others_on_the_gpu", found)
    started = [workers for _, workers in found.values()]
    assert started[0] < started[1] < started[2] == started[3]
    for times, _ in found.values():
        assert times == pytest.approx(found["alone"][0], rel=0.02)


@part("smoke")
def test_the_command_line_gives_one_document(bench: Bench) -> None:
    """Every case of the plan that the same words make here, each with a result."""
    command = [sys.executable, "-m", "kernelviz", "run", "rmsnorm", "--size", "m=4096", "--sweep", "n=2^10..2^13"]
    done = subprocess.run(
        [*command, "--dtype", "bf16", "--quick", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    run = document.decode(done.stdout)
    assert run.environment.device.kind == "cuda"
    expected = bench.plan(RunRequest(op="rmsnorm", sizes={"m": "4096", "n": "2^10..2^13"}, dtype="bf16"))
    assert run.plan == expected
    assert {r.case.key for r in run.results} == {case.key for case in expected.cases()}
