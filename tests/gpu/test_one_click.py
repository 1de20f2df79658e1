"""Every op as one click on the Bench page measures it, by the queue and the worker of the product; and the same cases by ncu.

The part `one_click` measures every variant at one size, of about 128 MiB; the part `kernels` runs every variant at small, odd and
larger sizes. Ops on record are not measured again, and ncu is asked about those that were. ``--whole-sweep`` measures all sizes
of the default sweep, which takes 10 to 20 minutes for all ops; a new op is measured so once (``-k "[NAME]"``), for
docs/gpu-figures.json.
"""

import functools
import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest
from figures import known, record, record_some
from judged import (
    EMPTY_LAUNCH,
    cases_for_ncu,
    further_off_at_one_clock,
    most_further_off,
    one_kernel,
    problem_for_ncu,
    resources_of,
    unsolved,
    untrue_failures,
    without_reason,
)
from on_record import LEFT_OUT, asks_all
from part_report import environment
from parts import part
from this_checkout import import_this_checkout

from kernelviz.bench import Bench
from kernelviz.core import Case, Conditions, Result, Run, TracingCostUnknown, TracingShortens
from kernelviz.core.events import CaseStep, RunEnded
from kernelviz.core.problem import QUICK, Plan
from kernelviz.core.result import Failure
from kernelviz.measure.compile_ahead import processes
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilerProcesses, compile_processes
from kernelviz.measure.compile_ahead.selection import cases_to_compile
from kernelviz.metrics.ncu_agreement import middle_samples_s
from kernelviz.ops import catalogue, op_named
from kernelviz.text.failures import describe_failure
from kernelviz.ui.bench.form import choices, default_form

if TYPE_CHECKING:
    from kernelviz.measure.selftest.agreement import NcuTime

