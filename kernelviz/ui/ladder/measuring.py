"""Measuring on the page Ladder: the whole ladder at a size of choice, or one rung of it, with progress."""

import shlex
from collections import Counter
from functools import partial

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import ladder as use_case
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.core import LIVING, BadField, Device, KernelvizError, Problem
from kernelviz.core.command import launch_options
from kernelviz.core.units import typed_size
from kernelviz.metrics.ladder import Ladder, Metric, Step
from kernelviz.metrics.ladder_summary import value_of
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import Op
from kernelviz.text import format_refusals, format_sizes, format_variant
from kernelviz.text.ladder import describe_gain, format_value
from kernelviz.text.ladder_changes import measure_command
from kernelviz.ui.shared import callbacks, live_progress, session, site, view_filters
from kernelviz.ui.shared.text import plain

_LADDER, _STEP = "ladder", "ladder_step"
MEASURED = "measured"
"""The parameter of the address that names the run of one measured rung."""


def open_started_run() -> None:
    """Show the run that a button of this page has started, if any."""
    activities = callbacks.actions().activities
    started = activities.pop(_LADDER, None)
    if started is not None:
        op, _, run_id = started.partition(" ")
        for name in ("problem", "ladder", "rung", MEASURED):
            view_filters.write(name, None)
        for name in ("ladder_problem", "ladder_backend"):
            st.session_state.pop(name, None)
        st.session_state["ladder_op"] = op
        st.session_state[f"ladder_run_{op}"] = run_id
        view_filters.write("run", run_id)
        view_filters.write("op", None)
    started = activities.pop(_STEP, None)
    if started is not None:
        view_filters.write(MEASURED, started)


def controls(bench: Bench, op: Op, device: Device, run: RunSummary | None, problem: Problem | None) -> None:
    """The buttons that measure the ladder here, or the progress of the run that is shown."""
    if run is not None and not run.shipped:
        progress = live_progress.progress_of(bench, run.id)
        if progress is not None and progress.status in LIVING:
            live_progress.running_activity(
                bench, run.id, progress, f"Measuring the ladder of {op.name} on {run.device}. Rungs appear as they arrive.",
                key="ladder", box="ladder_progress",
            )  # fmt: skip
            return
        if run.status in ("cancelled", "interrupted"):
            _resume(bench, run)
    at = problem if problem is not None and problem.op == op.name else default_problem(bench, op, device)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="ladder_actions"):
        if able(bench, op, at, device):
            _button(bench, at, device)
            with st.popover("Another size", icon=":material/straighten:"):
                _form(bench, op, at, device)
        else:
            st.caption(plain(why_not(bench, op, device)))
        if run is not None:
            site.run_link("Open this run: samples, code, export, snapshot", run.id)


def _resume(bench: Bench, run: RunSummary) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.warning(
            f"This run was {run.status}: {run.done} of {run.cases} cases were measured.", icon=":material/pause_circle:"
        )
        callbacks.button(
            "Resume", partial(bench.resume, run.id, owner=session.owner()), key="resume_ladder", about=run.id,
            icon=":material/play_arrow:",
        )  # fmt: skip


def default_problem(bench: Bench, op: Op, device: Device) -> Problem:
    """The problem that is measured where no run is shown."""
    sizes = {axis: int(size) for axis, size in measuring.default_sizes(op, device).items()}
    return op.problem(sizes, op.dtypes[0])


def able(bench: Bench, op: Op, problem: Problem, device: Device) -> tuple[str, ...]:
    """The rungs that can be measured on a device at a problem, in order; none where no ladder would have two of them."""
    if not device.usable:
        return ()
    own = {v.name: v.backend for v in op.variants if v.backend in OWN}
    names = [name for name in measuring.runnable(bench, op, (problem,), device.id) if name in own]
    most = max(Counter(own[name] for name in names).values(), default=0)
    return tuple(names) if most >= use_case.FEWEST else ()


def why_not(bench: Bench, op: Op, device: Device) -> str:
    """Why no rung of an op can be measured on a device."""
    lacks = [o.lack for o in bench.offers(op.name, device.id) if o.variant.backend in OWN and o.lack is not None]
    reason = device.reason if not device.usable else f"{format_refusals(lacks)}" if lacks else "none takes this problem"
    return f"No ladder of {op.name} can be measured on {device.name}: {reason}."


def _button(bench: Bench, problem: Problem, device: Device) -> None:
    callbacks.button(
        f"Measure the ladder on {device.name}",
        partial(_start, bench, problem, device.id, callbacks.actions(), session.owner()),
        key="measure_ladder", about=device.id, icon=":material/play_arrow:", type="primary",
        help=plain(
            f"Measures all rungs and libraries that can run here at {format_sizes(problem)} ({problem.precision}), cold device "
            f"times only. In a terminal: {measure_command(problem)}"
        ),
    )  # fmt: skip


