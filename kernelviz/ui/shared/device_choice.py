"""The box in which a page's device is chosen."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import Device
from kernelviz.ui.shared import view_filters


def device_choice(bench: Bench) -> Device:
    """The device that the page is about; the box appears if there are several. The address repeats it as `on`."""
    ids = [d.id for d in bench.devices()]
    default = bench.default_device()
    if len(ids) == 1:
        return bench.device(default)
    view_filters.seed("on", ids, default)
    chosen = st.segmented_control(
        "Device", ids, key="on", required=True, format_func=lambda i: f"{bench.device(i).name} ({i})"
    )
    view_filters.keep("on", chosen, default)
    return bench.device(chosen or default)