pytestmark = [part("one_click"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(400)]

METHOD = msgspec.structs.replace(QUICK, decided_is_enough=False)
"""QUICK, but measured until each time is precise enough for a comparison with ncu, or for 20 ms of the GPU."""
CALLS = 3
"""Of each case under ncu; the median counts."""
ONE_IN = 8
"""Of the cases of which docs/gpu-figures.json has a comparison with ncu, so many are compared again: others at each commit. ncu
takes a quarter to half a second a case, and it is asked about the method of timing, of which an eighth of 650 says as much."""

LONGEST_COMPILATION_S = 150.0
"""What is not compiled after this time, the runs compile."""

Clicked = dict[str, Run]


@pytest.fixture(scope="module")
def clicked(request: pytest.FixtureRequest) -> Clicked:
    """The runs of the ops that were measured so far, by the op's name; none yet, but the kernels of the ops that will be are
    compiled."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    names = {spec.params.get("name") for spec in chosen if spec is not None}
    cases = [case for case in clicked_cases() if case.problem.op in names]
    if cases:
        with pytest.MonkeyPatch.context() as patched:
            import_this_checkout(patched)
            patched.setattr(processes, "HEAD_START", 0)  # the order is that of compile_together
            compile_together(cases)
    return {}


def compile_together(cases: Sequence[Case]) -> None:
    """Compile the kernels of these cases in as many processes as a worker uses. A run compiles only its own op's, of which one
    may take as long as a hundred others: a product of CUTLASS a minute, in each of four ops. The part kernels leaves most of
    them in the caches."""
    import torch

    from kernelviz.measure.compile_ahead.device_facts import facts_of

    named: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        named[case.problem.op].append(case.variant)
    upcoming = [UpcomingCases(problem=problem_for_ncu(op_named(op)), variants=tuple(v)) for op, v in named.items()]
    work = cases_to_compile(catalogue(), upcoming)
    work.sort(key=lambda one: not op_named(one[0].op).variant_named(one[1]).slow_compile)
    began_s = time.monotonic()
    compilers = CompilerProcesses(compile_processes())
    try:
        compilers.begin(facts_of(torch.device("cuda:0")), ())
        compilers.expect("one_click", work)
        while (done := compilers.progress()[0]) < len(work) and psutil.Process(compilers.pid).status() != "zombie":
            if time.monotonic() - began_s > LONGEST_COMPILATION_S:
                break
            compilers.let_run(0.1)
    finally:
        compilers.close()
    record("one_click_compiled", {"cases": len(work), "compiled": done, "seconds": time.monotonic() - began_s})


def _plan(bench: Bench, name: str, *, whole: bool) -> Plan:
    """What the form offers first, without what compiles for seconds (that is measured in docs/h200-ladders.jsonl.gz), except a
    new variant of that kind where not the whole sweep is measured."""
    form = default_form(bench, name, "cuda:0")
    if not whole:
        problem = problem_for_ncu(op_named(name))
        variants = tuple(case.variant for case in clicked_cases() if case.problem == problem)
        return msgspec.structs.replace(form.plan(bench), problems=(problem,), variants=variants)
    offered = choices(bench, catalogue()[name], form.device, form.dtype, form.compute, form.direction)
    return replace(
        form,
        variants=tuple(
            c.variant.name for c in offered if c.usable and not c.variant.slow_compile and not c.variant.only_when_named
        ),
    ).plan(bench)


def _measured(bench: Bench, plan: Plan) -> tuple[Run, dict[str, float]]:
    """The run, and how many seconds it spent in each step: "waiting" until the first case begins."""
    began_s, step = time.monotonic(), "waiting"
    spent_s: defaultdict[str, float] = defaultdict(float)
    ended: list[str] = []
    run_id = bench.run(plan, METHOD, owner="test")
    for _, event in bench.follow(run_id, timeout_s=300):
        now_s = time.monotonic()
        spent_s[step] += now_s - began_s
        began_s = now_s
        if isinstance(event, CaseStep):
            step = event.step
        elif isinstance(event, RunEnded):
            ended.append(event.status)
    assert ended == ["finished"]
    return bench.load(run_id), dict(spent_s)


@pytest.mark.parametrize("name", list(catalogue()))
def test_nothing_fails_but_what_cannot_be_solved(
    bench: Bench, clicked: Clicked, name: str, pytestconfig: pytest.Config
) -> None:
    began_s = time.monotonic()
    whole = bool(pytestconfig.getoption("--whole-sweep", default=False))
    clicked[name], spent_s = _measured(bench, _plan(bench, name, whole=whole))
    results = clicked[name].results
    failed = {
        r.case.key: f"{r.outcome.stage}: {describe_failure(r.outcome)}"
        for r in results
        if isinstance(r.outcome, Failure)
    }
    made = [r.preparation for r in results if r.preparation is not None]
    found = {
        "cases": len(results),
        "seconds": time.monotonic() - began_s,
        "bind_s": sum(p.bind_s or 0.0 for p in made),
        "first_call_s": sum(p.first_call_s or 0.0 for p in made),
        "check_s": sum(p.check_s or 0.0 for p in made),
        "steps_s": spent_s,
        "failed": failed,
        "processes": int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    }
    record_some("one_click" if whole else "one_click_one_size", {name: found})
    assert results
    assert untrue_failures(name, failed) == {}
    if whole:
        assert unsolved((r.case.key for r in results), failed) == set()


FIGURES = Path(__file__).parents[2] / "docs" / "gpu-figures.json"


@functools.cache
def _compared_before() -> frozenset[str]:
    return frozenset(json.loads(FIGURES.read_text())["figures"].get("ncu_every_variant", ()))


@functools.cache
def clicked_cases() -> tuple[Case, ...]:
    """Of every op one size with all variants, but those that take seconds to compile and were compared with ncu before: GPU and
    all other cases would wait for a minute of nvcc. The part `kernels` compiles and checks them each time."""
    return tuple(
        case
        for case in cases_for_ncu()
        if not op_named(case.problem.op).variant_named(case.variant).slow_compile or case.key not in _compared_before()
    )


def asked_now(key: str, commit: str) -> bool:
    """Whether ncu is asked about a case at this commit: about one that it never was, in any case."""
    if key not in _compared_before():
        return True
    return int(hashlib.sha256(f"{commit} {key}".encode()).hexdigest()[:8], 16) % ONE_IN == 0


def _beside(result: Result, ncu: "NcuTime") -> dict[str, object] | None:
    """Our time of a case beside ncu's; None where there is none of ours."""
    from kernelviz.measure.selftest.agreement import shape_of

    timing, conditions = result.timing, result.conditions or Conditions()
    if timing is None or timing.device_cold_s is None:
        return None
    cold = known(timing.device_cold_s)
    own_hz = conditions.sm_clock_hz
    assert own_hz is not None or cold.timer == "events"
    own_shapes = tuple(map(shape_of, result.kernels))
    same = ncu.shapes == own_shapes
    tracing: dict[str, object] = {"tracing_adds_s": cold.correction_s} if cold.correction_s else {}
    for note in conditions.notes:
        if isinstance(note, TracingShortens):
            tracing["tracing_shortens_s"] = note.by_s
        elif isinstance(note, TracingCostUnknown) and note.figure == "cold":
            tracing["tracing_cost_unknown"] = True
    return {
        "own_s": cold.estimate,
        "own_p5_p95_s": middle_samples_s(cold),
        "own_clock_hz": ncu.clock_hz if own_hz is None else own_hz,
        "ncu_s": ncu.seconds,
        "ncu_clock_hz": ncu.clock_hz,
        "kernels": len(ncu.shapes),
        "same_kernels": same,
        "shapes": None if same else (ncu.shapes, own_shapes),
    } | tracing


def test_resources_read_from_cubins_are_those_that_the_driver_launches(bench: Bench, clicked: Clicked) -> None:
    """Registers, local and shared memory of every kernel that the tracer saw and whose cubin was captured."""
    compared, apart = 0, []
    for run in clicked.values():
        read = bench.history.code.contents_of(run).get
        for result in run.results:
            some, differing = resources_of(result, read)
            compared += some
            apart += differing
    record("resources", {"kernels": compared, "apart": apart})
    assert apart == []
    assert compared > 100 * (len(clicked) == len(catalogue()))


def test_calls_of_one_kernel_agree_with_ncu(bench: Bench, clicked: Clicked, pytestconfig: pytest.Config) -> None:
    """Every variant whose call is one kernel, the same here and there: CUPTI and ncu differ by at most 0.8 us + 1 %, beyond what
    ncu adds to an empty kernel. If they differ by more, there is a measured reason, and of the sample of this commit at most as
    many do as `most_further_off` allows. A case without another reason is timed without any profiler. The same is asked of the
    committed figures, of which at most 5 % may be further off, by tests/test_gpu_figures.py.

    The cases are those that were clicked before, and a launch of nothing; alone, this test measures them itself. Where some ops
    are on record, CI asks how many cases are further off, of the figures that all runs have left.
    """
    from kernelviz.measure.selftest import children
    from kernelviz.measure.selftest.agreement import EMPTY, ncu_times, two_timers
    from kernelviz.measure.selftest.workbench import NotHere, Workbench
    from kernelviz.measure.session.device_session import DeviceSession, open_session

    if children.path() is None:
        pytest.skip("ncu is not on the PATH")
    left_out = pytestconfig.stash.get(LEFT_OUT, frozenset())
    names = [name for name in catalogue() if name == EMPTY_LAUNCH or not any(f"[{name}]" in test for test in left_out)]
    whole = len(names) == len(catalogue())
    cases = [EMPTY, *(case for case in clicked_cases() if case != EMPTY and case.problem.op in names)]
    if whole and not asks_all(pytestconfig):
        cases = [EMPTY, *(case for case in cases[1:] if asked_now(case.key, environment()["commit"] or ""))]
    for name in names:
        measured = {r.case.key for r in clicked[name].results} if name in clicked else set()
        if {case.key for case in cases if case.problem.op == name} - measured:
            clicked[name], _ = _measured(bench, _plan(bench, name, whole=False))
    results = {r.case.key: r for run in clicked.values() for r in run.results}
    began_s = time.monotonic()
    session = open_session("cuda:0")
    workbench = Workbench(
        session.state, session.ops, lambda ops: DeviceSession(session.device, ops, session.timer), lambda: False
    )
    try:
        by_ncu = ncu_times(workbench, cases, most_s=600, times=CALLS)
    except NotHere as reason:
        pytest.skip(str(reason))
    compared = {key: beside for key, ncu in by_ncu.items() if (beside := _beside(results[key], ncu)) is not None}
    doubtful = without_reason(compared)
    for case in cases:
        if case.key in doubtful:
            both = two_timers(workbench, case)
            compared[case.key] |= {"own_again_s": both.own_s, "untraced_s": both.untraced_s}
    record("ncu_seconds", {"ncu": time.monotonic() - began_s, "cases": len(cases)})
    record("ncu_every_variant", compared)
    assert without_reason(compared) == []
    if whole:
        assert len(one_kernel(compared)) > len(cases) / 2
        assert len(further_off_at_one_clock(compared)) <= most_further_off(len(one_kernel(compared)))
