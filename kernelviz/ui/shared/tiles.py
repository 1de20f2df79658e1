"""Tiles: a label, a value and its basis. A run has five of them, or three if it has a single size."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.core import Run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import summary
from kernelviz.text import Tile, format_variant
from kernelviz.text.tuning_tiles import tiles_of_run
from kernelviz.ui.shared.text import plain

_MOST_NAMED = 6
"""Excluded variants that are named above the tiles. The tab Failures lists all of them."""


def run_tiles(run: Run, table: Sequence[Row], headline: Headline = "cold") -> None:
    """The tiles of a run, and which variants are excluded because they are wrong."""
    answers = summary(table, headline)
    if answers is not None and answers.excluded:
        st.markdown(_describe_excluded(run, answers.excluded))
    draw(tiles_of_run(run, table, headline))


def _describe_excluded(run: Run, excluded: Sequence[str]) -> str:
    several = len(excluded) > 1
    end = "are marked below and excluded" if several else "is marked below and excluded"
    what = f"computed a wrong result or reported an impossible time. {'They' if several else 'It'} {end} from rankings"
    if len(excluded) <= _MOST_NAMED:
        names = ", ".join(plain(format_variant(v)) for v in excluded)
        return f":red[✕ **{names}**] {what} and speed-ups."
    kind = "configurations" if run.plan.search is not None else "variants"
    return f":red[✕ **{len(excluded)} {kind}**] {what} and speed-ups. The tab **Failures** names them."


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
