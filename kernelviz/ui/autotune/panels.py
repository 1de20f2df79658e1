"""The panels of a tuning on the page Autotune. `pages/autotune.py` puts them in reading order."""

from functools import partial
from typing import Literal

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core import Run
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.configurations import ConfigurationSpace, configuration_space, in_rank_order
from kernelviz.metrics.parameter_effects import ParameterEffects, parameter_effects
from kernelviz.tables.configurations import configuration_columns, effect_columns
from kernelviz.text import describe_failures
from kernelviz.text.configurations import (
    METHOD,
    configuration_insight,
    describe_counts,
    describe_failed,
    describe_heading,
)
from kernelviz.ui.autotune import choice, code_panel, transfer_panel
from kernelviz.ui.shared import charts, snapshot, table, view_filters
from kernelviz.ui.shared.text import plain

Part = Literal["overview", "parameters", "registers", "configurations", "shapes"]
_PARTS: dict[Part, str] = {
    "overview": "Overview",
    "parameters": "Parameters",
    "registers": "Registers",
    "configurations": "All configurations",
    "shapes": "Other shapes",
}
_MOST_NAMED = 12
"""Configurations that are named below a reason."""


def title() -> None:
    """Title, and what the page shows."""
    st.markdown("#### Autotune")
    st.markdown(
        "Measure the **configurations** of a variant (block sizes, warps, stages) for one problem, and use the fastest "
        "correct one "
        "from then on.",
        help="A configuration is one value for each parameter of a kernel. Each passes the same correctness check as any "
        "variant. "
        "Later runs of exactly this problem on this device use the stored configuration.",
    )


def nothing_tuned(bench: Bench) -> None:
    """What to do while there is no tuning to show."""
    if st.query_params.get(choice.RUN):
        return
    with st.container(border=True, key="autotune_nothing"):
        st.markdown(
            "**No tuning is stored on this server yet.** Choose **New tuning** above, or import a cache of Kernel Tuner on "
            "the page "
            "History."
        )


def of_run(bench: Bench, run: Run) -> None:
    """Sentence, charts and tables of a tuning."""
    space = configuration_space(run)
    if run.id in bench.tunings.shipped():
        st.caption(plain(f"A recorded tuning, to show the page without a GPU. {run.note}"))
    effects = parameter_effects(space)
    st.markdown(f"**{plain(configuration_insight(space, effects))}**")
    st.caption(plain(f"{describe_heading(space)}. {describe_counts(space)}"))
    if not space.configurations:
        return
    part: Part = view_filters.choose(
        st.segmented_control, "View", list(_PARTS), "overview", key="autotune_view", format_func=_PARTS.__getitem__,
        label_visibility="collapsed",
    )  # fmt: skip
    if part == "overview":
        _overview(run, space)
    elif part == "parameters":
        _parameters(run, space, effects)
    elif part == "registers":
        code_panel.registers(bench, run, space)
    elif part == "configurations":
        _configurations(bench, run, space)
    else:
        transfer_panel.other_shapes(bench, run, space)


def _picture(run: Run, text: str) -> charts.Picture:
    return charts.picture_of([run], text)


