"""How the configuration that was tuned for one shape does at another: the transfer matrix, and the button that measures it."""

from functools import partial

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.bench import transfer as use_case
from kernelviz.core import LIVING, Run
from kernelviz.metrics.configurations import ConfigurationSpace
from kernelviz.metrics.transfer import Transfer
from kernelviz.metrics.tuning import is_tuning, tried, tuning_of
from kernelviz.tables.configurations import transfer_columns
from kernelviz.text import format_sizes
from kernelviz.text.transfer import METHOD, describe_other_code, transfer_insight
from kernelviz.ui.shared import callbacks, charts, live_progress, session, site, table
from kernelviz.ui.shared.text import plain

_KIND = "autotune_transfer"


def other_shapes(bench: Bench, run: Run, space: ConfigurationSpace) -> None:
    """The matrix over the stored tunings of the variant, and what can be measured."""
    if not is_tuning(run):
        st.info(
            "Another tool measured this tuning, and its file does not say which code was measured. So it is not compared with "
            "tunings of other shapes.",
            icon=":material/info:",
        )
        return
    tuning = tuning_of(run, tried(run), created_at=run.created_at, seconds=0.0)
    if tuning is None:
        st.info(
            "No configuration of this tuning is correct yet, so there is no choice that could transfer.",
            icon=":material/info:",
        )
        return
    matrix = use_case.of_tuning(bench, tuning)
    st.markdown(f"**{plain(transfer_insight(matrix))}**")
    if len(matrix.tunings) < 2:
        st.caption(
            "Tune the same variant at another size: the matrix then shows what the choice for one shape costs at the other."
        )
    else:
        charts.draw(
            plots.ratio_by_shape(matrix), key="autotune_matrix", picture=charts.picture_of([run], "transfer between shapes"),
            alt=f"Transfer matrix. {transfer_insight(matrix)} The table below has all numbers.",
        )  # fmt: skip
        table.show(
            transfer_columns(matrix),
            list(range(len(matrix.tunings))),
            key="autotune_matrix_table",
            alt="The transfer matrix",
        )
        st.caption(plain(METHOD))
    if matrix.other_code:
        st.caption(plain(describe_other_code(matrix)))
    _measure(bench, matrix)


def _measure(bench: Bench, matrix: Transfer) -> None:
    """The progress of a run that measures what is missing, or a button for each shape at which something is."""
    started = callbacks.actions().activities.get(_KIND)
    progress = live_progress.progress_of(bench, started)
    if started is not None and progress is not None and progress.status in LIVING:
        live_progress.running_activity(
            bench, started, progress, "Measuring the configurations that are missing in the matrix.", key="transfer",
            box="autotune_transfer_progress",
        )  # fmt: skip
        return
    if started is not None and progress is not None:
        site.run_link("Open the run that measured missing pairs", started)
    first = matrix.tunings[0]
    device = next((d for d in bench.devices() if d.uuid == first.device_uuid), None)
    shapes = list(dict.fromkeys(b for _, b in matrix.missing))
    if not shapes:
        return
    if device is None:
        st.caption(plain(f"Missing pairs can be measured on {first.device}, which is not here."))
        return
    with st.container(horizontal=True, gap="small", key="autotune_missing"):
        for shape in shapes:
            count = len(use_case.missing_at(matrix, shape))
            callbacks.button(
                plain(f"Measure {count} at {format_sizes(matrix.tunings[shape].problem)}"),
                partial(_start, bench, matrix, shape, device.id, callbacks.actions(), session.owner()),
                key=f"autotune_missing_{shape}", about=first.variant, icon=":material/play_arrow:", disabled=not device.usable,
            )  # fmt: skip
    st.caption(plain(f"In a terminal: kernelviz tunings transfer {first.problem.op} {first.variant} --measure"))


def _start(bench: Bench, matrix: Transfer, shape: int, device_id: str, actions: callbacks.Actions, owner: str) -> None:
    actions.activities[_KIND] = use_case.measure(bench, matrix, shape, device_id, owner=owner)