def _start(bench: Bench, problem: Problem, device_id: str, actions: callbacks.Actions, owner: str) -> None:
    actions.activities[_LADDER] = f"{problem.op} {measuring.start_problem(bench, problem, device_id, owner=owner)}"


def _form(bench: Bench, op: Op, like: Problem, device: Device) -> None:
    """Sizes, number format and direction of another measurement."""
    texts = {
        axis.name: st.text_input(
            axis.name,
            value=typed_size(like.sizes[axis.name]),
            key=f"ladder_size_{op.name}_{axis.name}",
            help=plain(axis.caption),
        )
        for axis in op.axes
    }
    dtype = st.selectbox("Number format", op.dtypes, index=op.dtypes.index(like.dtype), key=f"ladder_dtype_{op.name}")
    computes = op.computes.get(dtype, ())
    compute = st.selectbox("Arithmetic", computes, key=f"ladder_compute_{op.name}") if len(computes) > 1 else None
    direction = (
        st.selectbox("Direction", op.directions, key=f"ladder_direction_{op.name}")
        if len(op.directions) > 1
        else "forward"
    )

    def act(actions: callbacks.Actions, owner: str) -> None:
        plan = measuring.plan_of(
            bench, op.name, device.id, sizes=texts, dtype=dtype, compute=compute, direction=direction or "forward"
        )
        actions.activities[_LADDER] = f"{op.name} {measuring.start(bench, plan, owner=owner)}"

    callbacks.button(
        "Measure", partial(act, callbacks.actions(), session.owner()), key="measure_ladder_at", about=f"{op.name} {device.id}",
        icon=":material/play_arrow:", help="Sizes as on Bench: 4096, 4k, 2^12, or several: 2^10..2^13.",
    )  # fmt: skip


def measure_step(bench: Bench, step: Step, problem: Problem, device: Device, *, possible: bool) -> None:
    """A button that measures one rung here; disabled with the reason where it cannot run."""
    reason = "" if possible else _why_step_not(bench, step, problem, device)
    callbacks.button(
        "Measure this rung",
        partial(_start_step, bench, problem, step, device.id, callbacks.actions(), session.owner()),
        key=f"measure_step_{step.variant}", about=f"{problem.key} {device.id}", icon=":material/timer:", type="tertiary",
        disabled=not possible,
        help=plain(
            reason
            or f"Measures this rung, the one before it and the baseline on {device.name}, so that they share rounds. In a "
            f"terminal: kernelviz ladder {problem.op} --measure --variant {step.variant} {shlex.join(launch_options(problem))}"
        ),
    )  # fmt: skip


def _why_step_not(bench: Bench, step: Step, problem: Problem, device: Device) -> str:
    try:
        measuring.plan_of_problem(bench, problem, device.id, variant=step.variant)
    except BadField as error:
        return error.remedy
    except KernelvizError as error:
        return str(error)
    return f"It cannot be measured on {device.name}."


def _start_step(
    bench: Bench, problem: Problem, step: Step, device_id: str, actions: callbacks.Actions, owner: str
) -> None:
    over = None if step.over is None else step.over.name
    run_id = measuring.start_problem(bench, problem, device_id, variant=step.variant, over=over, owner=owner)
    actions.activities[_STEP] = run_id


def measured_run(bench: Bench) -> tuple[str, str] | None:
    """The run of a measured rung that the address names, and which rung it is; None without one."""
    run_id = st.query_params.get(MEASURED)
    if not run_id:
        return None
    try:
        run = bench.load(bench.history.openable(run_id).id)
        op = use_case.op_with_ladder(bench, run.plan.op)
    except KernelvizError:
        view_filters.write(MEASURED, None)
        return None
    own = [v.name for v in op.variants if v.backend in OWN and v.name in run.plan.variants]
    return (run_id, own[-1]) if own else None


def measured_step(bench: Bench, run_id: str, variant: str, metric: Metric) -> None:
    """The progress of a measured rung, or its value and gain on this machine."""
    progress = live_progress.progress_of(bench, run_id)
    if progress is not None and progress.status in LIVING:
        live_progress.running_activity(
            bench, run_id, progress, f"Measuring {format_variant(variant)} and the rung before it.", key="ladder_step",
            box="ladder_step_progress",
        )  # fmt: skip
        return
    ladder: Ladder = use_case.ladder_of_stored(bench, run_id, use_case.problems_of(bench.load(run_id))[0].key)
    steps = {s.variant: s for of in ladder.ladders for s in of.steps}
    step = steps.get(variant)
    device = ladder.run.environment.device.name
    with st.container(border=True, key="ladder_step_measured"):
        if step is None:
            st.caption("This rung has no result in the run that was started.")
            return
        value = "" if not step.correct else f"{format_value(value_of(step.row, metric), metric)}, "
        st.markdown(f"**Measured on {plain(device)}**: {plain(value)}{plain(describe_gain(step))}")
        site.run_link("Open this run", run_id)
