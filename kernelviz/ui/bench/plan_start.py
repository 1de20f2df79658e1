"""The start of a run from the form of the page Bench."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import KernelvizError, Plan
from kernelviz.ui.bench import second_run
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, session
from kernelviz.ui.shared.text import plain


def start(bench: Bench, plan: Plan, form: Form) -> None:
    """Begin the run and draw the page again. If it cannot begin, say why; the page still shows the run that it shows."""
    actions, owner = callbacks.actions(), session.owner()
    try:
        actions.started_run = bench.run(plan, form.method, owner=owner)
    except KernelvizError as error:
        actions.run_pressed = False
        st.error(f"The run was not started: {plain(error)}", icon=":material/error:")
        return
    actions.run_pressed = False
    second_run.show_one_run()
    st.rerun()
