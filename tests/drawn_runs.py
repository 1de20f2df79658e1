"""Runs as hypothesis draws them: every field of a document with what it can hold."""

from __future__ import annotations

import msgspec
import sample_runs as samples
from hypothesis import strategies as st

from kernelviz.core.notes import ForeignNote, LaterFailure, NotCapturable, SlowBlocks
from kernelviz.core.problem import Cost, Method, Plan, Problem
from kernelviz.core.reasons import CancelledBefore, ErrorTooLarge, NoDtype, Unwritten, WorkerEnded
from kernelviz.core.result import Accuracy, Block, Conditions, Failure, Figure, Kernel, Result, Timing
from kernelviz.core.run import Environment, Roof, Run

text = st.text(max_size=12)
finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.none() | finite
seconds = st.floats(1e-12, 1e9)
rates = st.floats(1, 1e20)
count = st.integers(0, 2**53)


@st.composite
def figures_of(draw: st.DrawFn) -> Figure:
    samples_s = draw(st.none() | st.lists(seconds, max_size=4).map(tuple))
    held = None
    if samples_s and draw(st.booleans()):
        clock, number_of_round = draw(st.none() | rates), draw(st.none() | count)
        held = (Block(size=len(samples_s), started_s=draw(st.floats(0, 1e9)), clock_hz=clock, round=number_of_round),)
    return Figure(
        estimate=draw(seconds),
        low=draw(st.none() | seconds),
        high=draw(st.none() | seconds),
        samples=samples_s,
        blocks=held,
        timer=draw(st.sampled_from([None, "cupti", "host"])),
        launch=draw(st.sampled_from([None, "graph", "call"])),
        method=draw(st.none() | text),
        buffers=draw(st.none() | st.integers(1, 60)),
    )


figures = figures_of()
timings = st.builds(
    Timing,
    device_cold_s=st.none() | figures,
    again_s=st.none() | figures,
    other_times=st.dictionaries(text, figures, max_size=2),
)
reasons = (
    st.builds(Unwritten, elements=count)
    | st.builds(ErrorTooLarge, of_bound=st.none() | seconds)
    | st.builds(NoDtype, dtype=text, has=st.lists(text, max_size=2).map(tuple))
    | st.builds(WorkerEnded, exit_code=st.none() | count, signal=st.none() | text)
    | st.just(CancelledBefore())
)
notes = (
    st.builds(SlowBlocks, figure=st.sampled_from(["cold", "warm"]), slow=count, blocks=count)
    | st.builds(NotCapturable, figure=st.sampled_from(["cold", "graph"]), error=text)
    | st.builds(LaterFailure, stage=st.just("crash"), reasons=st.lists(reasons, max_size=1).map(tuple), message=text)
    | st.builds(ForeignNote, text=text)
)
failures = st.builds(
    Failure,
    stage=st.sampled_from(["unavailable", "crash", "wrong", "cancelled"]),
    reasons=st.lists(reasons, max_size=2).map(tuple),
    message=text,
    timing=st.none() | timings,
)
problems = st.builds(
    Problem,
    op=st.just("an op"),
    sizes=st.fixed_dictionaries({"m": st.integers(1, 2**63 - 1)}),
    dtype=text,
    compute=st.none() | text,
    direction=st.sampled_from(["forward", "backward"]),
    data=st.sampled_from(["normal", "zeros"]),
)
results = st.builds(
    Result,
    problem=problems,
    variant=text,
    outcome=timings | failures,
    accuracy=st.none()
    | st.builds(Accuracy, passed=st.booleans(), relative_l2=number, max_abs=number, worst_of_bound=number),
    cost=st.none() | st.builds(Cost, work_flop=count, read_bytes=count, written_bytes=count),
    conditions=st.none() | st.builds(Conditions, power_w=number, notes=st.lists(notes, max_size=2).map(tuple)),
    kernels=st.lists(st.builds(Kernel, name=text, grid=st.none() | st.tuples(count, count, count)), max_size=2).map(
        tuple
    ),
)
environments = st.builds(
    Environment,
    device=st.just(samples.CPU),
    host=text,
    platform=text,
    python=text,
    kernelviz=text,
    versions=st.dictionaries(text, text, max_size=2),
    roofs=st.lists(st.builds(Roof, name=st.just("copy"), bandwidth_bytes_per_s=rates), max_size=2).map(tuple),
)


@st.composite
def runs_of(draw: st.DrawFn) -> Run:
    """A run that can be: its results are of cases of its plan, none twice."""
    names = draw(st.lists(text, min_size=1, max_size=2, unique=True))
    asked = draw(st.lists(problems, min_size=1, max_size=2, unique_by=lambda p: p.key))
    plan = Plan(problems=tuple(asked), variants=tuple(names), baseline=draw(st.sampled_from(names)), device=draw(text))
    cases = draw(st.lists(st.sampled_from(plan.cases()), max_size=3, unique_by=lambda c: c.key))
    done = [msgspec.structs.replace(draw(results), problem=c.problem, variant=c.variant) for c in cases]
    return Run(
        id=draw(text),
        title=draw(text),
        note=draw(text),
        created_at=draw(text),
        status=draw(st.sampled_from(["finished", "interrupted"])),
        environment=draw(environments),
        method=draw(st.builds(Method, budget_s=st.floats(0, 1e6), seeds=count)),
        plan=plan,
        results=tuple(done),
    )


runs = runs_of()
