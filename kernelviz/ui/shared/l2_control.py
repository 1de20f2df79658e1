"""The choice between the two device times: with flushed caches (cold) or with data left in them (warm)."""

from typing import Literal, get_args

import streamlit as st

from kernelviz.metrics.figures import Headline
from kernelviz.ui.shared import view_filters

HEADLINES: tuple[Headline, ...] = get_args(Headline)
L2_HELP = (
    "Cold: the caches are flushed before each call. Warm: calls repeat on the same data, which stay in the cache if they "
    "fit."
)


def l2_control(
    key: str = "l2", cache: str = "L2", *, label_visibility: Literal["visible", "collapsed"] = "collapsed"
) -> Headline:
    """Which device time the page shows; the address repeats it under `key`. `cache`: what the device's cache is called."""
    view_filters.seed(key, HEADLINES, "cold")
    chosen: Headline = (
        st.segmented_control(
            f"Cache state ({cache})", list(HEADLINES), key=key, required=True, help=L2_HELP,
            format_func=lambda name: f"{name} {cache}", label_visibility=label_visibility,
        )
        or "cold"
    )  # fmt: skip
    view_filters.keep(key, chosen, "cold")
    return chosen
