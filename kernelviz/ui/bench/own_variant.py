"""How to measure a kernel of one's own beside the variants of the form: a popover below them."""

import streamlit as st

from kernelviz.ops import Op
from kernelviz.text.own_variant import FILE, START, command, variant_file
from kernelviz.ui.shared.text import plain


def how_to_add(op: Op) -> None:
    """The three steps, with a file for this op to copy."""
    popover = st.popover(
        "Add your own kernel", type="tertiary", icon=":material/add:", key="own_variant", on_change="rerun"
    )
    if not popover.open:
        return
    with popover:
        st.markdown(f"**1. Save this file as `{FILE}`**, and put the call of your kernel into it:")
        st.code(variant_file(op.name, op.argument_names), language="python")
        st.markdown("**2. Stop kernelviz, and start it with the file:**")
        st.code(START, language="bash", wrap_lines=True)
        st.markdown(
            f"**3. Choose `my kernel` among the variants of {plain(op.name)}, and press Run.** It is checked against the float64 "
            "reference and compared with the others. If its result is wrong, the tab Inspect shows where."
        )
        st.caption(
            f"In a terminal: `{plain(command(op.name))}`. The file is code that runs with the rights of kernelviz, so it cannot "
            "be uploaded here."
        )
