"""The four tiles of a run, drawn: which variant is fastest, by how much, how near the roof, and where it is worst."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from kernelviz.core.problem import Plan
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.plots.tiles import Tile, tiles
from kernelviz.plots.variant_styles import variant_words
from kernelviz.ui.shared.text import plain


def show(found: Summary | None, plan: Plan, headline: Headline = "cold") -> None:
    """Draw the four tiles; two by two where the page is narrow."""
    if found is not None and found.excluded:
        names = ", ".join(plain(variant_words(v)) for v in found.excluded)
        st.markdown(f":red[✕ **{names}**] gave a wrong or impossible result: marked below, never fastest, no speed-up.")
    draw(tiles(found, plan, headline))


def draw(shown: Sequence[Tile]) -> None:
    """Tiles side by side."""
    with st.container(key="tiles"):
        for column, tile in zip(st.columns(len(shown), gap="small"), shown, strict=True):
            column.metric(
                plain(tile.label),
                plain(tile.value),
                delta=plain(tile.basis),
                delta_color="off",
                delta_arrow="off",
                help=plain(tile.how) or None,
                border=True,
                height="stretch",
            )
