"""The tab Inspect: the tensors of one call of a case, and where its outputs differ from the reference."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, Progress
from kernelviz.core import (
    LIVING,
    Device,
    Failure,
    Inspection,
    OutputErrors,
    Problem,
    Result,
    Run,
    RunEnded,
    TensorFacts,
)
from kernelviz.core.problem import case_key
from kernelviz.metrics.summary import Row
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.variant_styles import format_variant
from kernelviz.tables.inspection import ELEMENTS, TENSORS
from kernelviz.text import inspection as text
from kernelviz.text.failures import describe_failure
from kernelviz.ui.shared import callbacks, live_progress, session, table, view_filters
from kernelviz.ui.shared.text import plain, when

_WAIT_S = 0.3
"""The click waits this long for the result, so that a quick case is drawn once; progress is shown for a longer one."""
_WHAT = (
    "Calls the variant once, without timing it: shape, strides, memory and values of every tensor, and the error of each output "
    "element compared with the float64 reference. In a terminal: kernelviz inspect"
)
_MAP_HELP = (
    "Each cell is a block of the output, with the first row at the top. Its colour is the largest error in the block, divided by "
    "the allowed error; wrong tiles, rows or columns become visible as patterns."
)


@st.fragment
def tensors_and_errors(bench: Bench, run: Run, rows: Sequence[Row], problem: Problem) -> None:
    """A box for the variant at the chosen size, the button that inspects it, and the result."""
    results = {r.result.variant: r.result for r in rows if r.result.problem == problem}
    names = [v for v in run.plan.variants if v in results]
    device = next((d for d in bench.devices() if d.uuid == run.environment.device.uuid), None)
    if device is None or not names:
        where = plain(run.environment.device.name)
        st.caption(
            f"This run was measured on {where}, which is not in this machine, so its tensors cannot be inspected. Press **Run** "
            "to measure the same plan on this machine, then inspect that run."
            if device is None
            else "No variant has a result at this size yet."
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="inspect_head"):
        variant = _choice(names, results, problem)
        case = _Case(bench, device, problem, variant, run.plan.plugins, callbacks.actions(), session.owner())
        progress = case.progress
        result, stored = results[variant], bench.inspection(problem, variant, device.id)
        unavailable = stored is None and isinstance(result.outcome, Failure) and result.outcome.stage == "unavailable"
        running = progress is not None and progress.status in LIVING
        st.button(
            "Inspect" if stored is None else "Inspect again", key="inspect_now", icon=":material/biotech:",
            disabled=running or unavailable, help=_WHAT,
            on_click=callbacks.run_action, args=(case.actions.errors, case.key, "", case.inspect),
        )  # fmt: skip
    # Containers of their own, so that a change of the state does not move the result below it.
    with st.container(key="inspect_state"):
        if unavailable and isinstance(result.outcome, Failure):
            st.caption(f"This variant cannot run on this machine: {plain(describe_failure(result.outcome))}")
        elif progress is not None:
            case.draw_progress(progress)
        elif case.error is not None:
            st.warning(f"This case could not be inspected: {plain(case.error)}", icon=":material/error:")
        elif stored is None:
            st.caption(f"This case was not inspected yet. Press **Inspect**. {_WHAT}")
    with st.container(key="inspect_facts"):
        if stored is not None:
            _result(stored, result)


def _choice(names: Sequence[str], results: Mapping[str, Result], problem: Problem) -> str:
    """The variant to inspect. The default is the first one with a wrong result."""

    def is_wrong(name: str) -> bool:
        outcome = results[name].outcome
        return isinstance(outcome, Failure) and outcome.stage == "wrong"

    default = next((n for n in names if is_wrong(n)), names[0])
    view_filters.seed("inspect", names, default)
    chosen = st.selectbox(
        plain(f"Variant, at {size_words(problem)}"), names, key="inspect", width=320,
        format_func=lambda n: ("✕ " if is_wrong(n) else "") + format_variant(n),
    )  # fmt: skip
    view_filters.keep("inspect", chosen, default)
    return chosen


@dataclass(frozen=True, slots=True)
class _Case:
    """One case on one device, and its inspection by this browser session."""

    bench: Bench
    device: Device
    problem: Problem
    variant: str
    plugins: tuple[str, ...]
    actions: callbacks.Actions
    owner: str

    @property
    def key(self) -> str:
        """The key of the case in the session."""
        return f"inspect {self.device.id} {case_key(self.problem, self.variant)}"

    def inspect(self) -> None:
        """Start an inspection, and wait for it as long as a click may take. Errors: those of `Bench.inspect`."""
        self.actions.activities.pop(self.key, None)
        name = self.bench.inspect(self.problem, self.variant, self.device.id, plugins=self.plugins, owner=self.owner)
        self.actions.activities[self.key] = name
        until_s = time.monotonic() + _WAIT_S
        for _, event in self.bench.follow(name, timeout_s=_WAIT_S):
            if isinstance(event, RunEnded) or time.monotonic() > until_s:
                return

    @property
    def error(self) -> str | None:
        """Why no inspection could be started."""
        _, message = self.actions.errors.get(self.key, ("", None))
        return message

    @property
    def progress(self) -> Progress | None:
        """The progress of the inspection; None without one."""
        name = self.actions.activities.get(self.key)
        return live_progress.progress_of(self.bench, name) if name is not None else None

    def draw_progress(self, progress: Progress) -> None:
        """The running inspection, or how it ended if it has no result."""
        if progress.status in LIVING:
            sentence = f"Inspecting {format_variant(self.variant)} at {size_words(self.problem)}"
            name = self.actions.activities[self.key]
            live_progress.running_activity(
                self.bench, name, progress, sentence, key="inspection", box="inspection_going"
            )
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
    for errors in inspection.errors:
        _errors(errors, inspection.rule)
    _values(inspection.tensors)


def _errors(errors: OutputErrors, rule: str) -> None:
    name = plain(errors.name)
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.markdown(f"**Location of errors in {name}**", help=_MAP_HELP)
        st.plotly_chart(
            plots.share_by_element(errors),
            key=f"map_{errors.name}",
            config=view_filters.CHART,
            alt=str(text.describe_map(errors)),
        )
    with right:
        st.markdown(f"**Size of errors in {name}**", help=f"The allowed error of an element: {plain(rule)}")
        st.plotly_chart(
            plots.elements_by_error(errors), key=f"errors_{errors.name}", config=view_filters.CHART,
            alt=f"Elements of {errors.name} by error / allowed error: {errors.wrong:,} of {errors.elements:,} outside the "
            f"tolerance, {errors.counts.exact:,} exact",
        )  # fmt: skip
    if not errors.worst:
        st.caption(f"Every element of {name} is exact.")
        return
    st.markdown(f"**Worst elements of {name}**" if errors.wrong else f"**Elements of {name} closest to the tolerance**")
    alt = f"The {len(errors.worst)} worst elements of {errors.name}"
    table.show(ELEMENTS, errors.worst, key=f"worst_{errors.name}", alt=alt)


def _values(tensors: Sequence[TensorFacts]) -> None:
    names = [t.name for t in tensors]
    last = names[-1]
    view_filters.seed("values", names, last)
    chosen = st.segmented_control("Values of", names, key="values", required=True) or last
    view_filters.keep("values", chosen, last)
    tensor = next(t for t in tensors if t.name == chosen)
    st.plotly_chart(
        plots.elements_by_value(tensor), key="inspect_values", config=view_filters.CHART,
        alt=f"Values of {tensor.name}: {text.number(tensor.minimum)} to {text.number(tensor.maximum)}, mean "
        f"{text.number(tensor.mean)}, standard deviation {text.number(tensor.deviation)}",
    )  # fmt: skip
