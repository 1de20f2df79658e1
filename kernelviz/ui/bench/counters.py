"""The tab Counters: the hardware counters of one call of a case, the button that reads them, and the commands of profilers."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from kernelviz.bench import Bench, Progress
from kernelviz.core import LIVING, Device, Problem, Result, Run
from kernelviz.metrics.counters import call_counters
from kernelviz.metrics.rows import Row
from kernelviz.tables.column import View, select
from kernelviz.tables.counters import COUNTERS, counted_kernels
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.counters import (
    describe_counting,
    describe_sectors,
    describe_stalls,
    describe_traffic,
    describe_uncounted,
)
from kernelviz.text.text import sentence_case
from kernelviz.ui.shared import callbacks, live_progress, profiler_commands, session, table, view_filters
from kernelviz.ui.shared.text import plain, when

_WAIT_S = 0.3
"""The click waits this long, so that a refusal is drawn at once; progress is shown for a reading, which takes a minute."""
_WHAT = (
    "ncu (Nsight Compute) reads hardware counters of one call in processes of its own: traffic of device memory, L2 and L1, use "
    "of pipes, issue slots, and what warps wait for. It takes about a minute, in which the device is locked for others. "
    "In a terminal: kernelviz counters"
)


@st.fragment
def counters_of_case(bench: Bench, run: Run, rows: Sequence[Row], problem: Problem) -> None:
    """A box for the variant at the chosen size, the button that reads its counters, the counters, and commands of profilers."""
    results = {r.result.variant: r.result for r in rows if r.result.problem == problem}
    names = [v for v in run.plan.variants if v in results and results[v].timing is not None]
    if not names:
        st.caption("No variant has a correct time at this size yet. Counters are read of cases that have one.")
        return
    device = next((d for d in bench.devices() if d.uuid == run.environment.device.uuid), None)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="counters_head"):
        with_counters = [n for n in names if results[n].hardware_counters is not None]
        variant = view_filters.choose(
            st.selectbox, plain(f"Variant, at {format_sizes(problem)}"), names, [*with_counters, *names][0], key="counters",
            width=320, format_func=lambda n: format_variant(n) + (" · has counters" if n in with_counters else ""),
        )  # fmt: skip
        result = results[variant]
        if device is not None:
            _button(bench, run, result, device)
    with st.container(key="counters_state"):
        _state(bench, run, result, device)
    with st.container(key="counters_facts"):
        stored_counters(result, key="counters_table")
        commands = bench.counters.commands_of_run(run, problem, variant)
        if commands is not None:
            st.markdown("**Profile it in a terminal**", help=profiler_commands.HELP)
            profiler_commands.draw(commands)


def stored_counters(result: Result, *, key: str) -> None:
    """The counters that are stored with a result, if there are any."""
    counters = result.hardware_counters
    call = call_counters(counters)
    if counters is None or call is None:
        return
    # "ncu" is the name of a command and has no capital letter.
    facts = (
        describe_traffic(result.cost, counters),
        *map(sentence_case, (describe_sectors(call), describe_stalls(call))),
    )
    lines = [f"- {plain(fact)}." for fact in facts if str(fact)]
    if lines:
        st.markdown("\n".join(lines))
    listed = counted_kernels(counters)
    table.show(select(COUNTERS, listed, View.WIDE), listed, key=key, alt="Hardware counters of the kernels of one call")
    read = f" · read {when(counters.measured_at)}" if counters.measured_at else ""
    st.caption(plain(f"{describe_counting(counters)}{read}"))
    if counters.not_read:
        st.caption(plain(f"Metrics that this ncu does not know for this GPU: {', '.join(counters.not_read)}"))


def _button(bench: Bench, run: Run, result: Result, device: Device) -> None:
    key, actions = _key(device, result), callbacks.actions()
    progress = live_progress.progress_of(bench, actions.activities.get(key))
    running = progress is not None and progress.status in LIVING
    act = partial(_read, bench, run, result, actions, key, session.owner())
    st.button(
        "Read counters" if result.hardware_counters is None else "Read counters again", key="counters_now",
        icon=":material/speed:", help=_WHAT,
        disabled=running or bench.counters.refusal(result.problem, device.id) is not None,
        on_click=callbacks.run_action, args=(actions.errors, key, "", act),
    )  # fmt: skip


def _key(device: Device, result: Result) -> str:
    return f"counters {device.id} {result.case.key}"


def _read(bench: Bench, run: Run, result: Result, actions: callbacks.Actions, key: str, owner: str) -> None:
    """Start a reading. Errors: those of `CounterReading.read_of_run`."""
    actions.activities.pop(key, None)
    name = bench.counters.read_of_run(bench.load(run.id), (result.variant,), problem=result.problem.key, owner=owner)
    actions.activities[key] = name
    live_progress.wait_for_end(bench, name, _WAIT_S)


def _state(bench: Bench, run: Run, result: Result, device: Device | None) -> None:
    """Why no counters can be read, the running reading, or how it ended without counters."""
    if device is None:
        if result.hardware_counters is None:
            st.caption(
                f"This run was measured on {plain(run.environment.device.name)}, which is not in this machine. Counters can be "
                "read there, or after **Run** has measured the same plan here."
            )
        return
    actions, key = callbacks.actions(), _key(device, result)
    progress = live_progress.progress_of(bench, actions.activities.get(key))
    _, error = actions.errors.get(key, ("", None))
    refusal = bench.counters.refusal(result.problem, device.id)
    if progress is not None:
        _progress(bench, actions.activities[key], progress, result)
    elif error is not None:
        st.warning(f"Its counters could not be read: {plain(error)}", icon=":material/error:")
    elif refusal is not None:
        st.caption(f"No counters can be read here: {plain(describe_uncounted(refusal))}.")
    elif result.hardware_counters is None:
        st.caption(f"The counters of this case were not read yet. Press **Read counters**. {_WHAT}")


def _progress(bench: Bench, name: str, progress: Progress, result: Result) -> None:
    if progress.status in LIVING:
        sentence = f"Reading counters of {format_variant(result.variant)} at {format_sizes(result.problem)}"
        live_progress.running_activity(bench, name, progress, sentence, key="counters", box="counters_going")
        return
    uncounted = bench.counters.not_read(name).get(result.case.key)
    if progress.status == "cancelled":
        st.caption("Reading the counters was cancelled.")
    elif uncounted is not None:
        st.warning("The counters could not be read.", icon=":material/error:")
        st.code(str(describe_uncounted(uncounted)), language=None, wrap_lines=True)
    elif progress.status == "interrupted":
        st.error(f"Reading the counters failed: {plain(progress.message)}", icon=":material/error:")
    elif result.hardware_counters is None:
        read = bench.counters.read_cases(name)
        if any(one.run_id is not None for one in read) and st.session_state.get("counters_drawn") != name:
            st.session_state["counters_drawn"] = name
            st.rerun()  # they are stored since this page read the run
        st.caption("The counters were read, but the run was removed or is measured again, so they could not be stored.")
