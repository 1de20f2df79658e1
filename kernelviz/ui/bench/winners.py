"""The sentences below the chart of the fastest variants, which are also its alternative text."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row
from kernelviz.metrics.winner import winners
from kernelviz.plots.variant_styles import format_variant
from kernelviz.text.sizes import format_size
from kernelviz.text.winners import describe_winners
from kernelviz.ui.shared.text import plain


def winner_lines(rows: Sequence[Row], axis: str | None, headline: Headline) -> list[str]:
    """A line for each strip of sizes: which variant is fastest up to which size."""
    return describe_winners(rows, winners(rows, headline), axis, format_variant, format_size)


def winner_sentences(lines: Sequence[str]) -> None:
    """The sentences, with the rule behind them as help text."""
    st.markdown(
        "\n".join(f"- {plain(line)}" for line in lines),
        help="A variant is fastest at a size if the whole 95 % interval of the time ratio to every other variant is beyond the "
        "noise floor. Otherwise it is a statistical tie: the size is hatched and the tied variants are listed.",
    )
