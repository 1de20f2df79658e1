"""Tiles: a label, a value and its basis. A run has five of them, or three if it has a single size."""

from collections.abc import Mapping, Sequence

import streamlit as st

from kernelviz.core import Run, Stage, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import summary
from kernelviz.metrics.winner import mistakes
from kernelviz.text import Tile, format_variant
from kernelviz.text.tuning_tiles import tiles_of_run
from kernelviz.text.winners import by_mistake, describe_mistake
from kernelviz.ui.shared.text import plain

_MOST_NAMED = 6
"""Excluded variants that are named above the tiles. The tab Failures lists all of them."""


def run_tiles(run: Run, table: Sequence[Row], headline: Headline = "cold") -> None:
    """The tiles of a run, and which variants are excluded because they are wrong."""
    if summary(table, headline) is not None and (excluded := by_mistake(mistakes(table))):
        st.markdown(_describe_excluded(run, excluded))
    draw(tiles_of_run(run, table, headline))


def _describe_excluded(run: Run, excluded: Mapping[frozenset[Stage], Sequence[str]]) -> str:
    """The excluded variants by what they did, in Markdown; of many, the numbers."""
    count = sum(map(len, excluded.values()))
    many = count > _MOST_NAMED
    kind = "configuration" if run.plan.search is not None else "variant"
    lines = []
    for stages, variants in excluded.items():
        named = ", ".join(plain(format_variant(v)) for v in variants)
        who = units.counted(len(variants), kind) if many else named
        lines.append(f":red[✕ **{who}**] {describe_mistake(stages)}.")
    end = "They are marked below and excluded" if count > 1 else "It is marked below and excluded"
    where = " The tab **Failures** names them." if many else ""
    return f"{' '.join(lines)} {end} from rankings and speed-ups.{where}"


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
