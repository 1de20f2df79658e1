"""The stored tunings of this server: what each variant uses, whether it is still used, and a link to its run."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.tunings import StoredTuning
from kernelviz.core.configuration import configuration_text
from kernelviz.tables.tunings import STORED_TUNINGS
from kernelviz.text import format_sizes, format_variant
from kernelviz.ui.autotune import choice
from kernelviz.ui.shared import callbacks, table
from kernelviz.ui.shared.text import distinct_labels, plain


def tunings(bench: Bench) -> None:
    """The table of stored tunings, with buttons that open or remove one."""
    stored = bench.tunings.find()
    with st.expander(f"Stored tunings ({len(stored)})", icon=":material/bookmark:"):
        if not stored:
            st.caption("No configuration is stored. A tuning that finishes stores its best one, and later runs use it.")
            return
        table.show(list(STORED_TUNINGS), stored, key="autotune_stored", alt="Stored tunings")
        by_key = {"|".join(s.tuning.key): s for s in stored}
        chosen = st.selectbox(
            "Stored tuning",
            list(by_key),
            key="autotune_stored_one",
            format_func=distinct_labels(by_key, lambda k: _label(by_key[k])),
        )
        one = by_key[chosen]
        with st.container(horizontal=True, gap="small"):
            st.button("Open its run", key="autotune_open_stored", on_click=choice.choose_run, args=(one.tuning.run_id,),
                      icon=":material/monitoring:")  # fmt: skip
            callbacks.button(
                "Forget", partial(bench.tunings.forget, [one]), key="autotune_forget", about=chosen, icon=":material/delete:",
                help="The variant uses its default configuration again for this problem. The run stays.",
            )  # fmt: skip
        st.caption("In a terminal: kernelviz tunings. In Python: kernelviz.tunings().")


def _label(stored: StoredTuning) -> str:
    t = stored.tuning
    return plain(
        f"{format_variant(t.variant)} · {t.problem.op} {t.problem.precision} {format_sizes(t.problem)} · "
        f"{configuration_text(t.configuration)}"
    )
