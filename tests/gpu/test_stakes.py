"""What an engineer stakes a decision on: the other figures, steady load, energy, speed of the instrument, and its calm."""

import statistics
import time
from pathlib import Path

import msgspec
import pytest
from figures import known, record
from parts import part
from this_checkout import import_this_checkout

from kernelviz.bench import Bench
from kernelviz.core import USUAL_FIGURES, Case, CaseDone, Event, Figure, Method, Problem, Result, RunRequest, Timing
from kernelviz.hardware.datasheet import datasheet
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilerProcesses, compile_processes
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.metrics.figures import host_bound
from kernelviz.metrics.issue_rate import issue_share
from kernelviz.ops import op_named

pytestmark = [part("instrument"), pytest.mark.gpu, pytest.mark.xdist_group("gpu")]

PLANTED = str(Path(__file__).parents[1] / "planted.py")


def add(n: int) -> Problem:
    return Problem(op="add", sizes={"n": n}, dtype="fp32")


def matmul(n: int) -> Problem:
    return Problem(op="matmul", sizes={"m": n, "n": n, "k": n}, dtype="bf16")


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    from kernelviz.measure.session.device_session import open_session

    return open_session("cuda:0", (PLANTED,))


def measured(session: DeviceSession, problem: Problem, variants: tuple[str, ...], method: Method) -> dict[str, Timing]:
    """All figures of each variant, joined as a run joins them."""
    from kernelviz.core.merge import merge_later_result

    events: list[Event] = []
    session.measure(problem, variants, variants[0], method, events.append, lambda: False)
    found: dict[str, Result] = {}
    for event in events:
        if isinstance(event, CaseDone):
            known = found.get(event.result.variant)
            found[event.result.variant] = event.result if known is None else merge_later_result(known, event.result)
    assert all(isinstance(r.outcome, Timing) for r in found.values()), {v: r.outcome for v, r in found.items()}
    return {v: r.outcome for v, r in found.items() if isinstance(r.outcome, Timing)}


def us(figure: Figure | None) -> float | None:
    return None if figure is None else round(figure.estimate * 1e6, 4)


def test_five_figures_of_short_and_long_calls(session: DeviceSession) -> None:
    found, took = {}, {}
    for problem in (add(2**12), add(2**20), add(2**24), add(2**26), matmul(512), matmul(2048)):
        begun = time.monotonic()
        timing = measured(session, problem, ("torch_eager",), Method(figures=USUAL_FIGURES))["torch_eager"]
        took[problem.key] = time.monotonic() - begun
        names = ("device_cold_s", "device_warm_s", "call_eager_s", "enqueue_s", "call_graph_s", "loop_s")
        found[problem.key] = {name: us(getattr(timing, name)) for name in names}
        assert all(v is not None for v in found[problem.key].values()), found
        assert known(timing.enqueue_s).estimate < known(timing.call_eager_s).estimate
        assert known(timing.call_graph_s).estimate < known(timing.call_eager_s).estimate
        assert known(timing.call_graph_s).estimate > known(timing.device_warm_s).estimate
        loop, warm = known(timing.loop_s).estimate, known(timing.device_warm_s).estimate
        assert host_bound(timing) == (loop > 1.1 * warm and known(timing.enqueue_s).estimate >= loop / 2)
    record("five_figures_us", {"figures": found, "took_s": took})
    assert max(took.values()) < 6


def test_a_sleep_on_the_host_is_none_of_the_device_s_time(session: DeviceSession) -> None:
    found = measured(session, add(2**20), ("honest", "sleeps_on_the_host"), Method(figures=USUAL_FIGURES))
    plain, slow = found["honest"], found["sleeps_on_the_host"]
    shift = known(slow.device_cold_s).estimate / known(plain.device_cold_s).estimate - 1
    record(
        "host_sleep",
        {"shift": shift, "loop_s": known(slow.loop_s).estimate, "warm_s": known(slow.device_warm_s).estimate},
    )
    assert abs(shift) < 0.01
    assert host_bound(slow)
    assert known(slow.enqueue_s).estimate > 1e-3


def test_burst_and_sustained_differ_by_the_clock_that_was_measured(session: DeviceSession) -> None:
    burst = measured(session, matmul(4096), ("torch_eager",), Method(figures=("cold", "warm")))["torch_eager"]
    steady = measured(session, matmul(4096), ("torch_eager",), Method(figures=("cold", "warm"), clock="sustained"))[
        "torch_eager"
    ]
    clocks = {
        name: statistics.median(b.clock_hz for b in known(figure).blocks or () if b.clock_hz)
        for name, figure in (
            ("burst", burst.device_warm_s),
            ("sustained", steady.device_warm_s),
        )
    }
    times = {"burst": known(burst.device_warm_s).estimate, "sustained": known(steady.device_warm_s).estimate}
    explained = (times["sustained"] / times["burst"]) / (clocks["burst"] / clocks["sustained"]) - 1
    record("burst_and_sustained", {"seconds": times, "clock_hz": clocks, "unexplained": explained})
    assert times["sustained"] > 1.05 * times["burst"]
    assert abs(explained) < 0.05


