"""What a page says of a run that its address names and that is not on this server."""

import streamlit as st

from kernelviz.core import UnknownRun
from kernelviz.ui.shared import site
from kernelviz.ui.shared.text import plain


def say(
    *run_ids: str,
    of: str = "",
    without: str = "",
    error: type[UnknownRun] = UnknownRun,
    options: str = "",
    on_history: bool = False,
) -> None:
    """Name the runs, say why they may not be here and how one gets them, and link to the runs that are here.

    `of`: what they had to be of. `without`: what they may lack. `error`: the error for such runs, which has the command that
    writes one to a file. `options`: further options of that command. `on_history`: whether the page is History, which has the
    other runs and the upload itself.
    """
    named = f"**{plain(', '.join(run_ids))}**" + (f" of {plain(of)}" if of else "")
    why = "it was deleted or measured on another machine" + (f", or it lacks {without}" if without else "")
    st.error(
        f"No run {named} on this server: {why}. Ask the owner of the other machine for the run as a file (**Share** on "
        f"their page, or `{error.export}{options}`) and upload it {'on this page' if on_history else 'on the page History'}.",
        icon=":material/error:",
    )
    if not on_history:
        site.history_link()
