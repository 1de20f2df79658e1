"""The tab Inspect: the tensors of one call of a case, and where its outputs differ from the reference."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, Progress
from kernelviz.core import (
    LIVING,
    Case,
    Device,
    Failure,
    Inspection,
    OutputErrors,
    Problem,
    Result,
    Run,
)
from kernelviz.metrics.rows import Row
from kernelviz.tables.inspection import ELEMENTS, MEMORY, TENSORS
from kernelviz.text import describe_failure, format_problem, format_sizes, format_variant
from kernelviz.text import inspection as text
from kernelviz.ui.shared import callbacks, charts, live_progress, session, table, view_filters
from kernelviz.ui.shared.text import plain, when

_WAIT_S = 0.3
"""The click waits this long for the result, so that a quick case is drawn once; progress is shown for a longer one."""
_WHAT = (
    "Inspect calls the variant once, without timing it, and shows the shape, strides, memory and values of every tensor, and the "
    "error of each output element against the float64 reference. In a terminal: kernelviz inspect"
)


@st.fragment
def tensors_and_errors(bench: Bench, run: Run, rows: Sequence[Row], problem: Problem) -> None:
    """A box for the variant at the chosen size, the button that inspects it, and the result."""
    results = {r.result.variant: r.result for r in rows if r.result.problem == problem}
    names = [v for v in run.plan.variants if v in results]
    device = next((d for d in bench.devices() if d.uuid == run.environment.device.uuid), None)
    if device is None or not names:
        st.caption(
            f"This run was measured on {plain(run.environment.device.name)}, which is not in this machine, so its tensors cannot "
            "be inspected. Press **Run** to measure the same plan on this machine, then inspect that run."
            if device is None
            else "No variant has a result at this size yet."
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="inspect_head"):
        variant = _variant_box(names, results, problem)
        result, stored = results[variant], bench.inspection(problem, variant, device.id)
        key, actions = f"inspect {device.id} {result.case.key}", callbacks.actions()
        progress = live_progress.progress_of(bench, actions.activities.get(key))
        failure = result.outcome if isinstance(result.outcome, Failure) else None
        unavailable = stored is None and failure is not None and failure.unavailable
        running = progress is not None and progress.status in LIVING
        act = partial(_inspect, bench, run, result.case, device, actions, key, session.owner())
        st.button(
            "Inspect" if stored is None else "Inspect again", key="inspect_now", icon=":material/biotech:",
            disabled=running or unavailable, help=_WHAT,
            on_click=callbacks.run_action, args=(actions.errors, key, "", act),
        )  # fmt: skip
    # Containers of their own, so that a change of the state does not move the result below it.
    with st.container(key="inspect_state"):
        _, error = actions.errors.get(key, ("", None))
        if unavailable and failure is not None:
            st.caption(f"This variant cannot run on this machine: {plain(describe_failure(failure))}")
        elif progress is not None:
            sentence = f"Inspecting {format_variant(variant)} at {format_sizes(problem)}"
            _draw_progress(bench, actions.activities[key], progress, sentence)
        elif error is not None:
            st.warning(f"This case could not be inspected: {plain(error)}", icon=":material/error:")
        elif stored is None:
            st.caption(f"This case was not inspected yet. Press **Inspect**. {_WHAT}")
    with st.container(key="inspect_facts"):
        if stored is not None:
            _result(stored, result)


def _variant_box(names: Sequence[str], results: Mapping[str, Result], problem: Problem) -> str:
    """The variant to inspect. The default is the first one with a wrong result."""
    wrong = [n for n in names if isinstance(o := results[n].outcome, Failure) and o.stage == "wrong"]
    return view_filters.choose(
        st.selectbox, plain(f"Variant, at {format_sizes(problem)}"), names, [*wrong, *names][0], key="inspect", width=320,
        format_func=lambda n: ("✕ " if n in wrong else "") + format_variant(n),
    )  # fmt: skip


def _inspect(
    bench: Bench, run: Run, case: Case, device: Device, actions: callbacks.Actions, key: str, owner: str
) -> None:
    """Start an inspection, and wait for it as long as a click may take. Errors: those of `Bench.inspect`."""
    actions.activities.pop(key, None)
    name = bench.inspect(case.problem, case.variant, device.id, plugins=run.plan.plugins, owner=owner)
    actions.activities[key] = name
    live_progress.wait_for_end(bench, name, _WAIT_S)


def _draw_progress(bench: Bench, name: str, progress: Progress, sentence: str) -> None:
    """The running inspection, or how it ended if it has no result."""
    if progress.status in LIVING:
        live_progress.running_activity(bench, name, progress, sentence, key="inspection", box="inspection_going")
    elif progress.status == "cancelled":
        st.caption("The inspection was cancelled.")
    elif progress.status == "interrupted":
        st.error("The inspection failed. Press **Inspect** to try again.", icon=":material/error:")
        st.code(progress.message or "The failure has no message.", language=None, wrap_lines=True)


def _result(inspection: Inspection, result: Result | None) -> None:
    colour = "green" if inspection.passed else "red"
    st.markdown(f"**:{colour}[{plain(text.describe_inspection(inspection))}]**")
    lines = [line for errors in inspection.errors for line in text.describe_output(errors)]
    if lines:
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))
    st.caption(plain(f"{text.describe_inputs(inspection)} · inspected {when(inspection.created_at)}"))
    if result is not None and result.source_digest not in (None, inspection.source_digest):
        st.caption(
            ":orange[The source of the variant differs between this inspection and this run: inspect it again, or measure a new "
            "run.]"
        )
    st.markdown("**Tensors**")
    alt = f"Memory and values of the {len(inspection.tensors)} tensors of the call"
    table.show(TENSORS, inspection.tensors, key="inspect_tensors", alt=alt)
    st.markdown("**Allocated and reserved memory**", help=text.MEMORY_HELP)
    if inspection.memory:
        table.show(MEMORY, inspection.memory, key="inspect_memory", alt="Memory around binding and call")
    if unknown := text.describe_unknown_memory(inspection):
        st.caption(plain(unknown))
    for errors in inspection.errors:
        _errors(errors, inspection)
    _values(inspection)


def _picture(inspection: Inspection, title: str) -> charts.Picture:
    case = f"{format_problem(inspection.problem)} · {format_variant(inspection.variant)}"
    return charts.picture(f"{case}: {title}", inspection.environment.device.name, inspection.created_at)


def _errors(errors: OutputErrors, inspection: Inspection) -> None:
    name = plain(errors.name)
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.markdown(
            f"**Location of errors in {name}**",
            help="Each cell is a block of the output, with the first row at the top. Its colour is the largest error in the "
            "block, divided by the allowed error; wrong tiles, rows or columns become visible as patterns.",
        )
        charts.draw(
            plots.share_by_element(errors), key=f"map_{errors.name}", alt=text.describe_map(errors),
            picture=_picture(inspection, f"location of errors in {errors.name}"),
        )  # fmt: skip
    with right:
        st.markdown(f"**Size of errors in {name}**", help=f"The allowed error of an element: {plain(inspection.rule)}")
        charts.draw(
            plots.elements_by_error(errors), key=f"errors_{errors.name}",
            alt=f"Elements of {errors.name} by error / allowed error: {errors.wrong:,} of {errors.elements:,} outside the "
            f"tolerance, {errors.counts.exact:,} exact",
            picture=_picture(inspection, f"size of errors in {errors.name}"),
        )  # fmt: skip
    if not errors.worst:
        st.caption(f"Every element of {name} is exact.")
        return
    st.markdown(f"**Worst elements of {name}**" if errors.wrong else f"**Elements of {name} closest to the tolerance**")
    alt = f"The {len(errors.worst)} worst elements of {errors.name}"
    table.show(ELEMENTS, errors.worst, key=f"worst_{errors.name}", alt=alt)


def _values(inspection: Inspection) -> None:
    tensors = inspection.tensors
    names = [t.name for t in tensors]
    chosen = view_filters.choose(st.segmented_control, "Values of", names, names[-1], key="values")
    tensor = next(t for t in tensors if t.name == chosen)
    charts.draw(
        plots.elements_by_value(tensor), key="inspect_values",
        alt=f"Values of {tensor.name}: {text.number(tensor.minimum)} to {text.number(tensor.maximum)}, mean "
        f"{text.number(tensor.mean)}, standard deviation {text.number(tensor.deviation)}",
        picture=_picture(inspection, f"values of {tensor.name}"),
    )  # fmt: skip
