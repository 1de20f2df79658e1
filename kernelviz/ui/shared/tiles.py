"""Tiles: a label, a value and its basis. A run has five of them, or three if it has a single size."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.core import Plan
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.text import Tile, format_variant
from kernelviz.text.tiles import tiles
from kernelviz.ui.shared.text import plain


def run_tiles(summary: Summary | None, plan: Plan, headline: Headline = "cold") -> None:
    """The tiles of a run, and which variants are excluded because they are wrong."""
    if summary is not None and summary.excluded:
        names = ", ".join(plain(format_variant(v)) for v in summary.excluded)
        st.markdown(
            f":red[✕ **{names}**] computed a wrong result or reported an impossible time. It is marked below and excluded from "
            "rankings and speed-ups."
        )
    draw(tiles(summary, plan, headline))


def draw(row: Sequence[Tile]) -> None:
    """Tiles side by side; two by two on a narrow page."""
    with st.container(key="tiles"):
        for column, tile in zip(st.columns(len(row), gap="small"), row, strict=True):
            column.metric(
                plain(tile.label),
                plain(tile.value),
                delta=plain(tile.whole_basis),
                delta_color="off",
                delta_arrow="off",
                help=plain(tile.how) or None,
                border=True,
                height="stretch",
            )