def _overview(run: Run, space: ConfigurationSpace) -> None:
    """Time by a parameter, the shortest so far, and failures."""
    left, right = st.columns([1.35, 1], gap="medium")
    with left:
        names = list(space.parameters)
        if names:
            default = next(
                iter(e.name for e in parameter_effects(space).parameters if e.name in space.varying), names[0]
            )
            name = view_filters.choose(
                st.selectbox, "Time by", names, default, key="parameter", width=240,
                help="The parameter that explains most of the spread comes first.",
            )  # fmt: skip
            charts.draw(
                partial(plots.time_by_parameter, run, name), key="autotune_scatter", picture=_picture(run, f"time by {name}"),
                alt=f"Time of each configuration by {name}. {configuration_insight(space, parameter_effects(space))} All "
                f"are listed "
                "under All configurations.",
            )  # fmt: skip
    with right:
        along = view_filters.choose(
            st.segmented_control, "Shortest time by", ["configurations", "time"], "configurations", key="along",
            help="By the number of configurations tried, or by the time since the start. A pause of more than 10 minutes, "
            "between "
            "Cancel and Resume, counts as no time.",
        )  # fmt: skip
        progress: Literal["configurations", "time"] = "time" if along == "time" else "configurations"
        charts.draw(
            partial(plots.best_time_by_progress, run, progress), key="autotune_progress_chart",
            picture=_picture(run, f"shortest time by {along}"), alt=f"The shortest time so far by {along}.",
        )  # fmt: skip
        st.caption(
            "The best is chosen among those that were measured again together at the end, so that one lucky time does not win."
            if not space.foreign
            else "In the order of the file."
        )
    if space.failures:
        _failures(run, space)


def _failures(run: Run, space: ConfigurationSpace) -> None:
    st.markdown(f"**{describe_failed(space)}, for these reasons**")
    if len(space.failures) > 1:  # one bar would say nothing that its text does not say
        charts.draw(
            partial(plots.count_by_reason, run), key="autotune_reasons", picture=_picture(run, "failures by reason"),
            alt="How many configurations failed, by reason. The reasons follow as text.",
        )  # fmt: skip
    by_name = {c.variant: c for c in space.configurations}
    for number, reason in enumerate(space.failures, 1):
        listed = [configuration_text(by_name[v].values) or v for v in reason.variants if v in by_name]
        more = f" … and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
        with st.expander(plain(f"{number}. {len(reason.variants)} × {str(describe_failures(reason))[:120]}")):
            st.text(str(describe_failures(reason)))
            st.text("; ".join(listed[:_MOST_NAMED]) + more)


def _parameters(run: Run, space: ConfigurationSpace, effects: ParameterEffects) -> None:
    """What each parameter is worth, and all of them at once."""
    left, right = st.columns([1, 1.35], gap="medium")
    with left:
        st.markdown("**What each parameter is worth**", help=plain(METHOD))
        charts.draw(
            partial(plots.share_by_parameter, run), key="autotune_shares", picture=_picture(run, "what each parameter is worth"),
            alt="The share of the spread of times that each parameter explains alone. The table below has the numbers.",
        )  # fmt: skip
    with right:
        st.markdown(
            "**All parameters at once**",
            help="Each line is a configuration. It crosses the axis of each parameter at its value, and ends at its time, "
            "fast at the "
            "bottom.",
        )
        charts.draw(
            partial(plots.time_by_all_parameters, run), key="autotune_parallel", picture=_picture(run, "parallel coordinates"),
            alt="Parallel coordinates: a line for each configuration over its parameters and its time. The table of all "
            "configurations has the same values.",
        )  # fmt: skip
    st.caption(plain(METHOD))
    if effects.estimated:
        st.caption(f"{effects.estimated} of the {effects.count} times are estimates of one block (stopped early).")
    if effects.parameters:
        table.show(
            list(effect_columns(space)),
            list(effects.parameters),
            key="autotune_effects",
            alt="What each parameter is worth",
        )


def _configurations(bench: Bench, run: Run, space: ConfigurationSpace) -> None:
    """The table of all configurations, and the run as a file."""
    ranked = in_rank_order(space)
    table.show(
        configuration_columns(space), ranked, key="autotune_table", alt=f"{len(ranked)} configurations, the best first"
    )
    with st.popover("Save", icon=":material/download:"):
        export = snapshot.format_box("autotune_format")
        snapshot.file_button(bench, run, export, key="autotune_save", caption=f"{len(run.results)} configurations")
    st.caption(
        plain(f"In a terminal: kernelviz tunings show {run.id}. In Python: kernelviz.configurations({run.id!r}).")
    )