def test_zeros_are_faster_than_normal_data_by_the_clock_alone(session: DeviceSession) -> None:
    """Power depends on the bits that change: at 8192^3 the card keeps a higher clock on zeros. In cycles, both take as long."""
    shares, figures = {}, {}
    for data in ("normal", "zeros"):
        problem = msgspec.structs.replace(matmul(8192), data=data)
        timing = measured(session, problem, ("torch_eager",), Method(clock="sustained", figures=("cold",)))[
            "torch_eager"
        ]
        figure = known(timing.device_cold_s)
        share = issue_share(problem, op_named("matmul").cost_of(problem), figure, session.device)
        assert share is not None
        shares[data] = share
        figures[data] = {"seconds": figure.estimate, "clock_hz": share.clock_hz, "issue_fraction": share.fraction}
    record("zeros_and_normal", figures)
    assert figures["zeros"]["seconds"] < 0.98 * figures["normal"]["seconds"]
    assert shares["zeros"].clock_hz > shares["normal"].clock_hz
    assert shares["zeros"].fraction == pytest.approx(shares["normal"].fraction, rel=0.03)


def test_two_energy_readings_agree(session: DeviceSession) -> None:
    readings = {}
    for problem in (matmul(4096), add(2**26), add(2**20)):
        two = []
        for _ in range(2):
            energy = measured(session, problem, ("torch_eager",), Method(figures=("cold", "energy")))[
                "torch_eager"
            ].energy
            assert energy is not None
            two.append(energy.joules)
            power_w = energy.joules * energy.calls / energy.seconds
            assert 100 < power_w < 800, energy
        readings[problem.key] = two
    record("energy_joules", readings)
    assert not {k: v for k, v in readings.items() if abs(v[0] / v[1] - 1) > 0.05}


SIX = ("torch_eager", "torch_compile", "triton_block_per_row", "triton_online", "triton_persistent", "composite_eager")


def test_a_sweep_of_bound_variants_is_a_matter_of_two_seconds(
    session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """softmax 4096 x 2^7..2^15 bf16, six variants, bound before: device cold, decided or within 0.5 %.

    Two seconds on an H200, and on a card with slower memory as much longer as its memory is slower.
    """
    problems = [Problem(op="softmax", sizes={"m": 4096, "n": 2**e}, dtype="bf16") for e in range(7, 16)]
    method = Method(half_width=0.005, ratio_half_width=0.005, decided_is_enough=True)
    import_this_checkout(monkeypatch)
    compilers = CompilerProcesses(compile_processes())
    try:
        session.compile_with(compilers, (PLANTED,))
        session.compile_ahead("sweep", [UpcomingCases(problem=problem, variants=SIX) for problem in problems])
        for problem in problems:
            measured(session, problem, SIX, method)
    finally:
        compilers.close()
    bound = [p.key in session._problems for p in problems]
    time.sleep(0.5)
    begun = time.monotonic()
    each = []
    for problem in problems:
        at = time.monotonic()
        measured(session, problem, SIX, method)
        each.append(time.monotonic() - at)
    taken = time.monotonic() - begun
    record("softmax_sweep", {"seconds": taken, "each_s": each, "kept": bound})
    assert all(bound)
    here, h200 = datasheet(session.device.name), datasheet("NVIDIA H200")
    assert here is not None
    assert h200 is not None
    assert taken <= 2.0 * max(1.0, h200.bandwidth_bytes_per_s / here.bandwidth_bytes_per_s)


def test_a_run_has_its_cold_times_first_and_the_other_figures_after(bench: Bench) -> None:
    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "2^12,2^16"}, variants=("torch_eager", "triton_block"), device="cuda:0")
    )
    run_id = bench.run(plan, Method(budget_s=0.2, figures=USUAL_FIGURES))
    first: dict[str, list[bool]] = {}
    for _, event in bench.follow(run_id):
        if isinstance(event, CaseDone):
            key = Case(problem=event.result.problem, variant=event.result.variant).key
            timing = event.result.timing
            first.setdefault(key, []).append(timing is not None and timing.device_warm_s is not None)
    run = bench.load(run_id)
    assert all(t and t.device_cold_s and t.device_warm_s and t.loop_s for t in (r.timing for r in run.results))
    assert all(not known[0] and known[-1] for known in first.values())
