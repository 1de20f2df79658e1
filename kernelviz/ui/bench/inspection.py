"""The tab Inspect: what one call of a case got and gave, and where its outputs differ from the reference."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench, Progress
from kernelviz.core.events import RunEnded
from kernelviz.core.inspection import Inspection, OutputErrors, TensorFacts
from kernelviz.core.problem import Problem, case_key
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import LIVING, Device, Run
from kernelviz.metrics.summary import Row
from kernelviz.metrics.sweep import size_words
from kernelviz.plots.variant_styles import variant_words
from kernelviz.tables.inspection import ELEMENTS, TENSORS
from kernelviz.text import inspection as words
from kernelviz.text.failures import describe_failure
from kernelviz.ui.shared import callbacks, live_progress, session, table, view_filters
from kernelviz.ui.shared.text import plain, when

_WAIT_S = 0.3
"""So long the click waits for the facts, so that a quick case is drawn once; what takes longer is followed."""
_WHAT = (
    "One call over seeded inputs, untimed: shape, strides, memory and values of every tensor, and each element of the outputs "
    "against the float64 reference. Also: kernelviz inspect"
)
_MAP_HELP = (
    "Each cell is a block of the output, in the order of its indices, the first row on top; its colour is the largest error in "
    "it, in units of the error that is allowed there. A wrong tile, row or column shows as such."
)


@st.fragment
def show(bench: Bench, run: Run, found: Sequence[Row], problem: Problem) -> None:
    """Choose a variant at the size chosen above; look at it, or look at it again."""
    results = {r.result.variant: r.result for r in found if r.result.problem == problem}
    names = [v for v in run.plan.variants if v in results]
    device = next((d for d in bench.devices() if d.uuid == run.environment.device.uuid), None)
    if device is None or not names:
        where = plain(run.environment.device.name)
        st.caption(
            f"This run was measured on {where}, which is not here, so its tensors cannot be looked at. **Run** measures the "
            "same plan here; then this tab shows what the calls do here."
            if device is None
            else "No variant has a result at this size yet."
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="inspect_head"):
        variant = _choice(names, results, problem)
        case = _Case(bench, device, problem, variant, run.plan.plugins, callbacks.kept(), session.owner())
        progress = case.progress
        result, made = results[variant], bench.inspection(problem, variant, device.id)
        unavailable = made is None and isinstance(result.outcome, Failure) and result.outcome.stage == "unavailable"
        going = progress is not None and progress.status in LIVING
        st.button(
            "Inspect" if made is None else "Inspect again", key="inspect_now", icon=":material/biotech:",
            disabled=going or unavailable, help=_WHAT,
            on_click=callbacks.tried, args=(case.kept.troubles, case.key, "", case.ask),
        )  # fmt: skip
    # Each part has its own place, so that what comes and goes above the facts moves none of them.
    with st.container(key="inspect_state"):
        if unavailable and isinstance(result.outcome, Failure):
            st.caption(f"It cannot be called here: {plain(describe_failure(result.outcome))}")
        elif progress is not None:
            case.stands(progress)
        elif case.trouble is not None:
            st.warning(f"It cannot be looked at: {plain(case.trouble)}", icon=":material/error:")
        elif made is None:
            st.caption(f"Not looked at yet. **Inspect** makes one call of this case. {_WHAT}")
    with st.container(key="inspect_facts"):
        if made is not None:
            _facts(made, result)


def _choice(names: Sequence[str], results: Mapping[str, Result], problem: Problem) -> str:
    """The variant: the first that came out wrong until somebody chooses."""

    def is_wrong(name: str) -> bool:
        outcome = results[name].outcome
        return isinstance(outcome, Failure) and outcome.stage == "wrong"

    default = next((n for n in names if is_wrong(n)), names[0])
    view_filters.seed("inspect", names, default)
    chosen = st.selectbox(
        plain(f"Variant, at {size_words(problem)}"), names, key="inspect", width=320,
        format_func=lambda n: ("✕ " if is_wrong(n) else "") + variant_words(n),
    )  # fmt: skip
    view_filters.keep("inspect", chosen, default)
    return chosen


@dataclass(frozen=True, slots=True)
class _Case:
    """One case on one device, and the look at it that this browser session asked for last."""

    bench: Bench
    device: Device
    problem: Problem
    variant: str
    plugins: tuple[str, ...]
    kept: callbacks.Kept
    owner: str

    @property
    def key(self) -> str:
        """Under which the session keeps it."""
        return f"inspect {self.device.id} {case_key(self.problem, self.variant)}"

    def ask(self) -> None:
        """Begin a look, and wait for it as long as a click may take. Errors: those of `Bench.inspect`."""
        self.kept.jobs.pop(self.key, None)
        job = self.bench.inspect(self.problem, self.variant, self.device.id, plugins=self.plugins, owner=self.owner)
        self.kept.jobs[self.key] = job
        until_s = time.monotonic() + _WAIT_S
        for _, event in self.bench.follow(job, timeout_s=_WAIT_S):
            if isinstance(event, RunEnded) or time.monotonic() > until_s:
                return

    @property
    def trouble(self) -> str | None:
        """Why no look could be begun."""
        _, words = self.kept.troubles.get(self.key, ("", None))
        return words

    @property
    def progress(self) -> Progress | None:
        """Where the look stands; None where there was none."""
        job = self.kept.jobs.get(self.key)
        return live_progress.state(self.bench, job) if job is not None else None

    def stands(self, progress: Progress) -> None:
        """The look while it goes on, or how it ended when it found nothing."""
        if progress.status in LIVING:
            said = f"Looking at {variant_words(self.variant)} at {size_words(self.problem)}"
            job = self.kept.jobs[self.key]
            live_progress.job(self.bench, job, progress, said, key="inspection", box="inspection_going")
        elif progress.status == "cancelled":
            st.caption("The look was cancelled.")
        elif progress.status == "interrupted":
            st.error("The call could not be looked at:", icon=":material/error:")
            st.code(progress.message or "no message", language=None, wrap_lines=True)


def _facts(made: Inspection, result: Result | None) -> None:
    colour = "green" if made.passed else "red"
    st.markdown(f"**:{colour}[{plain(words.verdict_words(made))}]**")
    said = [line for errors in made.errors for line in words.output_words(errors)]
    if said:
        st.markdown("\n".join(f"- {plain(line)}" for line in said))
    st.caption(plain(f"{words.fill_words(made)} · looked at {when(made.created_at)}"))
    if result is not None and result.source_digest not in (None, made.source_digest):
        st.caption(":orange[The variant's source is another one than in this run: Inspect again, or run it anew.]")
    st.markdown("**Tensors**")
    alt = f"Memory and values of the {len(made.tensors)} tensors of the call"
    table.show(TENSORS, made.tensors, key="inspect_tensors", alt=alt)
    for errors in made.errors:
        _errors(errors, made.rule)
    _values(made.tensors)


def _errors(errors: OutputErrors, rule: str) -> None:
    name = plain(errors.name)
    left, right = st.columns([1.15, 1], gap="medium")
    with left:
        st.markdown(f"**Where {name} errs**", help=_MAP_HELP)
        st.plotly_chart(
            plots.share_by_element(errors),
            key=f"map_{errors.name}",
            config=view_filters.CHART,
            alt=words.map_words(errors),
        )
    with right:
        st.markdown(f"**By how much {name} errs**", help=f"The allowed error of an element: {plain(rule)}")
        st.plotly_chart(
            plots.elements_by_error(errors), key=f"errors_{errors.name}", config=view_filters.CHART,
            alt=f"Elements of {errors.name} by their error in units of the allowed one: {errors.wrong:,} of "
            f"{errors.elements:,} outside the bound, {errors.counts.exact:,} exact",
        )  # fmt: skip
    if not errors.worst:
        st.caption(f"Every element of {name} is exact.")
        return
    st.markdown(f"**Worst elements of {name}**" if errors.wrong else f"**Elements of {name} nearest to the bound**")
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
        alt=f"Values of {tensor.name}: {words.number(tensor.minimum)} to {words.number(tensor.maximum)}, mean "
        f"{words.number(tensor.mean)}, standard deviation {words.number(tensor.deviation)}",
    )  # fmt: skip
